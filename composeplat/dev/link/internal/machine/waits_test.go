package machine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// aWait is longer than the client library lets a connection be silent.
const aWait = 65 * time.Second

// Channels of the protocol of exec.
const (
	inputChannel  = 0
	outputChannel = 1
	errorsChannel = 2
	statusChannel = 3
)

// streamOver runs a command over a server with its own streams.
func streamOver(t *testing.T, server string, options remotecommand.StreamOptions) error {
	t.Helper()
	disableLog()
	client := &rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	asked, err := kubernetes.NewForConfig(client)
	must(t, err)
	run, err := newExecutor(client, asked, "shop", "web", &corev1.PodExecOptions{
		Command: []string{"sh"}, Stdin: options.Stdin != nil, Stdout: options.Stdout != nil,
	})
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 2*eventTimeout)
	defer cancel()
	return stream(ctx, run, options)
}

func send(t *testing.T, connection *websocket.Conn, channel byte, text []byte) {
	t.Helper()
	must(t, connection.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, text...)))
}

func succeed(t *testing.T, connection *websocket.Conn) {
	t.Helper()
	send(t, connection, statusChannel, []byte(`{"status":"Success"}`))
	closing := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	must(t, connection.WriteControl(websocket.CloseMessage, closing, time.Now().Add(eventTimeout)))
}

// large is more than the buffers of a connection take.
var large = bytes.Repeat([]byte("0123456789abcdef"), 1<<21)

// pausing is a reader of output that waits before it takes the first.
type pausing struct {
	length int
	waited bool
}

func (p *pausing) Write(text []byte) (int, error) {
	if !p.waited {
		p.waited = true
		time.Sleep(aWait)
	}
	p.length += len(text)
	return len(text), nil
}

func TestOutputThatIsPausedForLongArrives(t *testing.T) {
	t.Parallel()
	server := upgrading(t, func(connection *websocket.Conn) {
		go func() { _, _, _ = connection.ReadMessage() }()
		for piece := large; len(piece) > 0; piece = piece[1<<14:] {
			send(t, connection, outputChannel, piece[:1<<14])
		}
		succeed(t, connection)
	})
	output := &pausing{}
	must(t, streamOver(t, server, remotecommand.StreamOptions{Stdout: output}))
	if output.length != len(large) {
		t.Fatalf("%d of %d bytes", output.length, len(large))
	}
}

// A dump into a full disk was cut off, and its command had succeeded.
func TestOutputThatCanNotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	closed := make(chan error, 1)
	server := upgrading(t, func(connection *websocket.Conn) {
		send(t, connection, outputChannel, []byte("a dump"))
		_, _, err := connection.ReadMessage()
		closed <- err
	})
	err = streamOver(t, server, remotecommand.StreamOptions{Stdout: full})
	if err == nil || err.Error() != "the output can't be written: no space left on device" {
		t.Fatal(err)
	}
	if explained := explainLoss(err); explained.Error() != err.Error() {
		t.Fatal(explained)
	}
	// The command ends with its connection, and need not come to its own end.
	if <-closed == nil {
		t.Fatal("the connection is still used")
	}
}

// A dump that could be read in part was taken for all of it.
func TestInputThatCanNotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	folder, err := os.Open(t.TempDir())
	must(t, err)
	defer folder.Close()
	closed := make(chan struct{})
	server := upgrading(t, func(connection *websocket.Conn) {
		for err == nil {
			_, _, err = connection.ReadMessage()
		}
		close(closed)
	})
	input := io.MultiReader(strings.NewReader("a part"), folder)
	failed := streamOver(t, server, remotecommand.StreamOptions{Stdin: input, Stdout: io.Discard})
	if failed == nil || failed.Error() != "the input can't be read: is a directory" {
		t.Fatal(failed)
	}
	<-closed
}

// As nohup gives it to a command on a terminal.
func TestInputThatIsOnlyForWritingHasNothing(t *testing.T) {
	t.Parallel()
	nothing, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	must(t, err)
	defer nothing.Close()
	server := upgrading(t, func(connection *websocket.Conn) {
		go func() { _, _, _ = connection.ReadMessage() }()
		send(t, connection, outputChannel, []byte("all"))
		succeed(t, connection)
	})
	var output bytes.Buffer
	must(t, streamOver(t, server, remotecommand.StreamOptions{Stdin: nothing, Stdout: &output}))
	equal(t, "all", output.String())
}

func TestErrorsThatCanNotBeWrittenAreNone(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	server := upgrading(t, func(connection *websocket.Conn) {
		go func() { _, _, _ = connection.ReadMessage() }()
		send(t, connection, errorsChannel, []byte("a note"))
		send(t, connection, outputChannel, []byte("a dump"))
		succeed(t, connection)
	})
	var output bytes.Buffer
	must(t, streamOver(t, server, remotecommand.StreamOptions{Stdout: &output, Stderr: full}))
	equal(t, "a dump", output.String())
}

func TestInputThatIsNotReadForLongArrives(t *testing.T) {
	t.Parallel()
	// The shorter one is sent as a whole: the buffers of the connection take it.
	for _, content := range [][]byte{large, large[:1<<10]} {
		t.Run(strconv.Itoa(len(content)), func(t *testing.T) {
			t.Parallel()
			server := upgrading(t, func(connection *websocket.Conn) {
				time.Sleep(aWait)
				length := 0
				for length < len(content) {
					kind, text, err := connection.ReadMessage()
					must(t, err)
					if kind == websocket.BinaryMessage && text[0] == inputChannel {
						length += len(text) - 1
					}
				}
				send(t, connection, outputChannel, []byte(strconv.Itoa(length)))
				succeed(t, connection)
			})
			var output bytes.Buffer
			must(t, streamOver(t, server, remotecommand.StreamOptions{Stdin: bytes.NewReader(content), Stdout: &output}))
			if output.String() != strconv.Itoa(len(content)) {
				t.Fatalf("%s of %d bytes", output.String(), len(content))
			}
		})
	}
}

func TestInputThatIsTypedDoesNotHoldACommand(t *testing.T) {
	t.Parallel()
	server := upgrading(t, func(*websocket.Conn) {})
	err := streamOver(t, server, remotecommand.StreamOptions{Stdin: strings.NewReader("ls\n"), Tty: true})
	isLoss(t, explainLoss(err), "nothing was received for a minute")
}

func TestAStreamWaitsOnceItHasGivenContent(t *testing.T) {
	t.Parallel()
	w := &waits{}
	reader := &waitingReader{Reader: io.MultiReader(strings.NewReader(""), strings.NewReader("ab")), waits: w}
	if w.streams != 0 {
		t.Fatal("it waits before it has given anything")
	}
	for step, expected := range []error{nil, nil, io.EOF, io.EOF} {
		if _, err := reader.Read(make([]byte, 1)); !errors.Is(err, expected) || w.streams != 1 {
			t.Fatalf("step %d: %d wait, %v", step, w.streams, err)
		}
	}
}
