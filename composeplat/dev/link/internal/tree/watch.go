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
	quietPeriod = 20 * time.Millisecond
	// finishedPeriod is the quiet period where every file that was written is closed: the next file of a few has time to begin.
	finishedPeriod = 4 * time.Millisecond
	// maxFinished is how many such files may be: more belong to a change of many files, such as a checkout.
	maxFinished   = 8
	maxGatherTime = 250 * time.Millisecond
	pollInterval  = time.Second
)

// A Watch collects the folders in which something changed, and signals after a moment without changes.
type Watch struct {
	place   beneath.Place
	ignorer ignore.Ignorer
	changed chan struct{}
	wakeup  chan struct{}
	ended   chan struct{}
	// silent is closed when nothing more is signaled.
	silent chan struct{}
	once   sync.Once

	lock    sync.Mutex
	touched map[string]bool
	all     bool
	problem string
	writes  writes
	notifier
}

// NewWatch starts watching. If that fails, it signals every second that anything may have changed.
func NewWatch(place beneath.Place, ignorer ignore.Ignorer) *Watch {
	w := &Watch{
		place: place, ignorer: ignorer,
		changed: make(chan struct{}, 1), wakeup: make(chan struct{}, 1), ended: make(chan struct{}), silent: make(chan struct{}),
		touched: map[string]bool{}, all: true,
	}
	w.begin()
	go w.gather()
	return w
}

func (w *Watch) Changed() <-chan struct{} { return w.changed }

func (w *Watch) Error() string {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.problem
}

// TakeTouched returns the folders touched since the last call, and whether any other may be. Later ones are signaled.
func (w *Watch) TakeTouched() (touched map[string]bool, all bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	touched, all = w.touched, w.all
	w.touched, w.all = map[string]bool{}, false
	w.writes = writes{}
	return touched, all
}

func (w *Watch) Close() error {
	w.once.Do(func() {
		close(w.ended)
		<-w.silent
		w.end()
	})
	return nil
}

// open opens a folder below the root without following a link on the way.
func (w *Watch) open(folder string) (*beneath.Folder, error) {
	root, err := w.place.Open()
	if err != nil || folder == "" {
		return root, err
	}
	defer root.Close()
	return root.Folder(folder)
}

// visitInside calls a function for each folder in an open one that is not skipped.
func (w *Watch) visitInside(folder string, opened *beneath.Folder, visit func(string)) {
	entries, err := opened.Entries()
	if err != nil {
		return
	}
	for _, entry := range entries {
		if name := Join(folder, entry.Name()); entry.IsDir() && !w.isSkipped(name, true) {
			visit(name)
		}
	}
}

// touch records a folder. The lock must be held.
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
	case w.wakeup <- struct{}{}:
	default:
	}
}

func (w *Watch) gather() {
	defer close(w.silent)
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		select {
		case <-w.ended:
			return
		case <-poll.C:
			w.lock.Lock()
			if w.problem != "" || w.isBlind() {
				w.all = true
				w.lock.Unlock()
				w.signal()
			} else {
				w.lock.Unlock()
			}
		case <-w.wakeup:
			if !w.waitUntilQuiet() {
				return
			}
			w.signal()
		}
	}
}

// waitUntilQuiet returns false if the watch has ended.
func (w *Watch) waitUntilQuiet() bool {
	last := time.NewTimer(maxGatherTime)
	defer last.Stop()
	for {
		rest := time.NewTimer(w.quietPeriod())
		select {
		case <-rest.C:
			return true
		case <-w.wakeup:
			rest.Stop()
		case <-last.C:
			rest.Stop()
			return true
		case <-w.ended:
			rest.Stop()
			return false
		}
	}
}

func (w *Watch) quietPeriod() time.Duration {
	w.lock.Lock()
	defer w.lock.Unlock()
	if !w.all && w.problem == "" && w.writes.areFinished() {
		return finishedPeriod
	}
	return quietPeriod
}

func (w *Watch) signal() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *Watch) isSkipped(name string, folder bool) bool {
	if isTemporary(name) {
		return true
	}
	status, inside := w.ignorer.Ignore(name, folder)
	return status == ignore.IgnoreStatusIgnored && !inside
}

func isTemporary(name string) bool {
	return strings.HasPrefix(path.Base(name), TemporaryPrefix)
}
