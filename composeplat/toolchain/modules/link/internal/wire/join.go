package wire

import (
	"io"
	"sync"
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
