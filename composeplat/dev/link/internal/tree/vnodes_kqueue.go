//go:build !linux && !windows

package tree

import (
	"io/fs"
	"runtime"

	"golang.org/x/sys/unix"
)

// eventsOnly is O_EVTONLY of macOS: such a descriptor does not keep a volume from being unmounted.
const eventsOnly = 0x8000

// vnodes are watched by kqueue, each by a descriptor of its own.
type vnodes struct {
	queue  int
	ending [2]int
}

func openVnodes() (*vnodes, error) {
	queue, err := unix.Kqueue()
	if err != nil {
		return nil, err
	}
	v := &vnodes{queue: queue}
	if err := unix.Pipe(v.ending[:]); err != nil {
		unix.Close(queue)
		return nil, err
	}
	for _, descriptor := range []int{queue, v.ending[0], v.ending[1]} {
		unix.CloseOnExec(descriptor)
	}
	if err := v.register(v.ending[0], unix.EVFILT_READ, 0); err != nil {
		unix.Close(v.ending[1])
		v.close()
		return nil, err
	}
	return v, nil
}

func (v *vnodes) register(descriptor, filter int, notes uint32) error {
	changes := make([]unix.Kevent_t, 1)
	unix.SetKevent(&changes[0], descriptor, filter, unix.EV_ADD|unix.EV_CLEAR)
	changes[0].Fflags = notes
	_, err := unix.Kevent(v.queue, changes, nil, nil)
	return err
}

// watch returns a number for the file or folder that a path leads to now, however it is moved.
func (v *vnodes) watch(path string, isFolder bool) (int, error) {
	flags := unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	notes := uint32(unix.NOTE_DELETE | unix.NOTE_WRITE | unix.NOTE_ATTRIB | unix.NOTE_RENAME | unix.NOTE_REVOKE)
	if runtime.GOOS == "darwin" {
		flags |= eventsOnly
	}
	if isFolder {
		flags |= unix.O_DIRECTORY
	} else {
		notes |= unix.NOTE_EXTEND | unix.NOTE_LINK
	}
	descriptor, err := unix.Open(path, flags, 0)
	for err == unix.EINTR {
		descriptor, err = unix.Open(path, flags, 0)
	}
	if err != nil {
		return unwatched, err
	}
	if err := v.register(descriptor, unix.EVFILT_VNODE, notes); err != nil {
		unix.Close(descriptor)
		return unwatched, err
	}
	return descriptor, nil
}

func (v *vnodes) forget(id int) { unix.Close(id) }

// next waits for events. Those of a descriptor that was closed meanwhile may be taken for another one's: a look too many.
func (v *vnodes) next() ([]vnodeEvent, error) {
	buffer := make([]unix.Kevent_t, 256)
	n, err := unix.Kevent(v.queue, nil, buffer, nil)
	for err == unix.EINTR {
		n, err = unix.Kevent(v.queue, nil, buffer, nil)
	}
	if err != nil {
		return nil, err
	}
	var events []vnodeEvent
	for _, event := range buffer[:n] {
		if int(event.Ident) == v.ending[0] {
			return nil, fs.ErrClosed
		}
		// The last link of a file, or one of several, may be gone.
		isGone := event.Fflags&(unix.NOTE_DELETE|unix.NOTE_RENAME|unix.NOTE_REVOKE|unix.NOTE_LINK) != 0
		entries, own := event.Fflags&unix.NOTE_WRITE != 0, event.Fflags&unix.NOTE_ATTRIB != 0
		if isGone || entries || !own {
			events = append(events, vnodeEvent{id: int(event.Ident), isGone: isGone})
		}
		if own && !isGone {
			events = append(events, vnodeEvent{id: int(event.Ident), isOwn: true})
		}
	}
	return events, nil
}

// end makes next return.
func (v *vnodes) end() { unix.Close(v.ending[1]) }

func (v *vnodes) close() {
	unix.Close(v.queue)
	unix.Close(v.ending[0])
}
