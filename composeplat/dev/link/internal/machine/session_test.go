//go:build !windows

package machine

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"composeplat/link/internal/wire"
)

func (w *world) ends(status int) {
	w.t.Helper()
	select {
	case err := <-w.failed:
		w.t.Fatal(err)
	case actual := <-w.status:
		w.up = nil
		equal(w.t, status, actual)
	case <-time.After(eventTimeout):
		w.t.Fatalf("does not end; shown: %s", w.screen())
	}
}

// An agent that acknowledged more than it was sent ended the session with a panic, and left the terminal raw.
func TestMoreInputThanWasSentIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	s := newSession(&Config{})
	frames := wire.NewFrames(here, wire.SessionLimits.Lookup)
	s.pending, s.sent, s.frames = []byte("typed"), 2, frames
	s.lock.Lock()
	s.dropReceived(4)
	s.lock.Unlock()
	go s.sendInput(frames)
	kind, body, err := wire.NewFrames(there, wire.SessionLimits.Lookup).Read()
	must(t, err)
	equal(t, wire.FrameInput, kind)
	equal(t, "ped", string(body))
	s.lock.Lock()
	s.dropReceived(2)
	equal(t, "ped", string(s.pending))
	s.lock.Unlock()
	s.detach()
}

func TestPipesAndStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Directory = w.there("")
	w.config.Environment = map[string]string{"ADDED": "value"}
	w.config.Command = []string{"sh", "-c", "cat; echo $ADDED; echo made > made; echo wrong >&2; exit 7"}
	w.start()
	_, err := io.WriteString(w.typed, strings.Repeat("0123456789\n", 50000))
	must(t, err)
	must(t, w.typed.Close())
	w.ends(7)
	equal(t, strings.Repeat("0123456789\n", 50000)+"value\nwrong\n", sorted(w.screen()))
	equal(t, "made\n", read(w.here("made")))
	equal[any](t, 7.0, w.all("ended")[0]["status"])
}

// sorted puts what went to standard error last: the two are not ordered.
func sorted(text string) string {
	return strings.Replace(text, "wrong\n", "", 1) + "wrong\n"
}

func TestAKilledCommandHasItsSignalAsStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Command = []string{"sh", "-c", "kill -9 $$"}
	w.start()
	w.ends(128 + 9)
}

func TestACommandThatIsNotThereFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Command = []string{"no-such-command"}
	w.start()
	select {
	case err := <-w.failed:
		equal(t, true, strings.Contains(err.Error(), "no-such-command not found in the container"))
		w.up = nil
	case <-time.After(eventTimeout):
		t.Fatal("does not fail")
	}
}

func TestASignalIsPassedOnOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Command = []string{"sh", "-c",
		"trap 'echo interrupted; sleep 0.3; exit 5' INT; echo ready; while :; do sleep 0.05; done"}
	w.start()
	w.eventually("ready", func() bool { return strings.Contains(w.screen(), "ready") })
	w.eventually("attached", func() bool { return w.up.session.isAttached() })
	// The terminal sends it to all processes, and the parent passes it on: two at once are one.
	w.up.signals <- syscall.SIGINT
	w.up.signals <- syscall.SIGINT
	w.ends(5)
	equal(t, "ready\ninterrupted\n", w.screen())
}

func TestTheTerminalOutlivesACut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Terminal = true
	w.config.Command = []string{"sh"}
	w.config.Environment = map[string]string{"PS1": "> ", "TERM": "xterm"}
	w.start()
	_, err := io.WriteString(w.typed, "test -t 0 && kept=over; stty size\n")
	must(t, err)
	w.eventually("the size", func() bool { return strings.Contains(w.screen(), "24 80") })
	w.cut()
	w.eventually("linked again", func() bool { return w.count("connected") == 2 })
	_, err = io.WriteString(w.typed, "echo =$kept=\n")
	must(t, err)
	w.eventually("the shell is the same", func() bool { return strings.Contains(w.screen(), "=over=") })
	// Ctrl-C is for the program there.
	_, err = io.WriteString(w.typed, "sleep 100\n")
	must(t, err)
	time.Sleep(200 * time.Millisecond)
	_, err = io.WriteString(w.typed, "\x03echo =$?=; exit 4\n")
	must(t, err)
	w.ends(4)
	equal(t, true, strings.Contains(w.screen(), "=130="))
}

func TestOutputDuringACutIsShownAfterIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Command = []string{"sh", "-c", "for i in $(seq 100); do echo line $i; sleep 0.02; done; exit 3"}
	w.start()
	w.eventually("it begins", func() bool { return strings.Contains(w.screen(), "line 5\n") })
	for range 4 {
		w.cut()
		time.Sleep(150 * time.Millisecond)
	}
	w.ends(3)
	equal(t, 100, strings.Count(w.screen(), "line "))
	equal(t, true, strings.HasSuffix(w.screen(), "line 99\nline 100\n"))
}

func TestInputDuringACutArrivesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Command = []string{"cat"}
	w.start()
	var all strings.Builder
	for number := range 40 {
		text := strings.Repeat(string(rune('a'+number%26)), 5000) + "\n"
		all.WriteString(text)
		_, err := io.WriteString(w.typed, text)
		must(t, err)
		if number%10 == 5 {
			w.cut()
		}
	}
	must(t, w.typed.Close())
	w.ends(0)
	equal(t, all.String(), w.screen())
}

func TestCtrlCWithoutALinkEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Terminal = true
	w.start()
	w.eventually("attached", func() bool { return w.up.session.isAttached() })
	w.setBroken(true)
	w.eventually("lost", func() bool { return w.count("disconnected") > 0 })
	_, err := io.WriteString(w.typed, "\x03")
	must(t, err)
	w.ends(130)
}

func TestANewContainerStartsTheCommandAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Command = []string{"sh", "-c", "echo begun; sleep 1000"}
	w.start()
	w.eventually("begun", func() bool { return w.screen() == "begun\n" })
	w.hold(nil)
	w.eventually("begun again", func() bool { return w.screen() == "begun\nbegun\n" })
	equal[any](t, "new", w.all("connected")[1]["session"])
}

func TestANewContainerGetsNoPartOfTheInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Directory = w.root
	w.config.Command = []string{"sh", "-c", "cat >> read"}
	w.start()
	_, err := io.WriteString(w.typed, "first\n")
	must(t, err)
	w.arrives(filepath.Join(w.root, "read"), "first\n")
	w.eventually("received", func() bool {
		w.up.session.lock.Lock()
		defer w.up.session.lock.Unlock()
		return len(w.up.session.pending) == 0
	})
	w.hold(nil)
	_, _ = io.WriteString(w.typed, "second\n")
	select {
	case err := <-w.failed:
		equal[error](t, errInputLost, err)
		<-w.status
		w.up = nil
	case <-time.After(eventTimeout):
		t.Fatal("it goes on")
	}
	equal(t, "first\n", read(filepath.Join(w.root, "read")))
}

func TestAnAgentOfAnotherVersionIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.AgentCommand = []string{"echo", "composeplat link 1"}
	w.start()
	select {
	case err := <-w.failed:
		equal(t, true, errors.Is(err, wire.ErrNotAnAgent))
		<-w.status
		w.up = nil
	case <-time.After(eventTimeout):
		t.Fatal("it tries again and again: ", w.all("disconnected"))
	}
}

func TestTheNewestLinkIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startSynced()
	first := w.failed
	status := w.status
	w.up = nil
	w.start()
	select {
	case err := <-first:
		equal(t, errTakenOver, err)
		<-status
	case <-time.After(eventTimeout):
		t.Fatal("the first link goes on")
	}
	write(t, w.here("after"), "x")
	w.arrives(w.there("after"), "x")
}

func TestTheSessionEndsWithItsGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Terminal = true
	w.config.Command = []string{"sh", "-c", "sleep 1000 & echo $! > pid; wait"}
	w.config.Directory = w.there("")
	w.start()
	w.eventually("a pid", func() bool { return strings.HasSuffix(read(w.there("pid")), "\n") })
	w.eventually("attached", func() bool { return w.up.session.isAttached() })
	w.up.signals <- syscall.SIGTERM
	w.ends(128 + int(syscall.SIGHUP))
	pid := strings.TrimSpace(read(w.there("pid")))
	w.eventually("it is gone", func() bool {
		_, err := os.Stat("/proc/" + pid)
		return os.IsNotExist(err)
	})
}

func echo(t *testing.T) *net.TCPListener {
	t.Helper()
	return echoAt(t, net.IPv4(127, 0, 0, 1))
}

func echoAt(t *testing.T, address net.IP) *net.TCPListener {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: address})
	if err != nil && address.To4() == nil {
		t.Skip("no IPv6 here:", err)
	}
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.AcceptTCP()
			if err != nil {
				return
			}
			go func() {
				// Answers only when all was sent: that needs the half close.
				sent, _ := io.ReadAll(connection)
				_, _ = connection.Write([]byte("received " + string(sent)))
				connection.Close()
			}()
		}
	}()
	return listener
}

func talk(t *testing.T, address, text string) string {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err.Error()
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(eventTimeout))
	_, _ = io.WriteString(connection, text)
	_ = connection.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(connection)
	return string(answer)
}

func TestForwardsGoOnAfterACut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := echo(t).Addr().(*net.TCPAddr).Port
	taken := echo(t).Addr().String()
	w.config.Forwards = []ForwardConfig{{"127.0.0.1:0", port}, {taken, port}}
	w.startSynced()
	equal[any](t, taken, w.all("port-taken")[0]["requested"])
	equal(t, w.all("port-taken")[0]["listen"], w.all("forwarding")[1]["listen"])
	address := w.all("forwarding")[0]["listen"].(string)
	long := strings.Repeat("x", 1<<20)
	equal(t, "received "+long, talk(t, address, long))
	w.setBroken(true)
	w.eventually("closed at once", func() bool { return talk(t, address, "a") == "" })
	w.setBroken(false)
	w.eventually("again", func() bool { return talk(t, address, "b") == "received b" })
}

func freePort(t *testing.T) int {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer free.Close()
	return free.Addr().(*net.TCPAddr).Port
}

func TestReverseForwards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := freePort(t)
	w.config.Reverse = []ReverseConfig{{port, echo(t).Addr().String()}}
	w.startSynced()
	address := "127.0.0.1:" + strconv.Itoa(port)
	w.eventually("it listens", func() bool { return talk(t, address, "a") == "received a" })
	w.cut()
	w.eventually("linked again", func() bool { return w.count("connected") == 2 })
	w.eventually("it listens again", func() bool { return talk(t, address, "b") == "received b" })
}

func TestAProgramThatIsAskedToEndAndLosesItsContainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Command = []string{"sh", "-c", "trap '' TERM; echo ready; for n in $(seq 400); do sleep 0.05; done"}
	w.start()
	w.eventually("attached", func() bool {
		return strings.Contains(w.screen(), "ready") && w.up.session.isAttached()
	})
	w.up.signals <- syscall.SIGTERM
	w.eventually("taken", func() bool { return len(w.up.signals) == 0 })
	w.stopAgent()
	w.ends(128 + 15)
}

func TestAReverseForwardToAServerOfIPv6(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port := freePort(t)
	here := echoAt(t, net.IPv6loopback).Addr().(*net.TCPAddr).Port
	w.config.Reverse = []ReverseConfig{{port, net.JoinHostPort("127.0.0.1", strconv.Itoa(here))}}
	w.startSynced()
	address := "127.0.0.1:" + strconv.Itoa(port)
	w.eventually("it listens", func() bool { return talk(t, address, "a") == "received a" })
}
