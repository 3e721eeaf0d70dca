//go:build !linux || portable

package tree

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// cantWatch is the problem of a system that can't watch all folders: each of kqueue's watches takes an open file.
const cantWatch = "can't watch for changes, scanning every second instead: "

// A notifier is the system's own watching: kqueue, or ReadDirectoryChangesW. Neither says which entry of a folder is
// itself a folder that was moved, so each event is followed by a look at the entry.
type notifier struct {
	watcher *fsnotify.Watcher
	top     string
	watched map[string]bool
}

func (w *Watch) begin() {
	w.watched = map[string]bool{}
	watcher, err := fsnotify.NewBufferedWatcher(1024)
	if err != nil {
		w.problem = cantWatch + err.Error()
		return
	}
	w.watcher = watcher
	w.lock.Lock()
	w.add("")
	w.lock.Unlock()
	go w.read()
}

func (w *Watch) end() {
	if w.watcher != nil {
		w.watcher.Close()
	}
}

// isBlind reports whether the root itself was not watched: it may exist again, so it is watched now.
func (w *Watch) isBlind() bool {
	if w.watched[""] || w.watcher == nil {
		return false
	}
	w.add("")
	return true
}

// observe watches a folder alone, by a path to it.
func (w *Watch) observe(folder, path string) bool {
	if folder == "" {
		w.top = path
	}
	if err := w.watcher.Add(path); err != nil {
		if w.problem == "" && !errors.Is(err, fs.ErrNotExist) {
			w.problem = cantWatch + err.Error()
			w.wake()
		}
		return false
	}
	w.watched[folder] = true
	return true
}

// drop removes the watches of a folder that was moved or deleted, and of those in it.
func (w *Watch) drop(folder string) {
	for name := range w.watched {
		if name == folder || strings.HasPrefix(name, folder+"/") || folder == "" {
			_ = w.watcher.Remove(filepath.Join(w.top, filepath.FromSlash(name)))
			delete(w.watched, name)
		}
	}
}

func (w *Watch) read() {
	for {
		select {
		case event, open := <-w.watcher.Events:
			if !open {
				return
			}
			w.lock.Lock()
			w.handle(event)
			w.lock.Unlock()
		case _, open := <-w.watcher.Errors:
			if !open {
				return
			}
			// Events were lost, or a folder can't be read any more.
			w.lock.Lock()
			w.drop("")
			w.add("")
			w.touchAll()
			w.lock.Unlock()
		}
	}
}

func (w *Watch) handle(event fsnotify.Event) {
	below, err := filepath.Rel(w.top, event.Name)
	if err != nil || !filepath.IsLocal(below) {
		return
	}
	gone := event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename)
	name := filepath.ToSlash(below)
	if name == "." {
		if gone {
			w.drop("")
			w.touchAll()
		} else {
			w.touch("")
		}
		return
	}
	isFolder := w.watched[name]
	if event.Has(fsnotify.Create) {
		opened, err := w.open(name)
		if isFolder = err == nil; isFolder {
			opened.Close()
		}
	}
	if w.isSkipped(name, isFolder) {
		return
	}
	if isFolder && (gone || event.Has(fsnotify.Create)) {
		w.drop(name)
	}
	if isFolder && event.Has(fsnotify.Create) {
		w.add(name)
	}
	w.touch(parentPath(name))
	if isFolder && !gone {
		w.touch(name)
	}
}
