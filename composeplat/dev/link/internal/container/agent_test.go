//go:build !windows

package container

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/wire"
)

func newAgent(t *testing.T, markers ...string) *agent {
	t.Helper()
	return &agent{
		boot: "boot", markers: markers, folder: t.TempDir(), reaper: testReaper(), seen: map[string]bool{},
		trees: map[string]*keptTree{}, files: map[string]beneath.Place{},
	}
}

// notified sends a notice, and one more that shows when it was handled: they come one after another.
func notified(t *testing.T, a *agent, m *machine, notice wire.Notice) {
	t.Helper()
	must(t, wire.Send(m.control, notice))
	must(t, wire.Send(m.control, wire.Notice{Synced: true}))
	eventually(t, "the notice is handled", func() bool {
		a.lock.Lock()
		defer a.lock.Unlock()
		return a.synced
	})
}

// A machine is the other end of a link to an agent.
type machine struct {
	t       *testing.T
	link    *wire.Link
	control wire.Conn
	welcome wire.Welcome
}

func linked(t *testing.T, served *agent, name, session string) *machine {
	t.Helper()
	near, far := sockets(t)
	go served.serve(far)
	link, err := wire.Start(near, true)
	must(t, err)
	t.Cleanup(func() { link.Close() })
	m := &machine{t: t, link: link}
	m.control = m.open("control", nil)
	must(t, wire.Send(m.control, wire.Hello{Link: name, Session: session}))
	must(t, wire.Receive(m.control, &m.welcome))
	return m
}

func (m *machine) open(kind string, body any) wire.Conn {
	m.t.Helper()
	raw, err := json.Marshal(body)
	must(m.t, err)
	stream, err := m.link.OpenStream(m.t.Context())
	must(m.t, err)
	must(m.t, stream.SetDeadline(time.Now().Add(deadline)))
	must(m.t, wire.Send(stream, wire.Open{Kind: kind, Body: raw}))
	return stream
}

// run starts a session, or attaches to it.
func (m *machine) run(wanted wire.Session) (wire.AttachReply, *terminal) {
	m.t.Helper()
	stream := m.open("session", wanted)
	v := &terminal{t: m.t, frames: wire.NewFrames(stream, wire.SessionLimits.Lookup)}
	must(m.t, wire.Receive(stream, &v.reply))
	return v.reply, v
}

// isClosed reports whether the agent has closed a stream without an answer.
func isClosed(stream wire.Conn) bool {
	n, err := stream.Read(make([]byte, 1))
	return n == 0 && err != nil && !os.IsTimeout(err)
}

func TestAVolumeIsFreshUntilItWasSynced(t *testing.T) {
	markers := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	write(t, markers[0], "one\n", 0o600)
	write(t, markers[1], "two\n", 0o600)
	served := newAgent(t, markers...)
	first := linked(t, served, "machine", "")
	if want := (wire.Welcome{Boot: "boot", Volume: "one+two", Fresh: true}); first.welcome != want {
		t.Fatalf("%+v", first.welcome)
	}
	notified(t, served, first, wire.Notice{})
	if linked(t, served, "machine", "").welcome.Fresh {
		t.Error("the volume is still fresh")
	}
	// The container starts anew, and the volume is the same.
	if again := linked(t, newAgent(t, markers...), "machine", "").welcome; again.Fresh || again.Volume != "one+two" {
		t.Errorf("%+v", again)
	}
	must(t, os.Remove(markers[1]))
	if broken := linked(t, newAgent(t, markers...), "machine", "").welcome; broken.Error == "" {
		t.Errorf("%+v", broken)
	}
}

func TestWithoutAMarkerTheVolumeIsTheContainers(t *testing.T) {
	served := newAgent(t)
	first := linked(t, served, "machine", "")
	if want := (wire.Welcome{Boot: "boot", Volume: "boot", Fresh: true}); first.welcome != want {
		t.Fatalf("%+v", first.welcome)
	}
	notified(t, served, first, wire.Notice{})
	if linked(t, served, "machine", "").welcome.Fresh {
		t.Error("the volume is still fresh")
	}
}

func TestTheMachineThatComesLastIsServed(t *testing.T) {
	served := newAgent(t)
	first := linked(t, served, "first", "")
	second := linked(t, served, "second", "")
	var notice wire.Notice
	must(t, wire.Receive(first.control, &notice))
	if !notice.TakenOver {
		t.Fatalf("%+v", notice)
	}
	if !isClosed(first.open("file", "/absent")) {
		t.Error("the first is served still")
	}
	// One that was taken over is not to take over in turn, each time that it comes back.
	if again := linked(t, served, "first", ""); !again.welcome.TakenOver {
		t.Errorf("%+v", again.welcome)
	}
	if reply, _ := second.run(wire.Session{ID: "s", Command: []string{"true"}}); !reply.New || reply.Error != "" {
		t.Errorf("the second: %+v", reply)
	}
	if back := linked(t, served, "second", "s"); back.welcome.TakenOver || !back.welcome.Alive {
		t.Errorf("the second again: %+v", back.welcome)
	}
}

func TestASessionOutlivesItsLink(t *testing.T) {
	served := newAgent(t)
	wanted := shellSession("echo first; read line; echo $line")
	first := linked(t, served, "machine", "id")
	reply, v := first.run(wanted)
	if !reply.New || first.welcome.Alive {
		t.Fatalf("%+v, %+v", reply, first.welcome)
	}
	v.shows("first\n")
	first.link.Close()
	second := linked(t, served, "machine", "id")
	wanted.Seen = int64(v.stdout.Len())
	reply, v = second.run(wanted)
	if reply.New || !second.welcome.Alive || reply.Start != wanted.Seen {
		t.Fatalf("%+v, %+v", reply, second.welcome)
	}
	must(t, v.frames.Send(wire.FrameInput, []byte("second\n")))
	if status := v.exitStatus(); status != 0 || v.stdout.String() != "second\n" {
		t.Fatalf("%d, %q", status, v.stdout.String())
	}
}

func TestAnotherSessionEndsTheOneBefore(t *testing.T) {
	served := newAgent(t)
	first := linked(t, served, "first", "one")
	_, v := first.run(wire.Session{ID: "one", Command: []string{"sleep", "100"}})
	before := served.session
	if second := linked(t, served, "second", "two"); second.welcome.Alive {
		t.Errorf("%+v", second.welcome)
	}
	eventually(t, "the command is ended", func() bool { return !before.isRunning() })
	if _, ended, err := v.next(); ended || err == nil {
		t.Error("the end is taken for the command's own")
	}
}

// It was started beside that of the next link, and had its ports; or it took the place of it.
func TestASessionWhoseLinkIsLostBeforeItsTurnIsNotStarted(t *testing.T) {
	served := newAgent(t)
	folder := t.TempDir()
	session := func(id, script string) wire.Session {
		return wire.Session{ID: id, Command: []string{"sh", "-c", script}, Directory: folder}
	}
	first := linked(t, served, "first", "one")
	_, v := first.run(session("one", "trap 'sleep 1; exit' HUP; echo ready; while :; do sleep 0.02; done"))
	v.shows("ready")
	second := linked(t, served, "second", "two")
	waiting := second.open("session", session("two", "echo started > two; exec sleep 100"))
	time.Sleep(200 * time.Millisecond)
	must(t, second.link.Close())
	eventually(t, "the second link is gone", func() bool {
		served.lock.Lock()
		defer served.lock.Unlock()
		return served.current == nil
	})
	third := linked(t, served, "third", "three")
	_, v = third.run(session("three", "sleep 0.5; cat two; echo ready; read line"))
	v.shows("ready")
	if _, err := os.Stat(filepath.Join(folder, "two")); err == nil || served.session.id != "three" {
		t.Errorf("the second command runs; the session is %q", served.session.id)
	}
	if !isClosed(waiting) {
		t.Error("the second stream is open")
	}
}

func TestNoticesReachTheSession(t *testing.T) {
	served := newAgent(t)
	m := linked(t, served, "machine", "id")
	// Without a session they are dropped.
	must(t, wire.Send(m.control, wire.Notice{Signal: 10}))
	notified(t, served, m, wire.Notice{End: true})
	_, v := m.run(shellSession("trap 'echo received' USR1; echo ready; while :; do sleep 0.02; done"))
	v.shows("ready")
	must(t, wire.Send(m.control, wire.Notice{Signal: 10}))
	v.shows("received")
	must(t, wire.Send(m.control, wire.Notice{End: true}))
	if status := v.exitStatus(); status != 128+1 {
		t.Fatal(status)
	}
}

func TestASessionThatCanNotBeStartedSaysWhy(t *testing.T) {
	m := linked(t, newAgent(t), "machine", "id")
	reply, _ := m.run(wire.Session{ID: "id", Command: []string{"/absent/program"}})
	if want := "can't run /absent/program: fork/exec /absent/program: no such file or directory"; reply.Error != want {
		t.Fatalf("%+v", reply)
	}
}

func TestStreamsThatMakeNoSenseAreClosed(t *testing.T) {
	m := linked(t, newAgent(t), "machine", "id")
	for kind, body := range map[string]any{
		"unknown": nil, "file": 7, "session": "text", "tree": "text", "forward": "text", "reverse": "text",
	} {
		if !isClosed(m.open(kind, body)) {
			t.Errorf("%s is served", kind)
		}
	}
	if listener, err := m.link.OpenStream(t.Context()); err != nil {
		t.Error(err)
	} else if _, err := listener.Write([]byte("\x00\x00\x00\x01{")); err != nil || !isClosed(listener) {
		t.Error("what is no message is served")
	}
}

func TestAForwardReachesAPort(t *testing.T) {
	m := linked(t, newAgent(t), "machine", "id")
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("no %s here: %v", address, err)
			continue
		}
		go func() {
			connection, err := listener.Accept()
			if err == nil {
				_, _ = connection.Write([]byte("x"))
				connection.Close()
			}
		}()
		port := listener.Addr().(*net.TCPAddr).Port
		stream := m.open("forward", port)
		if n, err := stream.Read(make([]byte, 2)); n != 1 {
			t.Errorf("%s: %v", address, err)
		}
		listener.Close()
		if !isClosed(m.open("forward", port)) {
			t.Errorf("%s: nobody listens, and it is open", address)
		}
	}
}

func TestAReverseForwardListensWhileTheLinkLasts(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address, port := free.Addr().String(), free.Addr().(*net.TCPAddr).Port
	m := linked(t, newAgent(t), "machine", "id")
	// Somebody else listens there, and goes on.
	m.open("reverse", port)
	var notice wire.Notice
	must(t, wire.Receive(m.control, &notice))
	if notice.Reverse != port || notice.Why == "" {
		t.Fatalf("%+v", notice)
	}
	free.Close()
	m.open("reverse", port)
	var connection net.Conn
	eventually(t, "the agent listens", func() bool {
		connection, err = net.Dial("tcp", address)
		return err == nil
	})
	defer connection.Close()
	stream, err := m.link.AcceptStream(t.Context())
	must(t, err)
	var open wire.Open
	must(t, wire.Receive(stream, &open))
	if want, _ := json.Marshal(port); open.Kind != "reverse" || string(open.Body) != string(want) {
		t.Fatalf("%+v", open)
	}
	_, err = connection.Write([]byte("x"))
	must(t, err)
	if n, err := stream.Read(make([]byte, 2)); n != 1 {
		t.Error(err)
	}
	m.link.Close()
	eventually(t, "the port is free", func() bool {
		listener, err := net.Listen("tcp", address)
		if err == nil {
			listener.Close()
		}
		return err == nil
	})
}
