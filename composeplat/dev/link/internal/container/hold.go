//go:build !windows

// Package container is the agent in a development container. It owns the container's process 1, preparing its volume, and
// serving the linked machine: folders, files, ports and the session.
//
// It must not know Compose or Kubernetes: it is in images whose content is the user's, and gets paths, ports and commands from
// the machine.
package container

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mutagen-io/mutagen/pkg/multiplexing"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/single"
	"composeplat/link/internal/tree"
	"composeplat/link/internal/wire"
)

// An agent is the state of the whole program. One machine is linked at a time: the one that connected last.
type agent struct {
	boot    string
	markers []string
	folder  string
	reaper  *reaper

	lock    sync.Mutex
	current *machineLink
	// A machine that was replaced by another one is not served again.
	seen    map[string]bool
	newest  string
	session *session
	// ending is closed when the session before this one has ended.
	ending chan struct{}
	trees  map[string]*keptTree
	files  map[string]beneath.Place
	synced bool
	// turn is that of a container without markers.
	turn turn
}

// A keptTree serves one stream at a time.
type keptTree struct {
	*tree.Tree
	busy sync.Mutex
}

type machineLink struct {
	*wire.Link
	machine string
	control *multiplexing.Stream

	sending   sync.Mutex
	listeners []net.Listener
	released  bool
}

// Hold serves the socket until it gets SIGTERM or SIGINT.
func Hold(socket string, markers []string) error {
	a := &agent{
		boot: rand.Text(), markers: markers, folder: filepath.Dir(socket), reaper: newReaper(),
		seen: map[string]bool{}, trees: map[string]*keptTree{}, files: map[string]beneath.Place{},
	}
	if err := os.MkdirAll(a.folder, 0o700); err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go wire.Accept(listener, func(connection net.Conn) { go a.serve(connection) })
	// A process inherits ignored signals: SIGHUP must reach the processes of sessions.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	<-signals
	listener.Close()
	a.lock.Lock()
	running, current := a.session, a.current
	a.lock.Unlock()
	// The link ends first: the machine must not take the end of the container for the end of the session.
	if current != nil {
		current.Close()
	}
	if running != nil {
		running.signal(syscall.SIGTERM)
		running.hangUp()
	}
	return nil
}

func (a *agent) serve(connection net.Conn) {
	link, err := wire.Start(connection, false)
	if err != nil {
		return
	}
	defer link.Close()
	l := &machineLink{Link: link}
	defer a.unlink(l)
	for {
		stream, err := link.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go a.serveStream(l, stream)
	}
}

func (a *agent) serveStream(l *machineLink, stream *multiplexing.Stream) {
	var open wire.Open
	if err := wire.Receive(stream, &open); err != nil {
		stream.Close()
		return
	}
	if open.Kind == "control" {
		a.serveControl(l, stream)
		return
	}
	a.lock.Lock()
	current := a.current == l
	a.lock.Unlock()
	if !current {
		stream.Close()
		return
	}
	switch open.Kind {
	case "tree":
		a.serveTree(open.Body, stream)
	case "file":
		var path string
		if json.Unmarshal(open.Body, &path) == nil {
			a.serveFile(path, stream)
		}
		stream.Close()
	case "session":
		a.serveSession(l, open.Body, stream)
	case "forward":
		serveForward(open.Body, stream)
	case "reverse":
		a.serveReverse(l, open.Body)
		stream.Close()
	default:
		stream.Close()
	}
}

// serveControl welcomes a machine, and dismisses the one before it.
func (a *agent) serveControl(l *machineLink, stream *multiplexing.Stream) {
	defer stream.Close()
	var hello wire.Hello
	if err := wire.Receive(stream, &hello); err != nil {
		return
	}
	l.machine, l.control = hello.Link, stream
	a.lock.Lock()
	if a.seen[hello.Link] && hello.Link != a.newest {
		a.lock.Unlock()
		_ = wire.Send(stream, wire.Welcome{TakenOver: true})
		return
	}
	a.seen[hello.Link], a.newest = true, hello.Link
	before, running := a.current, a.session
	a.current = l
	a.lock.Unlock()
	if before != nil {
		before.closeListeners()
		if before.machine != l.machine {
			before.notify(wire.Notice{TakenOver: true})
			time.AfterFunc(time.Second, func() { before.Close() })
		} else {
			before.Close()
		}
	}
	if running != nil && running.id != hello.Session {
		a.lock.Lock()
		if a.session == running {
			a.session = nil
		}
		earlier, over := a.ending, make(chan struct{})
		a.ending = over
		a.lock.Unlock()
		running.detachViewer()
		go func(running *session) {
			running.hangUp()
			if earlier != nil {
				<-earlier
			}
			close(over)
		}(running)
		running = nil
	}
	welcome := wire.Welcome{Boot: a.boot, Alive: running != nil}
	if err := a.describeVolume(&welcome); err != nil {
		welcome.Error = err.Error()
	} else if id := a.takeTurn(hello.Source); id != "" {
		welcome.Volume += "-" + id
		welcome.Boot += "-" + id
	}
	l.sending.Lock()
	err := wire.Send(stream, welcome)
	l.sending.Unlock()
	for err == nil {
		var notice wire.Notice
		if err = wire.Receive(stream, &notice); err == nil {
			a.handleNotice(notice)
		}
	}
}

func (a *agent) handleNotice(notice wire.Notice) {
	a.lock.Lock()
	running := a.session
	a.lock.Unlock()
	switch {
	case notice.Synced:
		a.markSynced()
	case notice.End && running != nil:
		go running.hangUp()
	case notice.Signal != 0 && running != nil:
		running.signal(syscall.Signal(notice.Signal))
	}
}

func (l *machineLink) notify(notice wire.Notice) {
	l.sending.Lock()
	defer l.sending.Unlock()
	_ = wire.Send(l.control, notice)
}

// keepListener keeps a listener until closeListeners. After that, it refuses the listener.
func (l *machineLink) keepListener(listener net.Listener) bool {
	l.sending.Lock()
	defer l.sending.Unlock()
	if l.released {
		return false
	}
	l.listeners = append(l.listeners, listener)
	return true
}

func (l *machineLink) closeListeners() {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.released = true
	for _, port := range l.listeners {
		port.Close()
	}
	l.listeners = nil
}

func (a *agent) unlink(l *machineLink) {
	l.closeListeners()
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.current == l {
		a.current = nil
	}
}

// describeVolume sets the volume's name and whether it is fresh. Without a marker, it is the container's own disk.
func (a *agent) describeVolume(welcome *wire.Welcome) error {
	if len(a.markers) == 0 {
		a.lock.Lock()
		defer a.lock.Unlock()
		welcome.Volume, welcome.Fresh = a.boot, !a.synced
		return nil
	}
	var names []string
	welcome.Fresh = true
	for _, marker := range a.markers {
		id, err := os.ReadFile(marker)
		if err != nil {
			return fmt.Errorf("the development volume is not initialized: %w", err)
		}
		names = append(names, strings.TrimSpace(string(id)))
		if _, err := os.Lstat(marker + syncedSuffix); err == nil {
			welcome.Fresh = false
		}
	}
	welcome.Volume = strings.Join(names, "+")
	return nil
}

const syncedSuffix = ".used"

func (a *agent) markSynced() {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.synced = true
	for _, marker := range a.markers {
		if err := os.WriteFile(marker+syncedSuffix, nil, 0o666); err != nil {
			fmt.Fprintln(os.Stderr, "platform-agent: the next session takes the volume for a new one:", err)
		}
	}
}

// serveTree serves a folder. Its scan outlives the link: a new link needs no new one.
func (a *agent) serveTree(body json.RawMessage, stream *multiplexing.Stream) {
	defer stream.Close()
	var wanted wire.Folder
	if err := json.Unmarshal(body, &wanted); err != nil {
		return
	}
	kept, err := a.findTree(wanted)
	reply := wire.AttachReply{}
	if err != nil {
		reply.Error = err.Error()
		_ = wire.Send(stream, reply)
		return
	}
	kept.busy.Lock()
	defer kept.busy.Unlock()
	if wire.Send(stream, reply) != nil {
		return
	}
	_ = tree.Serve(kept.Tree, stream)
}

func (a *agent) findTree(wanted wire.Folder) (*keptTree, error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	key := wanted.Root + "\x00" + strings.Join(wanted.Ignores, "\x00")
	if kept := a.trees[key]; kept != nil {
		return kept, nil
	}
	place, err := beneath.Find(wanted.Root, "")
	if err != nil {
		return nil, err
	}
	if err := place.Make(0o777); err != nil {
		return nil, err
	}
	made, err := tree.NewTree(place, wanted.Ignores, place.Below(tree.TemporaryPrefix+"staging"), nil)
	if err != nil {
		return nil, err
	}
	made.ProbeModesInContainer()
	for other, old := range a.trees {
		if strings.HasPrefix(other, wanted.Root+"\x00") {
			old.Close()
			delete(a.trees, other)
		}
	}
	kept := &keptTree{Tree: made}
	a.trees[key] = kept
	return kept, nil
}

// serveFile serves a single file. Its path is resolved once: a symbolic link that is made there later is not followed.
func (a *agent) serveFile(path string, stream *multiplexing.Stream) {
	a.lock.Lock()
	place, known := a.files[path]
	var err error
	if !known {
		if place, err = beneath.Find(path, ""); err == nil {
			a.files[path] = place
		}
	}
	a.lock.Unlock()
	if err == nil {
		_ = single.Serve(place, a.folder, stream)
	}
}

func (a *agent) serveSession(l *machineLink, body json.RawMessage, stream *multiplexing.Stream) {
	defer stream.Close()
	var wanted wire.Session
	if err := json.Unmarshal(body, &wanted); err != nil {
		return
	}
	a.lock.Lock()
	ending := a.ending
	a.lock.Unlock()
	if ending != nil {
		// The command before may still have the ports of this one.
		<-ending
	}
	a.lock.Lock()
	if a.current != l {
		// The link was lost or replaced meanwhile: its command would run beside that of the next one.
		a.lock.Unlock()
		return
	}
	running := a.session
	fresh := running == nil || running.id != wanted.ID
	if fresh {
		var err error
		if running, err = startSession(a.reaper, wanted); err != nil {
			a.lock.Unlock()
			_ = wire.Send(stream, wire.AttachReply{Error: err.Error()})
			return
		}
		a.session = running
	}
	a.lock.Unlock()
	_ = running.attach(stream, wanted, fresh)
}
