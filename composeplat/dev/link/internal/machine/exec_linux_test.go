package machine

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"
)

// silentServer has a container whose commands say nothing, and don't end.
func silentServer(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
		connection, err := upgrader.Upgrade(reply, request, nil)
		if err != nil {
			return
		}
		defer connection.Close()
		for err == nil {
			_, _, err = connection.ReadMessage()
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// execOnTerminal starts a command with a terminal, by a shell that waits for it, and waits until the terminal is raw.
func execOnTerminal(t *testing.T, w *world) (shell *exec.Cmd, isRaw func() bool) {
	t.Helper()
	config := writeExecConfig(t, w.root, silentServer(t).URL, `,"terminal":true`)
	master, terminal, err := pty.Open()
	must(t, err)
	t.Cleanup(func() { master.Close() })
	t.Cleanup(func() { terminal.Close() })
	shell = exec.Command("sh", "-c", `exec 3<&0; "$@" <&3 & echo $! > "$0"; wait $!; echo $? > "$0.status"`,
		filepath.Join(w.root, "pid"), os.Args[0], "exec", config)
	shell.Stdin, shell.Stdout, shell.Stderr = terminal, terminal, terminal
	must(t, shell.Start())
	isRaw = func() bool {
		mode, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		return err == nil && mode.Lflag&unix.ICANON == 0
	}
	w.eventually("raw", isRaw)
	return shell, isRaw
}

func (w *world) pidOfExec() int {
	var pid int
	_, _ = fmt.Sscan(read(filepath.Join(w.root, "pid")), &pid)
	return pid
}

func TestAnExecThatIsEndedRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shell, isRaw := execOnTerminal(t, w)
	must(t, syscall.Kill(w.pidOfExec(), syscall.SIGTERM))
	must(t, shell.Wait())
	equal(t, false, isRaw())
	equal(t, "143\n", read(filepath.Join(w.root, "pid.status")))
}

func TestAnExecEndsWithItsParent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shell, isRaw := execOnTerminal(t, w)
	pid := w.pidOfExec()
	must(t, shell.Process.Kill())
	_ = shell.Wait()
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	w.eventually("cooked", func() bool { return !isRaw() })
	w.eventually("it has ended", func() bool { return syscall.Kill(pid, 0) != nil })
}
