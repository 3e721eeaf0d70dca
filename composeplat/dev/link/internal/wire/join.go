package wire

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Conn is a connection whose two directions can be closed one at a time.
type Conn interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Join copies in both directions until both have ended. When one side has sent everything, the other side's input is
// closed, and it may still answer.
func Join(left, right Conn) {
	var copies sync.WaitGroup
	copyTo := func(to, from Conn) {
		if _, err := io.Copy(to, from); err != nil {
			left.Close()
			right.Close()
		}
		to.CloseWrite()
	}
	copies.Go(func() { copyTo(left, right) })
	copies.Go(func() { copyTo(right, left) })
	copies.Wait()
	left.Close()
	right.Close()
}

// acceptRetryDelay is the pause after an Accept that failed, for example because too many files are open.
const acceptRetryDelay = 50 * time.Millisecond

// Accept calls handle for each connection until the listener is closed.
func Accept(listener net.Listener, handle func(net.Conn)) {
	for {
		connection, err := listener.Accept()
		switch {
		case err == nil:
			handle(connection)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			time.Sleep(acceptRetryDelay)
		}
	}
}
