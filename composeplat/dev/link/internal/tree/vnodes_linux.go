//go:build portable

package tree

import (
	"os"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	fileMask   = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_DONT_FOLLOW
	folderMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ATTRIB |
		unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_DONT_FOLLOW | unix.IN_ONLYDIR
)

// vnodes report by inotify no more than kqueue does, so that what depends on it is tested on Linux. The kernel has one
// watch for all numbers of a file or folder.
type vnodes struct {
	descriptor int
	events     *os.File

	lock    sync.Mutex
	watches map[int]int32
	ids     map[int32]map[int]bool
	last    int
	// limit is how many may be watched, for tests.
	limit int
}

func openVnodes() (*vnodes, error) {
	descriptor, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &vnodes{
		descriptor: descriptor, events: os.NewFile(uintptr(descriptor), "inotify"),
		watches: map[int]int32{}, ids: map[int32]map[int]bool{},
	}, nil
}

func (v *vnodes) watch(path string, isFolder bool) (int, error) {
	v.lock.Lock()
	defer v.lock.Unlock()
	if v.limit > 0 && len(v.watches) >= v.limit {
		return unwatched, unix.EMFILE
	}
	mask := uint32(fileMask)
	if isFolder {
		mask = folderMask
	}
	watch, err := unix.InotifyAddWatch(v.descriptor, path, mask)
	if err != nil {
		return unwatched, err
	}
	v.last++
	v.watches[v.last] = int32(watch)
	if v.ids[int32(watch)] == nil {
		v.ids[int32(watch)] = map[int]bool{}
	}
	v.ids[int32(watch)][v.last] = true
	return v.last, nil
}

func (v *vnodes) forget(id int) {
	v.lock.Lock()
	defer v.lock.Unlock()
	watch := v.watches[id]
	delete(v.watches, id)
	delete(v.ids[watch], id)
	if len(v.ids[watch]) == 0 {
		delete(v.ids, watch)
		_, _ = unix.InotifyRmWatch(v.descriptor, uint32(watch))
	}
}

func (v *vnodes) next() ([]vnodeEvent, error) {
	buffer := make([]byte, 64<<10)
	n, err := v.events.Read(buffer)
	if err != nil {
		return nil, err
	}
	v.lock.Lock()
	defer v.lock.Unlock()
	var events []vnodeEvent
	for rest := buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
		event := (*unix.InotifyEvent)(unsafe.Pointer(&rest[0]))
		length := unix.SizeofInotifyEvent + int(event.Len)
		name := strings.TrimRight(string(rest[unix.SizeofInotifyEvent:length]), "\x00")
		rest = rest[length:]
		if event.Mask&unix.IN_Q_OVERFLOW != 0 {
			return nil, unix.EOVERFLOW
		}
		own := event.Mask&unix.IN_ATTRIB != 0
		if own && name != "" {
			continue
		}
		isGone := event.Mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED|unix.IN_UNMOUNT) != 0 ||
			own && event.Mask&unix.IN_ISDIR == 0
		for id := range v.ids[event.Wd] {
			events = append(events, vnodeEvent{id: id, isGone: isGone, isOwn: own})
		}
	}
	return events, nil
}

func (v *vnodes) end() {
	v.lock.Lock()
	// Once it is closed, its number may be that of another descriptor.
	v.descriptor = -1
	v.lock.Unlock()
	v.events.Close()
}

func (v *vnodes) close() {}
