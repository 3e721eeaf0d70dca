package machine

import (
	"context"
	"net"
	"sync"

	"composeplat/link/internal/wire"
)

// forwards listens on local ports all the time, and forwards connections while there is a link.
type forwards struct {
	lock      sync.Mutex
	link      *wire.Link
	listeners []net.Listener
}

func listen(config *Config, events *Events) (*forwards, error) {
	f := &forwards{}
	for _, forward := range config.Forwards {
		listener, err := net.Listen("tcp", forward.Listen)
		if isTaken(err) {
			host, _, _ := net.SplitHostPort(forward.Listen)
			if listener, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err == nil {
				events.Emit("port-taken", Event{"requested": forward.Listen, "listen": listener.Addr().String()})
			}
		}
		if err != nil {
			f.close()
			return nil, err
		}
		f.listeners = append(f.listeners, listener)
		events.Emit("forwarding", Event{"listen": listener.Addr().String(), "port": forward.Port})
		go f.accept(listener, forward.Port)
	}
	return f, nil
}

func (f *forwards) use(link *wire.Link) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.link = link
}

func (f *forwards) accept(listener net.Listener, port int) {
	wire.Accept(listener, func(connection net.Conn) {
		f.lock.Lock()
		link := f.link
		f.lock.Unlock()
		if link == nil {
			connection.Close()
			return
		}
		go func() {
			stream, err := openStream(context.Background(), link, "forward", port)
			if err != nil {
				connection.Close()
				return
			}
			wire.Join(connection.(*net.TCPConn), stream)
		}()
	})
}

func (f *forwards) close() {
	for _, listener := range f.listeners {
		listener.Close()
	}
}
