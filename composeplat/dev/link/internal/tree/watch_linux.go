package tree

import (
	"errors"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"composeplat/link/internal/beneath"
)

const inotifyMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB |
	unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF |
	unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW | unix.IN_EXCL_UNLINK

// source is the kernel's inotify, used as it is: general libraries lose track of folders that are moved.
type source struct {
	descriptor int
	events     *os.File
	folders    map[int32]string
	watches    map[string]int32
}

func (w *Watch) begin() {
	w.folders, w.watches = map[int32]string{}, map[string]int32{}
	descriptor, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		w.trouble = "can't watch for changes, so looks each second: raise fs.inotify.max_user_instances (" + err.Error() + ")"
		return
	}
	w.descriptor = descriptor
	w.events = os.NewFile(uintptr(descriptor), "inotify")
	w.lock.Lock()
	w.add("")
	w.lock.Unlock()
	go w.read()
}

func (w *Watch) end() {
	if w.events != nil {
		w.events.Close()
	}
}

// blind is when the root itself is not watched: it may have come back.
func (w *Watch) blind() bool {
	if _, watched := w.watches[""]; watched || w.events == nil {
		return false
	}
	w.add("")
	return true
}

// add watches a folder and those in it. What was made before the watch was there is found by the scan that follows.
func (w *Watch) add(folder string) {
	opened, err := w.open(folder)
	if err != nil {
		return
	}
	defer opened.Close()
	watch, err := unix.InotifyAddWatch(w.descriptor, opened.Path(), inotifyMask)
	if err != nil {
		if errors.Is(err, unix.ENOSPC) && w.trouble == "" {
			w.trouble = "too many folders to watch, so looks each second: raise fs.inotify.max_user_watches"
			w.wake()
		}
		return
	}
	w.folders[int32(watch)] = folder
	w.watches[folder] = int32(watch)
	w.touch(folder)
	entries, err := opened.Entries()
	if err != nil {
		return
	}
	for _, entry := range entries {
		if name := Join(folder, entry.Name()); entry.IsDir() && !w.skips(name, true) {
			w.add(name)
		}
	}
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

// drop forgets a folder that is gone from where it was, with all in it.
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
		// A folder inside is told of by the one that holds it.
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
	if w.skips(inside, isFolder) {
		return
	}
	if isFolder {
		if mask&(unix.IN_MOVED_FROM|unix.IN_DELETE) != 0 {
			w.drop(inside)
		}
		if mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 {
			w.add(inside)
		}
	}
	w.touch(folder)
}
