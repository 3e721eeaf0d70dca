//go:build !windows

package container

import (
	"encoding/json"
	"net"
	"testing"
)

func TestALinkThatIsReleasedListensNoMore(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := listener.Addr().String()
	body, err := json.Marshal(listener.Addr().(*net.TCPAddr).Port)
	must(t, err)
	listener.Close()
	released := &machineLink{}
	released.closeListeners()
	(&agent{}).serveReverse(released, body)
	listener, err = net.Listen("tcp", address)
	must(t, err)
	listener.Close()
}
