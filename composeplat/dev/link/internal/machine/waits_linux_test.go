package machine

import (
	"syscall"
	"testing"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/remotecommand"
)

// endless is input without end.
type endless struct{}

func (endless) Read(text []byte) (int, error) { return len(text), nil }

// The limit of the server's answers is 25 s of packets that are sent again, and a minute after that.
func TestInputOnItsWayToAServerThatIsGoneDoesNotHoldACommand(t *testing.T) {
	t.Parallel()
	server := upgrading(t, func(connection *websocket.Conn) {
		raw, err := connection.NetConn().(syscall.Conn).SyscallConn()
		must(t, err)
		none := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
		// The server's system drops all that arrives, as a network does that is cut.
		must(t, raw.Control(func(descriptor uintptr) {
			program := unix.SockFprog{Len: 1, Filter: &none[0]}
			err = unix.SetsockoptSockFprog(int(descriptor), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program)
		}))
		must(t, err)
	})
	err := streamOver(t, server, remotecommand.StreamOptions{Stdin: endless{}})
	isLoss(t, explainLoss(err), "nothing was received for a minute")
}
