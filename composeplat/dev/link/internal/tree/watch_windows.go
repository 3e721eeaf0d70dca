package tree

import (
	"errors"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"

	"composeplat/link/internal/beneath"
)

const (
	cantWatch   = "can't watch for changes, scanning every second instead: "
	changesMask = windows.FILE_NOTIFY_CHANGE_FILE_NAME | windows.FILE_NOTIFY_CHANGE_DIR_NAME |
		windows.FILE_NOTIFY_CHANGE_SIZE | windows.FILE_NOTIFY_CHANGE_LAST_WRITE
)

// A notifier is one watch of the whole tree by ReadDirectoryChangesW. Watches of the folders in it would be open folders,
// and Windows renames no folder that has an open one in it.
type notifier struct {
	watched *watchedRoot
}

// A watchedRoot is what the system writes to while a request is open: it must not move or be freed until then.
type watchedRoot struct {
	root    *beneath.Folder
	handle  windows.Handle
	request windows.Overlapped
	buffer  [16 << 10]uint32
}

func (w *Watch) begin() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.watchRoot()
}

func (w *Watch) end() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.forgetRoot()
}

// isBlind reports whether the root was not watched, or is another folder now: it is watched then.
func (w *Watch) isBlind() bool {
	if w.watched != nil {
		now, err := w.open("")
		isSame := err == nil && now.IsSame(w.watched.root)
		if err == nil {
			now.Close()
		}
		if isSame {
			return false
		}
		w.forgetRoot()
	}
	w.watchRoot()
	return true
}

func (w *Watch) watchRoot() {
	root, err := w.open("")
	if err != nil {
		return
	}
	watched, err := openWatchedRoot(root)
	if err != nil {
		root.Close()
		w.problem = cantWatch + err.Error()
		w.wake()
		return
	}
	w.watched = watched
	w.touchAll()
	go w.read(watched)
}

func openWatchedRoot(root *beneath.Folder) (*watchedRoot, error) {
	path, err := windows.UTF16PtrFromString(root.Path())
	if err != nil {
		return nil, err
	}
	handle, err := windows.CreateFile(
		path, windows.FILE_LIST_DIRECTORY,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil,
		windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OVERLAPPED, 0)
	if err != nil {
		return nil, err
	}
	watched := &watchedRoot{root: root, handle: handle}
	if watched.request.HEvent, err = windows.CreateEvent(nil, 1, 0, nil); err == nil {
		if err = watched.start(); err != nil {
			windows.CloseHandle(watched.request.HEvent)
		}
	}
	if err != nil {
		windows.CloseHandle(handle)
		return nil, err
	}
	return watched, nil
}

// start asks for the changes since the last request: the system keeps them meanwhile.
func (r *watchedRoot) start() error {
	return windows.ReadDirectoryChanges(
		r.handle, (*byte)(unsafe.Pointer(&r.buffer)), uint32(unsafe.Sizeof(r.buffer)), true, changesMask, nil, &r.request, 0)
}

func (r *watchedRoot) close() {
	windows.CloseHandle(r.handle)
	windows.CloseHandle(r.request.HEvent)
	r.root.Close()
}

// forgetRoot ends the request of the root, whose reader closes it.
func (w *Watch) forgetRoot() {
	if w.watched != nil {
		_ = windows.CancelIoEx(w.watched.handle, &w.watched.request)
		w.watched = nil
	}
}

func (w *Watch) read(watched *watchedRoot) {
	defer watched.close()
	for {
		var length uint32
		err := windows.GetOverlappedResult(watched.handle, &watched.request, &length, true)
		if !w.handle(watched, length, err) {
			return
		}
	}
}

// handle takes the answer to a request, and starts the next one. It returns false if there is none.
func (w *Watch) handle(watched *watchedRoot, length uint32, err error) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.watched != watched {
		return false
	}
	switch {
	case err == nil && length > 0:
		w.handleRecords(unsafe.Slice((*byte)(unsafe.Pointer(&watched.buffer)), length))
	case err == nil || errors.Is(err, windows.ERROR_NOTIFY_ENUM_DIR):
		// More has changed than the buffer holds.
		w.touchAll()
		err = nil
	}
	if err == nil {
		err = watched.start()
	}
	if err == nil {
		return true
	}
	// A folder that was deleted denies access.
	if !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		w.problem = cantWatch + err.Error()
	}
	w.watched = nil
	w.touchAll()
	return false
}

func (w *Watch) handleRecords(records []byte) {
	for {
		record := (*windows.FileNotifyInformation)(unsafe.Pointer(&records[0]))
		name := windows.UTF16ToString(unsafe.Slice(&record.FileName, record.FileNameLength/2))
		isNew := record.Action == windows.FILE_ACTION_ADDED || record.Action == windows.FILE_ACTION_RENAMED_NEW_NAME
		w.report(filepath.ToSlash(name), isNew)
		if record.NextEntryOffset == 0 {
			return
		}
		records = records[record.NextEntryOffset:]
	}
}
