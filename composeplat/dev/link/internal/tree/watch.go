package tree

import (
	"path"
	"strings"
	"sync"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core/ignore"

	"composeplat/link/internal/beneath"
)

const (
	quiet    = 20 * time.Millisecond
	mostWait = 250 * time.Millisecond
	polling  = time.Second
)

// A Watch gathers the folders in which something happened, and says so after a moment of quiet.
type Watch struct {
	place   beneath.Place
	ignorer ignore.Ignorer
	changed chan struct{}
	kick    chan struct{}
	ended   chan struct{}
	once    sync.Once

	lock    sync.Mutex
	touched map[string]bool
	all     bool
	trouble string
	source
}

// NewWatch begins to watch. Where it can't, it says at each second that everything may have changed.
func NewWatch(place beneath.Place, ignorer ignore.Ignorer) *Watch {
	w := &Watch{
		place: place, ignorer: ignorer,
		changed: make(chan struct{}, 1), kick: make(chan struct{}, 1), ended: make(chan struct{}),
		touched: map[string]bool{}, all: true,
	}
	w.begin()
	go w.gather()
	return w
}

func (w *Watch) Changed() <-chan struct{} { return w.changed }

func (w *Watch) Trouble() string {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.trouble
}

// Take hands over what has happened since it was last called. What it leaves out will be signaled.
func (w *Watch) Take() (touched map[string]bool, all bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	touched, all = w.touched, w.all
	w.touched, w.all = map[string]bool{}, false
	return touched, all
}

func (w *Watch) Close() error {
	w.once.Do(func() {
		close(w.ended)
		w.end()
	})
	return nil
}

// touch notes folders; it must be called with the lock held.
func (w *Watch) touch(folder string) {
	w.touched[folder] = true
	w.wake()
}

func (w *Watch) touchAll() {
	w.all = true
	w.wake()
}

func (w *Watch) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

func (w *Watch) gather() {
	poll := time.NewTicker(polling)
	defer poll.Stop()
	for {
		select {
		case <-w.ended:
			return
		case <-poll.C:
			w.lock.Lock()
			if w.trouble != "" || w.blind() {
				w.all = true
				w.lock.Unlock()
				w.signal()
			} else {
				w.lock.Unlock()
			}
		case <-w.kick:
			w.settle()
			w.signal()
		}
	}
}

func (w *Watch) settle() {
	last := time.NewTimer(mostWait)
	defer last.Stop()
	for {
		rest := time.NewTimer(quiet)
		select {
		case <-rest.C:
			return
		case <-w.kick:
			rest.Stop()
		case <-last.C:
			rest.Stop()
			return
		case <-w.ended:
			rest.Stop()
			return
		}
	}
}

func (w *Watch) signal() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *Watch) skips(name string, folder bool) bool {
	if isTemporary(name) {
		return true
	}
	status, inside := w.ignorer.Ignore(name, folder)
	return status == ignore.IgnoreStatusIgnored && !inside
}

func isTemporary(name string) bool {
	return strings.HasPrefix(path.Base(name), Temporary)
}
