package wire

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// connected are both ends of a TCP connection.
func connected(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	accepted, err := listener.Accept()
	must(t, err)
	for _, end := range []net.Conn{dialed, accepted} {
		must(t, end.SetDeadline(time.Now().Add(60*time.Second)))
		t.Cleanup(func() { end.Close() })
	}
	return dialed.(*net.TCPConn), accepted.(*net.TCPConn)
}

// joined are the outer ends of two connections whose inner ends are joined.
func joined(t *testing.T) (left, right *net.TCPConn, ended chan struct{}) {
	t.Helper()
	left, leftInner := connected(t)
	right, rightInner := connected(t)
	ended = make(chan struct{})
	go func() {
		Join(leftInner, rightInner)
		close(ended)
	}()
	return left, right, ended
}

func ends(t *testing.T, ended chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(60 * time.Second):
		t.Fatal("not over")
	}
}

func TestWhoHasSentEverythingMayStillBeAnswered(t *testing.T) {
	left, right, ended := joined(t)
	_, err := io.WriteString(left, "question")
	must(t, err)
	must(t, left.CloseWrite())
	asked, err := io.ReadAll(right)
	must(t, err)
	_, err = io.WriteString(right, "answer to "+string(asked))
	must(t, err)
	must(t, right.CloseWrite())
	answer, err := io.ReadAll(left)
	must(t, err)
	if string(answer) != "answer to question" {
		t.Fatalf("%q", answer)
	}
	ends(t, ended)
}

func TestAConnectionThatBreaksEndsBoth(t *testing.T) {
	left, right, ended := joined(t)
	// Without lingering, closing resets the connection.
	must(t, left.SetLinger(0))
	must(t, left.Close())
	if _, err := io.ReadAll(right); err != nil && !errors.Is(err, net.ErrClosed) {
		var failed *net.OpError
		if !errors.As(err, &failed) || failed.Timeout() {
			t.Fatalf("the other side is not ended: %v", err)
		}
	}
	ends(t, ended)
}

// A failing listener has too many open files once, and is closed then.
type failing struct {
	net.Listener
	failures []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.failures) == 0 {
		near, _ := net.Pipe()
		f.failures = []error{net.ErrClosed}
		return near, nil
	}
	failure := f.failures[0]
	f.failures = f.failures[1:]
	return nil, failure
}

func TestAcceptGoesOnAfterAFailure(t *testing.T) {
	accepted := 0
	began := time.Now()
	Accept(&failing{failures: []error{errors.New("too many open files")}}, func(connection net.Conn) {
		accepted++
		connection.Close()
	})
	if accepted != 1 {
		t.Fatalf("%d connections", accepted)
	}
	if passed := time.Since(began); passed < acceptRetryDelay {
		t.Errorf("tried again after %v", passed)
	}
}

func TestAcceptEndsWithItsListener(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ended := make(chan struct{})
	go func() {
		Accept(listener, func(connection net.Conn) { connection.Close() })
		close(ended)
	}()
	connection, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	connection.Close()
	listener.Close()
	ends(t, ended)
}
