package machine

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/client-go/tools/remotecommand"
)

// A stallable connection drops what it receives once it is stalled, as something on the way does.
type stallable struct {
	net.Conn
	stalled *atomic.Bool
}

func (s stallable) Read(into []byte) (int, error) {
	for {
		length, err := s.Conn.Read(into)
		if err != nil || !s.stalled.Load() {
			return length, err
		}
	}
}

type stallableListener struct {
	net.Listener
	stalled *atomic.Bool
}

func (s stallableListener) Accept() (net.Conn, error) {
	connection, err := s.Listener.Accept()
	return stallable{connection, s.stalled}, err
}

// oldStreams are the streams of a command on an old server, by their kinds.
type oldStreams struct {
	byKind  map[string]httpstream.Stream
	all     httpstream.Connection
	stalled *atomic.Bool
}

func (o *oldStreams) succeed(t *testing.T) {
	t.Helper()
	_, err := o.byKind[corev1.StreamTypeError].Write([]byte(`{"status":"Success"}`))
	must(t, err)
	for _, stream := range o.byKind {
		stream.Close()
	}
}

// old is a server that knows SPDY and no WebSockets.
func old(t *testing.T, secure bool, serve func(*oldStreams)) string {
	t.Helper()
	return oldOf(t, secure, []string{"v4.channel.k8s.io"}, serve)
}

// oldOf is a server that knows some protocols of streams; without any, it names none in its answer.
func oldOf(t *testing.T, secure bool, protocols []string, serve func(*oldStreams)) string {
	t.Helper()
	stalled, ended := &atomic.Bool{}, make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodGet {
			http.Error(reply, "no WebSockets", http.StatusBadRequest)
			return
		}
		if len(protocols) > 0 {
			if _, err := httpstream.Handshake(request, reply, protocols); err != nil {
				return
			}
		}
		count := 1
		for _, name := range []string{"stdin", "stdout", "stderr"} {
			if request.URL.Query().Get(name) == "true" {
				count++
			}
		}
		streams := make(chan httpstream.Stream, count)
		all := spdy.NewResponseUpgrader().UpgradeResponse(reply, request, func(stream httpstream.Stream, _ <-chan struct{}) error {
			streams <- stream
			return nil
		})
		byKind := map[string]httpstream.Stream{}
		for range count {
			stream := <-streams
			byKind[stream.Headers().Get(corev1.StreamType)] = stream
		}
		// Its answers to these are on their way.
		time.Sleep(time.Second)
		serve(&oldStreams{byKind, all, stalled})
		<-ended
		all.Close()
	}))
	server.Listener = stallableListener{server.Listener, stalled}
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	return server.URL
}

func TestACommandOnAnOldServer(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		server := old(t, secure, func(o *oldStreams) {
			text := make([]byte, 2)
			_, err := io.ReadFull(o.byKind[corev1.StreamTypeStdin], text)
			must(t, err)
			fmt.Fprintf(o.byKind[corev1.StreamTypeStdout], "%s again", text)
			o.succeed(t)
		})
		var output bytes.Buffer
		must(t, streamOver(t, server, remotecommand.StreamOptions{Stdin: bytes.NewReader([]byte("ab")), Stdout: &output}))
		if output.String() != "ab again" {
			t.Fatalf("got %q", output.String())
		}
	}
}

func TestACommandOnAnOldServerEndsWithItsStatus(t *testing.T) {
	t.Parallel()
	server := old(t, false, func(o *oldStreams) {
		fmt.Fprint(o.byKind[corev1.StreamTypeError], `{"status":"Failure","reason":"NonZeroExitCode",
			"details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`)
		for _, stream := range o.byKind {
			stream.Close()
		}
	})
	status, err := Exec(writeExecConfig(t, t.TempDir(), server, ""))
	if status != 7 || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
}

func TestACommandOnAServerWithoutProtocolsSucceedsWithoutAStatus(t *testing.T) {
	t.Parallel()
	server := oldOf(t, false, nil, func(o *oldStreams) {
		fmt.Fprint(o.byKind[corev1.StreamTypeStdout], "done")
		for _, stream := range o.byKind {
			stream.Close()
		}
	})
	var output bytes.Buffer
	must(t, streamOver(t, server, remotecommand.StreamOptions{Stdout: &output}))
	if output.String() != "done" {
		t.Fatalf("got %q", output.String())
	}
}

// All take a minute: one test has them at the same time.
func TestACommandOnAnOldServerThatBecomesSilentEndsWithThatReason(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 2)
	for _, secure := range []bool{false, true} {
		server := old(t, secure, func(o *oldStreams) { o.stalled.Store(true) })
		go func() { failed <- execOver(t, server) }()
	}
	for range 2 {
		isLoss(t, <-failed, "nothing was received for a minute")
	}
}

func TestACommandWhoseOldServerIsCutEndsWithThatReason(t *testing.T) {
	t.Parallel()
	server := old(t, false, func(o *oldStreams) { o.all.Close() })
	isLoss(t, execOver(t, server), "it was closed")
}

func TestOutputOfAnOldServerThatIsPausedForLongArrives(t *testing.T) {
	t.Parallel()
	server := old(t, true, func(o *oldStreams) {
		for piece := large; len(piece) > 0; piece = piece[1<<14:] {
			_, err := o.byKind[corev1.StreamTypeStdout].Write(piece[:1<<14])
			must(t, err)
		}
		o.succeed(t)
	})
	output := &pausing{}
	must(t, streamOver(t, server, remotecommand.StreamOptions{Stdout: output}))
	if output.length != len(large) {
		t.Fatalf("%d of %d bytes", output.length, len(large))
	}
}
