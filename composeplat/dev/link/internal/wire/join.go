package wire

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Conn is one connection that can be ended one way at a time.
type Conn interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Join copies both ways; when one side has said all, the other is told, and may still answer.
func Join(one, other Conn) {
	var both sync.WaitGroup
	carry := func(to, from Conn) {
		if _, err := io.Copy(to, from); err != nil {
			one.Close()
			other.Close()
		}
		to.CloseWrite()
	}
	both.Go(func() { carry(one, other) })
	both.Go(func() { carry(other, one) })
	both.Wait()
	one.Close()
	other.Close()
}

// rest is how long an Accept that failed waits: there may be too many open files for now.
const rest = 50 * time.Millisecond

// Accept hands over one connection after another, until the listener is closed.
func Accept(listener net.Listener, take func(net.Conn)) {
	for {
		connection, err := listener.Accept()
		switch {
		case err == nil:
			take(connection)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			time.Sleep(rest)
		}
	}
}
