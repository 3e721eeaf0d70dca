// Package container is the agent: it holds a development container open and serves the machine that is linked to it.
// It knows paths, ports and commands as it is told them, and nothing of Compose or Kubernetes.
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

// A holder is the agent's whole state. One machine is linked at a time: the one that came last.
type holder struct {
	boot    string
	markers []string
	place   string
	reaper  *reaper

	lock   sync.Mutex
	linked *linked
	// A machine that comes back after another one has come is not served again.
	seen    map[string]bool
	newest  string
	session *session
	trees   map[string]*keptTree
	files   map[string]beneath.Place
	used    bool
}

// A keptTree is served to one stream at a time.
type keptTree struct {
	*tree.Tree
	busy sync.Mutex
}

type linked struct {
	*wire.Link
	machine string
	control *multiplexing.Stream

	sending  sync.Mutex
	ports    []net.Listener
	released bool
}

// Hold serves at the socket until it is told to end.
func Hold(socket string, markers []string) error {
	h := &holder{
		boot: rand.Text(), markers: markers, place: filepath.Dir(socket), reaper: newReaper(),
		seen: map[string]bool{}, trees: map[string]*keptTree{}, files: map[string]beneath.Place{},
	}
	if err := os.MkdirAll(h.place, 0o700); err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go wire.Accept(listener, func(connection net.Conn) { go h.serve(connection) })
	// Whoever is started while a signal is ignored ignores it too: sessions must hear when they are hung up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	<-told
	listener.Close()
	h.lock.Lock()
	running, current := h.session, h.linked
	h.lock.Unlock()
	// The machine must not take the end of the container for the end of the program: another container may follow.
	if current != nil {
		current.Close()
	}
	if running != nil {
		running.signal(syscall.SIGTERM)
		running.hangUp()
	}
	return nil
}

func (h *holder) serve(connection net.Conn) {
	link, err := wire.Start(connection, false)
	if err != nil {
		return
	}
	defer link.Close()
	l := &linked{Link: link}
	defer h.leave(l)
	for {
		stream, err := link.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go h.open(l, stream)
	}
}

func (h *holder) open(l *linked, stream *multiplexing.Stream) {
	var open wire.Open
	if err := wire.Receive(stream, &open); err != nil {
		stream.Close()
		return
	}
	if open.Kind == "control" {
		h.control(l, stream)
		return
	}
	h.lock.Lock()
	current := h.linked == l
	h.lock.Unlock()
	if !current {
		stream.Close()
		return
	}
	switch open.Kind {
	case "tree":
		h.tree(open.Body, stream)
	case "file":
		var path string
		if json.Unmarshal(open.Body, &path) == nil {
			h.file(path, stream)
		}
		stream.Close()
	case "session":
		h.attach(open.Body, stream)
	case "forward":
		forward(open.Body, stream)
	case "reverse":
		h.reverse(l, open.Body)
		stream.Close()
	default:
		stream.Close()
	}
}

// control welcomes a machine, and sends the one before it away.
func (h *holder) control(l *linked, stream *multiplexing.Stream) {
	defer stream.Close()
	var hello wire.Hello
	if err := wire.Receive(stream, &hello); err != nil {
		return
	}
	l.machine, l.control = hello.Link, stream
	h.lock.Lock()
	if h.seen[hello.Link] && hello.Link != h.newest {
		h.lock.Unlock()
		_ = wire.Send(stream, wire.Welcome{Taken: true})
		return
	}
	h.seen[hello.Link], h.newest = true, hello.Link
	before, running := h.linked, h.session
	h.linked = l
	h.lock.Unlock()
	if before != nil {
		before.release()
		if before.machine != l.machine {
			before.notify(wire.Notice{Taken: true})
			time.AfterFunc(time.Second, func() { before.Close() })
		} else {
			before.Close()
		}
	}
	if running != nil && running.id != hello.Session {
		h.lock.Lock()
		if h.session == running {
			h.session = nil
		}
		h.lock.Unlock()
		running.dismiss()
		go running.hangUp()
		running = nil
	}
	welcome := wire.Welcome{Boot: h.boot, Alive: running != nil}
	if err := h.volume(&welcome); err != nil {
		welcome.Error = err.Error()
	}
	l.sending.Lock()
	err := wire.Send(stream, welcome)
	l.sending.Unlock()
	for err == nil {
		var notice wire.Notice
		if err = wire.Receive(stream, &notice); err == nil {
			h.noted(notice)
		}
	}
}

func (h *holder) noted(notice wire.Notice) {
	h.lock.Lock()
	running := h.session
	h.lock.Unlock()
	switch {
	case notice.Used:
		h.use()
	case notice.End && running != nil:
		go running.hangUp()
	case notice.Signal != 0 && running != nil:
		running.signal(syscall.Signal(notice.Signal))
	}
}

func (l *linked) notify(notice wire.Notice) {
	l.sending.Lock()
	defer l.sending.Unlock()
	_ = wire.Send(l.control, notice)
}

// listens keeps a listener until the link is released. If it is already, there is nothing to listen for.
func (l *linked) listens(listener net.Listener) bool {
	l.sending.Lock()
	defer l.sending.Unlock()
	if l.released {
		return false
	}
	l.ports = append(l.ports, listener)
	return true
}

func (l *linked) release() {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.released = true
	for _, port := range l.ports {
		port.Close()
	}
	l.ports = nil
}

func (h *holder) leave(l *linked) {
	l.release()
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.linked == l {
		h.linked = nil
	}
}

// volume says which volume this is. Without a marker it is as young as the container.
func (h *holder) volume(welcome *wire.Welcome) error {
	if len(h.markers) == 0 {
		h.lock.Lock()
		defer h.lock.Unlock()
		welcome.Volume, welcome.Fresh = h.boot, !h.used
		return nil
	}
	var names []string
	welcome.Fresh = true
	for _, marker := range h.markers {
		id, err := os.ReadFile(marker)
		if err != nil {
			return fmt.Errorf("the development volume is not prepared: %w", err)
		}
		names = append(names, strings.TrimSpace(string(id)))
		if _, err := os.Lstat(marker + usedSuffix); err == nil {
			welcome.Fresh = false
		}
	}
	welcome.Volume = strings.Join(names, "+")
	return nil
}

const usedSuffix = ".used"

func (h *holder) use() {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.used = true
	for _, marker := range h.markers {
		if err := os.WriteFile(marker+usedSuffix, nil, 0o666); err != nil {
			fmt.Fprintln(os.Stderr, "platform-agent: the volume is taken for a new one next time:", err)
		}
	}
}

// tree serves a folder. What is known of it outlives the link: a link that comes back costs no reading.
func (h *holder) tree(body json.RawMessage, stream *multiplexing.Stream) {
	defer stream.Close()
	var wanted wire.Folder
	if err := json.Unmarshal(body, &wanted); err != nil {
		return
	}
	kept, err := h.known(wanted)
	reply := wire.Attached{}
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

func (h *holder) known(wanted wire.Folder) (*keptTree, error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	key := wanted.Root + "\x00" + strings.Join(wanted.Ignores, "\x00")
	if kept := h.trees[key]; kept != nil {
		return kept, nil
	}
	place, err := beneath.Find(wanted.Root, "")
	if err != nil {
		return nil, err
	}
	if err := place.Make(0o777); err != nil {
		return nil, err
	}
	made, err := tree.NewTree(place, wanted.Ignores, place.Below(tree.Temporary+"staging"), nil)
	if err != nil {
		return nil, err
	}
	for other, old := range h.trees {
		if strings.HasPrefix(other, wanted.Root+"\x00") {
			old.Close()
			delete(h.trees, other)
		}
	}
	kept := &keptTree{Tree: made}
	h.trees[key] = kept
	return kept, nil
}

// file serves a single file. Where it lies is found once: a link that comes into its path later leads nowhere else.
func (h *holder) file(path string, stream *multiplexing.Stream) {
	h.lock.Lock()
	place, known := h.files[path]
	var err error
	if !known {
		if place, err = beneath.Find(path, ""); err == nil {
			h.files[path] = place
		}
	}
	h.lock.Unlock()
	if err == nil {
		_ = single.Serve(place, h.place, stream)
	}
}

func (h *holder) attach(body json.RawMessage, stream *multiplexing.Stream) {
	defer stream.Close()
	var wanted wire.Session
	if err := json.Unmarshal(body, &wanted); err != nil {
		return
	}
	h.lock.Lock()
	running := h.session
	fresh := running == nil || running.id != wanted.ID
	if fresh {
		var err error
		if running, err = begin(h.reaper, wanted); err != nil {
			h.lock.Unlock()
			_ = wire.Send(stream, wire.Attached{Error: err.Error()})
			return
		}
		h.session = running
	}
	h.lock.Unlock()
	_ = running.attach(stream, wanted, fresh)
}
