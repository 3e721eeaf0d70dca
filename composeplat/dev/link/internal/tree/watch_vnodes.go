//go:build !windows && (!linux || portable)

package tree

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"composeplat/link/internal/beneath"
)

// cantWatch is the problem of a system that can't watch everything: each of kqueue's watches takes an open file.
const cantWatch = "can't watch for changes, scanning every second instead: "

// A notifier watches each file and folder by itself, as kqueue does: an event of a folder says that entries came or went,
// and not which ones, so the folder is compared with what was known of it. General libraries know watches by path, and
// lose those of folders that are moved and of files that are deleted and created again.
type notifier struct {
	watchedPlace
	vnodes  *vnodes
	entries map[string]*watchedEntry
	names   map[int]string
}

// A watchedEntry is a file or folder that is known. What can't be watched, such as a link, is compared by its status.
type watchedEntry struct {
	id     int
	status beneath.Status
	// inside are the names of a folder's entries.
	inside map[string]bool
}

// unwatched is the number of an entry that is not watched by itself.
const unwatched = -1

// A vnodeEvent is what the system reports of a file or folder that is watched.
type vnodeEvent struct {
	id int
	// isGone means that its path may lead to another entry now.
	isGone bool
	// isOwn means that the folder itself was changed, and not what is in it.
	isOwn bool
}

func (w *Watch) begin() {
	w.entries, w.names = map[string]*watchedEntry{}, map[int]string{}
	opened, err := openVnodes()
	if err != nil {
		w.problem = cantWatch + err.Error()
		return
	}
	w.vnodes = opened
	w.lock.Lock()
	w.watchPlace()
	w.releaseAfterProblem()
	w.lock.Unlock()
	go w.read()
}

func (w *Watch) end() {
	if w.vnodes != nil {
		w.vnodes.end()
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	w.forgetPlace()
}

// isBlind reports whether the root itself was not watched, or is another folder now: it is watched then.
func (w *Watch) isBlind() bool {
	if w.vnodes == nil || w.entries[""] != nil && !w.isElsewhere() {
		return false
	}
	w.drop("")
	w.watchPlace()
	w.releaseAfterProblem()
	return true
}

// add watches a folder and everything in it. It is watched before it is listed, so that no entry comes in between.
func (w *Watch) add(folder string) {
	id, watched := w.observe(folder, true)
	if !watched {
		return
	}
	w.entries[folder] = &watchedEntry{id: id, inside: map[string]bool{}}
	w.touch(folder)
	if !w.refresh(folder) {
		w.drop(folder)
	}
}

func (w *Watch) observe(name string, isFolder bool) (id int, watched bool) {
	if w.problem != "" {
		return unwatched, false
	}
	id, err := w.vnodes.watch(filepath.Join(w.place.String(), filepath.FromSlash(name)), isFolder)
	if err != nil {
		if !isMissing(err) {
			w.problem = cantWatch + err.Error()
			w.wake()
		}
		return unwatched, false
	}
	w.names[id] = name
	return id, true
}

// isMissing reports whether a path leads nowhere, to another kind of entry, or to one that may not be read.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// releaseAfterProblem forgets all watches if they are too many: what is synced needs open files too.
func (w *Watch) releaseAfterProblem() {
	if w.problem != "" {
		w.drop("")
	}
}

// drop forgets an entry and everything in it.
func (w *Watch) drop(name string) {
	entry := w.entries[name]
	if entry == nil {
		return
	}
	for child := range entry.inside {
		w.drop(Join(name, child))
	}
	if entry.id != unwatched {
		w.vnodes.forget(entry.id)
		delete(w.names, entry.id)
	}
	delete(w.entries, name)
	if above := w.entries[parentPath(name)]; above != nil {
		delete(above.inside, path.Base(name))
	}
}

// refresh compares a folder with what was known of it: what is new is watched. It returns false if it can't be read.
func (w *Watch) refresh(folder string) bool {
	opened, err := w.open(folder)
	if err != nil {
		return false
	}
	defer opened.Close()
	entries, err := opened.Entries()
	if err != nil {
		return false
	}
	known, found := w.entries[folder], map[string]bool{}
	for _, entry := range entries {
		name := Join(folder, entry.Name())
		if w.isSkipped(name, entry.IsDir()) {
			continue
		}
		found[entry.Name()] = true
		if before := w.entries[name]; before == nil || before.id == unwatched {
			w.compare(name, opened, before)
			known.inside[entry.Name()] = true
		}
	}
	for child := range known.inside {
		if !found[child] {
			w.drop(Join(folder, child))
			w.touch(folder)
		}
	}
	return true
}

// compare watches an entry that was not watched, unless it is the same as before.
func (w *Watch) compare(name string, above *beneath.Folder, before *watchedEntry) {
	status, err := above.Stat(path.Base(name))
	if err == nil && before != nil && before.status == status {
		return
	}
	w.touch(parentPath(name))
	w.entries[name] = &watchedEntry{id: unwatched, status: status}
	if status.Mode.IsDir() {
		delete(w.entries, name)
		if w.add(name); w.entries[name] == nil {
			w.entries[name] = &watchedEntry{id: unwatched, status: status}
		}
	} else if status.Mode.IsRegular() && err == nil {
		w.entries[name].id, _ = w.observe(name, false)
	}
}

func (w *Watch) read() {
	defer w.vnodes.close()
	for {
		events, err := w.vnodes.next()
		w.lock.Lock()
		if err != nil {
			w.drop("")
			if !errors.Is(err, fs.ErrClosed) {
				w.problem = cantWatch + err.Error()
			}
			w.lock.Unlock()
			return
		}
		w.handle(events)
		w.lock.Unlock()
	}
}

func (w *Watch) handle(events []vnodeEvent) {
	changed := map[string]bool{}
	for _, event := range events {
		name, known := w.names[event.id]
		switch {
		case !known:
		case event.isGone && name == "":
			w.drop("")
			w.touchAll()
		case event.isGone:
			w.drop(name)
			w.touch(parentPath(name))
			changed[parentPath(name)] = true
		case w.entries[name].inside == nil:
			w.touch(parentPath(name))
		case event.isOwn:
			w.touch(name)
			w.touch(parentPath(name))
		default:
			changed[name] = true
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(changed)) {
		if w.entries[folder] != nil {
			w.refresh(folder)
		}
	}
	w.releaseAfterProblem()
}
