//go:build !windows

package container

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"composeplat/link/internal/wire"
)

const deadline = 60 * time.Second

// The tests of this package must not wait for processes themselves: the reaper does.
var testReaper = sync.OnceValue(newReaper)

func started(t *testing.T, wanted wire.Session) *session {
	t.Helper()
	running, err := startSession(testReaper(), wanted)
	must(t, err)
	t.Cleanup(running.hangUp)
	return running
}

func shellSession(script string) wire.Session {
	return wire.Session{ID: "id", Command: []string{"sh", "-c", script}}
}

// A terminal is the machine's end of an attached stream.
type terminal struct {
	t      *testing.T
	frames *wire.Frames
	reply  wire.AttachReply
	stdout bytes.Buffer
	stderr bytes.Buffer
	acked  int64
}

// sockets are both ends of a connection that has a buffer.
func sockets(t *testing.T) (near, far net.Conn) {
	t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	must(t, err)
	var ends []net.Conn
	for _, descriptor := range pair {
		syscall.CloseOnExec(descriptor)
		file := os.NewFile(uintptr(descriptor), "socket")
		end, err := net.FileConn(file)
		must(t, err)
		file.Close()
		t.Cleanup(func() { end.Close() })
		ends = append(ends, end)
	}
	return ends[0], ends[1]
}

func attached(t *testing.T, running *session, wanted wire.Session, isNew bool) *terminal {
	t.Helper()
	near, far := sockets(t)
	must(t, near.SetDeadline(time.Now().Add(deadline)))
	go func() { _ = running.attach(far, wanted, isNew) }()
	v := &terminal{t: t, frames: wire.NewFrames(near, wire.SessionLimits.Lookup)}
	must(t, wire.Receive(near, &v.reply))
	t.Cleanup(func() { near.Close() })
	return v
}

// next reads a frame; at the exit of the command, it returns the status.
func (v *terminal) next() (status int, ended bool, err error) {
	kind, body, err := v.frames.Read()
	if err != nil {
		return 0, false, err
	}
	switch kind {
	case wire.FrameOutput:
		v.stdout.Write(body)
	case wire.FrameStderr:
		v.stderr.Write(body)
	case wire.FrameReceived:
		err = json.Unmarshal(body, &v.acked)
	case wire.FrameExit:
		return status, true, json.Unmarshal(body, &status)
	default:
		err = fmt.Errorf("unexpected frame %q", kind)
	}
	return status, ended, err
}

func (v *terminal) exitStatus() int {
	v.t.Helper()
	for {
		status, ended, err := v.next()
		must(v.t, err)
		if ended {
			return status
		}
	}
}

func (v *terminal) shows(text string) {
	v.t.Helper()
	for !strings.Contains(v.stdout.String(), text) {
		if _, ended, err := v.next(); err != nil || ended {
			v.t.Fatalf("no %q in %q (ended: %v, %v)", text, v.stdout.String(), ended, err)
		}
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(deadline); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestOutputAndStatusOfACommand(t *testing.T) {
	for script, want := range map[string]struct {
		stdout, stderr string
		status         int
	}{
		"echo out; echo err >&2; exit 7": {"out\n", "err\n", 7},
		"true":                           {"", "", 0},
		"kill -KILL $$":                  {"", "", 128 + 9},
		"kill -TERM $$":                  {"", "", 128 + 15},
		"printf %300000d 1 | wc -c":      {"300000\n", "", 0},
	} {
		v := attached(t, started(t, shellSession(script)), shellSession(script), true)
		status := v.exitStatus()
		if status != want.status || v.stdout.String() != want.stdout || v.stderr.String() != want.stderr {
			t.Errorf("%s: %d, %q, %q", script, status, v.stdout.String(), v.stderr.String())
		}
		if !v.reply.New || v.reply.Received != 0 || v.reply.Start != 0 {
			t.Errorf("%s: %+v", script, v.reply)
		}
	}
}

func TestInputIsAcknowledgedAndEnds(t *testing.T) {
	v := attached(t, started(t, shellSession("cat; echo end")), shellSession(""), true)
	must(t, v.frames.Send(wire.FrameInput, []byte("one ")))
	v.shows("one ")
	must(t, v.frames.Send(wire.FrameInput, []byte("two\n")))
	must(t, v.frames.Send(wire.FrameInputEnd, nil))
	if status := v.exitStatus(); status != 0 || v.stdout.String() != "one two\nend\n" || v.acked != 8 {
		t.Fatalf("%d, %q, %d bytes acknowledged", status, v.stdout.String(), v.acked)
	}
}

func TestACommandHasItsFolderAndEnvironment(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("KEPT", "of the container")
	t.Setenv("CHANGED", "of the container")
	wanted := shellSession(`pwd; echo "$KEPT, $CHANGED, $ADDED"`)
	wanted.Directory = folder
	wanted.Environment = map[string]string{"CHANGED": "of the session", "ADDED": "a=b"}
	v := attached(t, started(t, wanted), wanted, true)
	v.exitStatus()
	if want := folder + "\nof the container, of the session, a=b\n"; v.stdout.String() != want {
		t.Fatalf("%q, and not %q", v.stdout.String(), want)
	}
}

func TestATerminalHasASizeThatChanges(t *testing.T) {
	wanted := shellSession(`tty >/dev/null && trap 'stty size; exit 3' WINCH && stty size && while :; do sleep 0.02; done`)
	wanted.Terminal, wanted.Rows, wanted.Columns = true, 24, 80
	v := attached(t, started(t, wanted), wanted, true)
	v.shows("24 80")
	must(t, v.frames.SendJSON(wire.FrameSize, [2]uint16{50, 132}))
	if status := v.exitStatus(); status != 3 || !strings.Contains(v.stdout.String(), "50 132") {
		t.Fatalf("%d, %q", status, v.stdout.String())
	}
}

func TestATerminalThatComesBackIsDrawnAgain(t *testing.T) {
	wanted := shellSession(`trap 'echo drawn' WINCH; echo ready; while :; do sleep 0.02; done`)
	wanted.Terminal, wanted.Rows, wanted.Columns = true, 24, 80
	running := started(t, wanted)
	v := attached(t, running, wanted, true)
	v.shows("ready")
	must(t, v.frames.Close())
	again := attached(t, running, wanted, false)
	again.shows("drawn")
}

func TestCtrlCInterruptsTheCommandOfATerminal(t *testing.T) {
	wanted := shellSession("echo ready; exec sleep 100")
	wanted.Terminal, wanted.Rows, wanted.Columns = true, 24, 80
	v := attached(t, started(t, wanted), wanted, true)
	v.shows("ready")
	must(t, v.frames.Send(wire.FrameInput, []byte{3}))
	if status := v.exitStatus(); status != 128+2 {
		t.Fatal(status)
	}
}

func TestOutputGoesOnWhereALinkWasLost(t *testing.T) {
	wanted := shellSession("echo first; read line; echo second $line; read line")
	running := started(t, wanted)
	v := attached(t, running, wanted, true)
	must(t, v.frames.Send(wire.FrameInput, []byte("in\n")))
	v.shows("second in\n")
	must(t, v.frames.Close())
	// The last four bytes did not get through.
	wanted.Seen = int64(v.stdout.Len() - 4)
	again := attached(t, running, wanted, false)
	if again.reply.New || again.reply.Received != 3 || again.reply.Start != wanted.Seen {
		t.Fatalf("%+v", again.reply)
	}
	must(t, again.frames.Send(wire.FrameInputEnd, nil))
	if status := again.exitStatus(); status != 1 || again.stdout.String() != " in\n" {
		t.Fatalf("%d, %q", status, again.stdout.String())
	}
}

// Seen may be more than there ever was, or less than is kept.
func TestOutputThatIsNotKeptIsLeftOut(t *testing.T) {
	wanted := shellSession("printf %600000d 1; echo; echo end")
	running := started(t, wanted)
	eventually(t, "the command exits without anybody attached", func() bool { return !running.isRunning() })
	v := attached(t, running, wanted, false)
	all := int64(600_000 + len("\nend\n"))
	if v.reply.Start < all-maxKeptOutput || v.reply.Start == 0 {
		t.Fatalf("from %d on", v.reply.Start)
	}
	if status := v.exitStatus(); status != 0 || int64(v.stdout.Len()) != all-v.reply.Start || !strings.HasSuffix(v.stdout.String(), "1\nend\n") {
		t.Fatalf("%d, %d bytes from %d on", status, v.stdout.Len(), v.reply.Start)
	}
	wanted.Seen = all + 1000
	if again := attached(t, running, wanted, false); again.reply.Start != all || again.exitStatus() != 0 || again.stdout.Len() != 0 {
		t.Errorf("%+v, %q", again.reply, again.stdout.String())
	}
}

// A viewer that does not read holds the command up: otherwise its output would be lost, or fill the memory.
func TestASlowViewerHoldsTheCommandUp(t *testing.T) {
	const size = 2_000_000
	// It writes once the viewer is there: nobody else would hold it up.
	wanted := shellSession(fmt.Sprintf("read line; printf %%%dd 1", size))
	running := started(t, wanted)
	v := attached(t, running, wanted, true)
	must(t, v.frames.Send(wire.FrameInput, []byte("go\n")))
	eventually(t, "output is kept", func() bool {
		running.lock.Lock()
		defer running.lock.Unlock()
		return running.end > 100_000
	})
	time.Sleep(100 * time.Millisecond)
	running.lock.Lock()
	end, kept := running.end, running.end-running.start
	running.lock.Unlock()
	if end >= size || kept > maxKeptOutput {
		t.Errorf("%d bytes are read, %d kept", end, kept)
	}
	if status := v.exitStatus(); status != 0 || v.stdout.Len() != size {
		t.Fatalf("%d, %d bytes", status, v.stdout.Len())
	}
}

func TestANewerViewerReplacesTheOneBefore(t *testing.T) {
	wanted := shellSession("read line; echo $line")
	running := started(t, wanted)
	before := attached(t, running, wanted, true)
	after := attached(t, running, wanted, false)
	if _, _, err := before.next(); err == nil {
		t.Error("the one before is still served")
	}
	must(t, after.frames.Send(wire.FrameInput, []byte("text\n")))
	if status := after.exitStatus(); status != 0 || after.stdout.String() != "text\n" {
		t.Fatalf("%d, %q", status, after.stdout.String())
	}
}

func TestAViewerThatIsDetachedIsNotToldOfTheExit(t *testing.T) {
	wanted := shellSession("echo ready; exec sleep 100")
	running := started(t, wanted)
	v := attached(t, running, wanted, true)
	v.shows("ready")
	running.detachViewer()
	running.hangUp()
	if _, ended, err := v.next(); err == nil || ended {
		t.Fatal(ended, err)
	}
}

func TestASignalReachesTheWholeProcessGroup(t *testing.T) {
	wanted := shellSession("trap 'echo parent; exit 4' USR1; sh -c 'trap \"echo child\" USR1; echo ready; while :; do sleep 0.02; done' & wait")
	running := started(t, wanted)
	v := attached(t, running, wanted, true)
	v.shows("ready")
	running.signal(syscall.SIGUSR1)
	v.shows("parent")
	v.shows("child")
	if status := v.exitStatus(); status != 4 {
		t.Fatal(status)
	}
	// Nothing is sent to a process group of that number later.
	running.signal(syscall.SIGUSR1)
}

func TestHangingUpEndsAllProcesses(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	wanted := shellSession("sleep 100 & echo $! >" + pids + "; echo $$ >>" + pids + "; echo ready; wait")
	running := started(t, wanted)
	v := attached(t, running, wanted, true)
	v.shows("ready")
	running.hangUp()
	if status := v.exitStatus(); status != 128+1 {
		t.Errorf("status %d", status)
	}
	text, err := os.ReadFile(pids)
	must(t, err)
	for _, line := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(line)
		must(t, err)
		eventually(t, line+" is gone", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
	}
	running.hangUp()
}

// A process in the background that has the output open would hold up the exit for ever.
func TestAProcessInTheBackgroundDoesNotDelayTheExit(t *testing.T) {
	wanted := shellSession("sleep 100 & echo done; exit 5")
	running := started(t, wanted)
	began := time.Now()
	v := attached(t, running, wanted, true)
	if status := v.exitStatus(); status != 5 || v.stdout.String() != "done\n" {
		t.Fatalf("%d, %q", status, v.stdout.String())
	}
	if passed := time.Since(began); passed > drainTimeout+2*time.Second {
		t.Errorf("after %v", passed)
	}
}

func TestACommandThatCanNotBeStartedSaysWhy(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "text"), "no program", 0o644)
	write(t, filepath.Join(folder, "broken"), "no program either", 0o755)
	t.Setenv("PATH", folder)
	for message, wanted := range map[string]wire.Session{
		"absent not found in the container, on PATH " + folder: {Command: []string{"absent"}},
		"text not found in the container, on PATH " + folder:   {Command: []string{"text"}},
		"absent not found in the container, on PATH /nowhere":  {Command: []string{"absent"}, Environment: map[string]string{"PATH": "/nowhere"}},
		"can't run ./absent: ":                                 {Command: []string{"./absent"}, Directory: folder},
		"can't run broken: ":                                   {Command: []string{"broken"}},
		"can't use the working directory /absent: ":            {Command: []string{"/bin/true"}, Directory: "/absent"},
		"can't use the working directory " + folder + "/text: not a directory": {
			Command: []string{"/bin/true"}, Directory: folder + "/text"},
	} {
		running, err := startSession(testReaper(), wanted)
		if err == nil {
			running.hangUp()
		}
		if err == nil || !strings.HasPrefix(err.Error(), message) {
			t.Errorf("%v, and not %s", err, message)
		}
	}
}

func TestAProgramOfAFolderIsFound(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "bin/run"), "#!/bin/sh\necho ran in $PWD", 0o755)
	wanted := wire.Session{Command: []string{"bin/run"}, Directory: folder}
	v := attached(t, started(t, wanted), wanted, true)
	if status := v.exitStatus(); status != 0 || v.stdout.String() != "ran in "+folder+"\n" {
		t.Fatalf("%d, %q", status, v.stdout.String())
	}
	// The first folder of the PATH that has it counts, whose name may be a folder's elsewhere.
	must(t, os.MkdirAll(filepath.Join(folder, "first/run"), 0o755))
	path := "PATH=" + folder + "/first:" + folder + "/bin"
	found, err := findProgram("run", []string{"PATH=/nowhere", path}, "")
	must(t, err)
	if found != filepath.Join(folder, "bin/run") {
		t.Error(found)
	}
	if found, err := findProgram("sh", nil, ""); err != nil || !strings.HasSuffix(found, "/sh") {
		t.Errorf("without a PATH: %s, %v", found, err)
	}
}

func TestWithoutACommandThereIsAShell(t *testing.T) {
	if shell := findShell(); len(shell) != 1 || !slices.Contains([]string{"/bin/bash", "/bin/sh"}, shell[0]) {
		t.Fatal(shell)
	}
	v := attached(t, started(t, wire.Session{}), wire.Session{}, true)
	must(t, v.frames.Send(wire.FrameInput, []byte("echo $((6 * 7)); exit 9\n")))
	if status := v.exitStatus(); status != 9 || v.stdout.String() != "42\n" {
		t.Fatalf("%d, %q, %q", status, v.stdout.String(), v.stderr.String())
	}
}

func TestFramesThatMakeNoSenseAreIgnored(t *testing.T) {
	wanted := shellSession("read line; echo $line")
	v := attached(t, started(t, wanted), wanted, true)
	must(t, v.frames.Send(wire.FrameSize, []byte("no size")))
	must(t, v.frames.Send(wire.FrameSize, []byte("[24, 80]")))
	must(t, v.frames.Send(wire.FrameExit, []byte("0")))
	must(t, v.frames.Send(wire.FrameInput, []byte("text\n")))
	if status := v.exitStatus(); status != 0 || v.stdout.String() != "text\n" {
		t.Fatalf("%d, %q", status, v.stdout.String())
	}
}

// All output of a command arrives, also where it has ended long before it is read: the rest of 38 kB was lost.
func TestSlowViewerGetsAll(t *testing.T) {
	wanted := shellSession(`read line; echo a; sleep 0.2; i=0; while [ $i -lt 3000 ]; do printf '%0100d\n' $i; i=$((i+1)); done; echo end`)
	running := started(t, wanted)
	near, far := net.Pipe() // it has no buffer: a link with a full window
	t.Cleanup(func() { near.Close() })
	go func() { _ = running.attach(far, wanted, true) }()
	v := &terminal{t: t, frames: wire.NewFrames(near, wire.SessionLimits.Lookup)}
	must(t, wire.Receive(near, &v.reply))
	must(t, v.frames.Send(wire.FrameInput, []byte("go\n")))
	time.Sleep(2 * time.Second)
	v.exitStatus()
	if text := v.stdout.String(); !strings.HasSuffix(text, "\nend\n") || len(text) != 2+3000*101+4 {
		t.Fatalf("%d bytes, the last are %q", len(text), text[max(0, len(text)-20):])
	}
}

func TestTheEndOfInputComesAfterWhatALostLinkHasLeft(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	wanted := shellSession("until [ -e " + ready + " ]; do sleep 0.02; done; wc -c")
	running := started(t, wanted)
	first := attached(t, running, wanted, true)
	// More than a pipe holds: the write waits for the command.
	must(t, first.frames.Send(wire.FrameInput, bytes.Repeat([]byte("x"), 200_000)))
	eventually(t, "it is counted", func() bool {
		running.lock.Lock()
		defer running.lock.Unlock()
		return running.received == 200_000
	})
	must(t, first.frames.Close())
	second := attached(t, running, wanted, false)
	must(t, second.frames.Send(wire.FrameInputEnd, nil))
	time.Sleep(100 * time.Millisecond)
	must(t, os.WriteFile(ready, nil, 0o600))
	if status, shown := second.exitStatus(), second.stdout.String(); status != 0 || shown != "200000\n" {
		t.Errorf("the command read %q bytes, and ended with %d", shown, status)
	}
}
