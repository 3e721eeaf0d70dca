//go:build !windows

package container

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/mutagen-io/mutagen/pkg/multiplexing"

	"composeplat/link/internal/wire"
)

// serveForward connects a stream to a port of the container. Some servers listen on only one of the loopback addresses.
func serveForward(body json.RawMessage, stream *multiplexing.Stream) {
	var port int
	if err := json.Unmarshal(body, &port); err != nil {
		stream.Close()
		return
	}
	dialer := net.Dialer{Timeout: 10 * time.Second}
	connection, err := dialer.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.ECONNREFUSED) {
		connection, err = dialer.Dial("tcp", net.JoinHostPort("::1", strconv.Itoa(port)))
	}
	if err != nil {
		stream.Close()
		return
	}
	wire.Join(stream, connection.(*net.TCPConn))
}

// serveReverse listens on a port of the container until the link is lost.
func (a *agent) serveReverse(l *machineLink, body json.RawMessage) {
	var port int
	if err := json.Unmarshal(body, &port); err != nil {
		return
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	listener, err := net.Listen("tcp", address)
	// The link before this one may not have closed the port yet.
	for tries := 0; err != nil && errors.Is(err, syscall.EADDRINUSE) && tries < 20; tries++ {
		time.Sleep(50 * time.Millisecond)
		listener, err = net.Listen("tcp", address)
	}
	if err != nil {
		l.notify(wire.Notice{Reverse: port, Why: err.Error()})
		return
	}
	if !l.keepListener(listener) {
		listener.Close()
		return
	}
	wire.Accept(listener, func(connection net.Conn) {
		go func() {
			stream, err := l.OpenStream(context.Background())
			if err != nil {
				connection.Close()
				return
			}
			if wire.Send(stream, wire.Open{Kind: "reverse", Body: body}) != nil {
				stream.Close()
				connection.Close()
				return
			}
			wire.Join(stream, connection.(*net.TCPConn))
		}()
	})
}
