//go:build !windows

package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"composeplat/link/internal/container"
)

// The test program is the agent and `up` too, so that both ends are real processes, which can be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "agent" {
		var err error
		if os.Args[2] == "hold" {
			err = container.Hold(os.Args[3], os.Args[4:])
		} else {
			err = container.Connect(os.Args[3])
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == "up" {
		config, err := ReadConfig(os.Args[2])
		if err != nil {
			os.Exit(1)
		}
		os.Exit(Up(config, NewEvents(os.Stderr)))
	}
	if len(os.Args) == 3 && os.Args[1] == "exec" {
		status, err := Exec(os.Args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// A world is a machine and a container in two folders, and what happens between them.
type world struct {
	t       *testing.T
	root    string
	local   string
	config  *Config
	agent   *exec.Cmd
	clients int

	up     *client
	typed  *io.PipeWriter
	status chan int
	// dialer is how the agent is reached, if not by its command.
	dialer dialer
	failed chan error

	lock    sync.Mutex
	events  []Event
	shown   bytes.Buffer
	carrier io.Closer
	broken  bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir()}
	w.local = filepath.Join(w.root, "here")
	for _, folder := range []string{"here", "there", "state", "run"} {
		must(t, os.Mkdir(filepath.Join(w.root, folder), 0o755))
	}
	w.config = &Config{
		State:        filepath.Join(w.root, "state"),
		Folders:      []FolderConfig{{Local: w.here(""), Remote: w.there("")}},
		AgentCommand: []string{os.Args[0], "agent", "connect", filepath.Join(w.root, "run", "socket")},
		Command:      []string{"sleep", "1000"},
	}
	return w
}

func (w *world) here(name string) string  { return filepath.Join(w.local, name) }
func (w *world) there(name string) string { return filepath.Join(w.root, "there", name) }

// usedVolume makes the marker of a volume that a machine was synced with, and returns its path.
func (w *world) usedVolume() string {
	w.t.Helper()
	marker := filepath.Join(w.root, "marker")
	write(w.t, marker, "volume\n")
	write(w.t, marker+".used", "")
	return marker
}

// hold starts the agent, as a container that is restarted.
func (w *world) hold(change func(*exec.Cmd), markers ...string) {
	w.t.Helper()
	w.stopAgent()
	w.agent = exec.Command(os.Args[0], append([]string{"agent", "hold", filepath.Join(w.root, "run", "socket")}, markers...)...)
	w.agent.Stderr = os.Stderr
	if change != nil {
		change(w.agent)
	}
	must(w.t, w.agent.Start())
	w.t.Cleanup(w.stopAgent)
}

func (w *world) stopAgent() {
	if w.agent != nil {
		_ = w.agent.Process.Kill()
		_ = w.agent.Wait()
		w.agent = nil
	}
}

// Write takes the events.
func (w *world) Write(line []byte) (int, error) {
	var event Event
	if err := json.Unmarshal(line, &event); err != nil {
		return 0, err
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	w.events = append(w.events, event)
	return len(line), nil
}

type screen struct{ w *world }

func (s screen) Write(text []byte) (int, error) {
	s.w.lock.Lock()
	defer s.w.lock.Unlock()
	return s.w.shown.Write(text)
}

func (w *world) screen() string {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.shown.String()
}

// open implements reach, so that the test can cut what it has opened.
func (w *world) open(ctx context.Context) (io.ReadWriteCloser, string, error) {
	w.lock.Lock()
	broken := w.broken
	w.lock.Unlock()
	if broken {
		return nil, "", fmt.Errorf("no way")
	}
	through := w.dialer
	if through == nil {
		through = processDialer{w.config.AgentCommand}
	}
	carrier, pod, err := through.open(ctx)
	w.lock.Lock()
	defer w.lock.Unlock()
	w.carrier = carrier
	return carrier, pod, err
}

func (w *world) cut() {
	w.lock.Lock()
	carrier := w.carrier
	w.lock.Unlock()
	if carrier != nil {
		carrier.Close()
	}
}

func (w *world) setBroken(broken bool) {
	w.lock.Lock()
	w.broken = broken
	w.lock.Unlock()
	if broken {
		w.cut()
	}
}

// start runs `up`; stop ends it.
func (w *world) start() {
	w.t.Helper()
	if w.agent == nil {
		w.hold(nil)
	}
	w.startAgainst()
}

// startAgainst runs `up` against whatever it is reached through.
func (w *world) startAgainst() {
	w.clients++
	typed, typing := io.Pipe()
	u := &client{config: w.config, events: NewEvents(w), name: fmt.Sprintf("%s-%d", w.root, w.clients),
		session: newSession(w.config), signals: make(chan os.Signal, 4)}
	u.session.input, u.session.output, u.session.errors = typed, screen{w}, screen{w}
	ended, failed := make(chan int, 1), make(chan error, 1)
	w.up, w.typed, w.status, w.failed = u, typing, ended, failed
	go func() {
		status, err := u.run(w)
		if err != nil {
			failed <- err
		}
		ended <- status
	}()
	w.t.Cleanup(w.stop)
}

func (w *world) stop() {
	if w.up == nil {
		return
	}
	w.typed.Close()
	for tries := 0; ; tries++ {
		select {
		case w.up.signals <- syscall.SIGTERM:
		default:
		}
		select {
		case <-w.status:
			w.up = nil
			return
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// startSynced waits until both sides have been the same.
func (w *world) startSynced() {
	w.t.Helper()
	before := w.count("synced")
	w.start()
	w.eventually("synced", func() bool { return w.count("synced") > before })
}

func (w *world) all(kind string) []Event {
	w.lock.Lock()
	defer w.lock.Unlock()
	var found []Event
	for _, event := range w.events {
		if event["event"] == kind {
			found = append(found, event)
		}
	}
	return found
}

func (w *world) count(kind string) int { return len(w.all(kind)) }

func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	for until := time.Now().Add(eventTimeout); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	w.t.Fatalf("never: %s\nevents: %v\nscreen: %s", what, w.events, w.shown.String())
}

func (w *world) arrives(path, content string) {
	w.t.Helper()
	w.eventually(path+" holds "+content, func() bool { return read(path) == content })
}

func (w *world) goes(path string) {
	w.t.Helper()
	w.eventually(path+" is gone", func() bool {
		_, err := os.Lstat(path)
		return os.IsNotExist(err)
	})
}
