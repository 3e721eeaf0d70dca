//go:build !portable

package tree

import (
	"errors"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const inotifyMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB |
	unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF |
	unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW | unix.IN_EXCL_UNLINK

// A notifier is the kernel's inotify, used directly: general libraries lose track of folders that are moved.
type notifier struct {
	watchedPlace
	descriptor int
	events     *os.File
	folders    map[int32]string
	watches    map[string]int32
}

func (w *Watch) begin() {
	w.folders, w.watches = map[int32]string{}, map[string]int32{}
	descriptor, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		w.problem = "can't watch for changes, scanning every second instead: raise fs.inotify.max_user_instances (" + err.Error() + ")"
		return
	}
	w.descriptor = descriptor
	w.events = os.NewFile(uintptr(descriptor), "inotify")
	w.lock.Lock()
	w.watchPlace()
	w.lock.Unlock()
	go w.read()
}

func (w *Watch) end() {
	if w.events == nil {
		return
	}
	w.lock.Lock()
	// Once it is closed, its number may be that of another descriptor.
	w.descriptor = -1
	w.forgetPlace()
	w.lock.Unlock()
	w.events.Close()
}

// isBlind reports whether the root itself was not watched, or is another folder now: it is watched then.
func (w *Watch) isBlind() bool {
	_, watched := w.watches[""]
	if w.events == nil || watched && !w.isElsewhere() {
		return false
	}
	w.drop("")
	w.watchPlace()
	return true
}

// add watches a folder and those in it. The scan that follows finds what was created before the watch.
func (w *Watch) add(folder string) {
	opened, err := w.open(folder)
	if err != nil {
		return
	}
	defer opened.Close()
	if !w.observe(folder, opened.Path()) {
		return
	}
	w.touch(folder)
	w.visitInside(folder, opened, w.add)
}

// observe watches a folder alone, by a path to it.
func (w *Watch) observe(folder, path string) bool {
	watch, err := unix.InotifyAddWatch(w.descriptor, path, inotifyMask)
	if err != nil {
		if errors.Is(err, unix.ENOSPC) && w.problem == "" {
			w.problem = "too many folders to watch, scanning every second instead: raise fs.inotify.max_user_watches"
			w.wake()
		}
		return false
	}
	// The kernel has one watch for a folder that was moved, whose old name is dropped later.
	if before := w.folders[int32(watch)]; before != folder && w.watches[before] == int32(watch) {
		delete(w.watches, before)
	}
	w.folders[int32(watch)] = folder
	w.watches[folder] = int32(watch)
	return true
}

// drop removes the watches of a folder that was moved or deleted, and of those in it.
func (w *Watch) drop(folder string) {
	for name, watch := range w.watches {
		if name == folder || strings.HasPrefix(name, folder+"/") || folder == "" {
			_, _ = unix.InotifyRmWatch(w.descriptor, uint32(watch))
			delete(w.watches, name)
			delete(w.folders, watch)
		}
	}
}

func (w *Watch) read() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := w.events.Read(buffer)
		if err != nil {
			return
		}
		w.lock.Lock()
		for rest := buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			event := (*unix.InotifyEvent)(unsafe.Pointer(&rest[0]))
			length := unix.SizeofInotifyEvent + int(event.Len)
			name := strings.TrimRight(string(rest[unix.SizeofInotifyEvent:length]), "\x00")
			w.handle(event.Wd, event.Mask, name)
			rest = rest[length:]
		}
		w.lock.Unlock()
	}
}

func (w *Watch) handle(watch int32, mask uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		w.drop("")
		w.add("")
		w.touchAll()
		return
	}
	folder, known := w.folders[watch]
	if !known {
		return
	}
	if mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED|unix.IN_UNMOUNT) != 0 {
		// For a folder inside, the folder that contains it gets an event too.
		if folder == "" {
			w.drop("")
			w.touchAll()
		} else if mask&unix.IN_IGNORED != 0 {
			delete(w.folders, watch)
			if w.watches[folder] == watch {
				delete(w.watches, folder)
			}
		}
		return
	}
	isFolder := mask&unix.IN_ISDIR != 0
	if name == "" {
		w.touch(folder)
		return
	}
	inside := Join(folder, name)
	if w.isSkipped(inside, isFolder) {
		return
	}
	if isFolder {
		if mask&(unix.IN_MOVED_FROM|unix.IN_DELETE) != 0 {
			w.drop(inside)
		}
		_, watched := w.watches[inside]
		if mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 || mask&unix.IN_ATTRIB != 0 && !watched {
			w.add(inside)
		}
	}
	w.recordWrite(inside, mask)
	w.touch(folder)
}

// recordWrite records what an event reports of a file. A folder is never complete: what comes into it follows.
func (w *Watch) recordWrite(name string, mask uint32) {
	switch {
	case mask&unix.IN_ISDIR != 0, mask&unix.IN_CREATE != 0:
		w.writes.record(name, made)
	case mask&unix.IN_MODIFY != 0:
		w.writes.record(name, written)
	case mask&unix.IN_CLOSE_WRITE != 0:
		w.writes.record(name, closed)
	case mask&unix.IN_MOVED_TO != 0:
		w.writes.record(name, arrived)
	case mask&(unix.IN_MOVED_FROM|unix.IN_DELETE) != 0:
		w.writes.record(name, gone)
	}
}
