//go:build !portable

package beneath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// withoutOpenat2 is set if the kernel has no openat2, or the container's seccomp profile denies it.
var withoutOpenat2 atomic.Bool

// A Folder is an open folder: one that takes its place later is another folder.
type Folder struct {
	descriptor int
	path       string
}

// Open opens a folder by a trusted path, whose symbolic links are followed.
func Open(path string) (*Folder, error) {
	descriptor, err := unix.Open(path, folderFlags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &Folder{descriptor: descriptor, path: path}, nil
}

func (f *Folder) Close() error { return unix.Close(f.descriptor) }

// open opens a path without following symbolic links, and returns the descriptor.
func (f *Folder) open(name string, flags int, mode uint32) (int, error) {
	names, err := splitPath(name)
	if err != nil {
		return -1, err
	}
	flags |= unix.O_NOFOLLOW | unix.O_CLOEXEC
	descriptor, err := openBeneath(f.descriptor, names, flags, mode)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return descriptor, nil
}

// openComponents opens a path one component at a time, as openBeneath does without openat2.
func openComponents(folder int, names []string, flags int, mode uint32) (int, error) {
	if len(names) == 0 {
		names = []string{"."}
	}
	held := folder
	for number, name := range names {
		wanted, permissions := folderFlags|unix.O_NOFOLLOW, uint32(0)
		if number == len(names)-1 {
			wanted, permissions = flags, mode
		}
		next, err := retry(func() (int, error) { return unix.Openat(held, name, wanted, permissions) })
		if held != folder {
			unix.Close(held)
		}
		if err != nil {
			return -1, err
		}
		held = next
	}
	return held, nil
}

func retry(open func() (int, error)) (int, error) {
	for {
		descriptor, err := open()
		if err != unix.EINTR && err != unix.EAGAIN {
			return descriptor, err
		}
	}
}

// Folder opens a folder below this one.
func (f *Folder) Folder(name string) (*Folder, error) {
	descriptor, err := f.open(name, folderFlags, 0)
	if err != nil {
		return nil, err
	}
	return &Folder{descriptor: descriptor, path: filepath.Join(f.path, name)}, nil
}

// OpenFile opens a file below this folder. It does not block on a pipe.
func (f *Folder) OpenFile(name string, flags int, mode fs.FileMode) (*os.File, error) {
	descriptor, err := f.open(name, flags|unix.O_NONBLOCK, uint32(mode.Perm()))
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(descriptor), filepath.Join(f.path, name)), nil
}

// Stat returns the status of an entry, of a symbolic link itself.
func (f *Folder) Stat(name string) (Status, error) {
	names, err := splitPath(name)
	if err != nil {
		return Status{}, err
	}
	var found unix.Stat_t
	if len(names) == 0 {
		err = unix.Fstat(f.descriptor, &found)
		return newStatus(&found), err
	}
	err = f.inParent(name, func(parent int, last string) error {
		return unix.Fstatat(parent, last, &found, unix.AT_SYMLINK_NOFOLLOW)
	})
	return newStatus(&found), err
}

func newStatus(found *unix.Stat_t) Status {
	mode := fs.FileMode(found.Mode & 0o777)
	switch found.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	default:
		mode |= fs.ModeIrregular
	}
	return Status{Mode: mode, Size: found.Size, Changed: found.Mtim.Nano(), Number: found.Ino}
}

// inParent calls do with the descriptor of a path's parent folder and the last name of the path.
func (f *Folder) inParent(name string, do func(parent int, last string) error) error {
	names, err := splitPath(name)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return &fs.PathError{Op: "open", Path: f.path, Err: fs.ErrInvalid}
	}
	parent, last := strings.Join(names[:len(names)-1], "/"), names[len(names)-1]
	descriptor := f.descriptor
	if parent != "" {
		if descriptor, err = f.open(parent, folderFlags, 0); err != nil {
			return err
		}
		defer unix.Close(descriptor)
	}
	if err := do(descriptor, last); err != nil {
		return &fs.PathError{Op: "use", Path: name, Err: err}
	}
	return nil
}

// MakeFolder creates a folder.
func (f *Folder) MakeFolder(name string, mode fs.FileMode) error {
	return f.inParent(name, func(parent int, last string) error { return unix.Mkdirat(parent, last, uint32(mode.Perm())) })
}

// Rename moves an entry below this folder, and replaces what is there.
func (f *Folder) Rename(from, to string) error {
	return f.inParent(from, func(source int, first string) error {
		return f.inParent(to, func(target int, last string) error { return unix.Renameat(source, first, target, last) })
	})
}

// CanExchange is whether entries can be moved without replacing others.
const CanExchange = true

// MoveTo moves an entry into another folder, and replaces nothing.
func (f *Folder) MoveTo(into *Folder, from, to string) error {
	return f.renameTo(into, from, to, unix.RENAME_NOREPLACE)
}

// Exchange makes two entries take each other's place, in one step.
func (f *Folder) Exchange(other *Folder, own, its string) error {
	return f.renameTo(other, own, its, unix.RENAME_EXCHANGE)
}

func (f *Folder) renameTo(into *Folder, from, to string, flags uint) error {
	return f.inParent(from, func(source int, first string) error {
		return into.inParent(to, func(target int, last string) error {
			return unix.Renameat2(source, first, target, last, flags)
		})
	})
}

// Remove removes a file or a link.
func (f *Folder) Remove(name string) error {
	return f.inParent(name, func(parent int, last string) error { return unix.Unlinkat(parent, last, 0) })
}

// ReadLink returns the target of a symbolic link.
func (f *Folder) ReadLink(name string) (target string, err error) {
	buffer := make([]byte, unix.PathMax)
	err = f.inParent(name, func(parent int, last string) error {
		length, err := unix.Readlinkat(parent, last, buffer)
		if err == nil {
			target = string(buffer[:length])
		}
		return err
	})
	return target, err
}

// Entries lists the folder.
func (f *Folder) Entries() ([]os.DirEntry, error) {
	descriptor, err := openComponents(f.descriptor, nil, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	list := os.NewFile(uintptr(descriptor), f.Path())
	defer list.Close()
	return list.ReadDir(-1)
}

// IsSame reports whether both are the same folder.
func (f *Folder) IsSame(other *Folder) bool {
	var ours, theirs unix.Stat_t
	return unix.Fstat(f.descriptor, &ours) == nil && unix.Fstat(other.descriptor, &theirs) == nil &&
		ours.Dev == theirs.Dev && ours.Ino == theirs.Ino
}

// checkHasMode refuses anything but files and folders: nothing else gets permissions.
func checkHasMode(descriptor int) error {
	var status unix.Stat_t
	if err := unix.Fstat(descriptor, &status); err != nil {
		return err
	}
	if kind := status.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return unix.EINVAL
	}
	return nil
}

// descriptorPath is a path to the very file of a descriptor.
func descriptorPath(descriptor int) string { return "/proc/self/fd/" + strconv.Itoa(descriptor) }

// O_PATH opens folders without read permission.
const folderFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC

const resolution = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

func openBeneath(folder int, names []string, flags int, mode uint32) (int, error) {
	if withoutOpenat2.Load() {
		return openComponents(folder, names, flags, mode)
	}
	path := strings.Join(names, "/")
	if path == "" {
		path = "."
	}
	how := &unix.OpenHow{Flags: uint64(flags), Resolve: resolution}
	if flags&unix.O_CREAT != 0 {
		how.Mode = uint64(mode)
	}
	descriptor, err := retry(func() (int, error) { return unix.Openat2(folder, path, how) })
	if err == unix.ENOSYS || err == unix.EPERM {
		descriptor, err = openComponents(folder, names, flags, mode)
		if err == nil {
			withoutOpenat2.Store(true)
		}
	}
	return descriptor, err
}

// Path is a path to this very folder, wherever it was moved, for libraries that take no descriptor.
func (f *Folder) Path() string { return descriptorPath(f.descriptor) + "/." }

// SetMode sets the permissions of a file or folder below this one.
func (f *Folder) SetMode(name string, mode uint32) error {
	if name == "" {
		return unix.EINVAL
	}
	descriptor, err := f.open(name, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer unix.Close(descriptor)
	if err := checkHasMode(descriptor); err != nil {
		return err
	}
	// fchmod fails with O_PATH; the path in /proc leads to the very file that was opened.
	return unix.Chmod(descriptorPath(descriptor), mode)
}

// Flush writes a file or folder to the disk. Unless the whole of it, it only begins to write the contents of a file.
func (f *Folder) Flush(name string, whole bool) {
	names, err := splitPath(name)
	if err != nil {
		return
	}
	descriptor, err := openBeneath(f.descriptor, names, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(descriptor)
	if whole {
		_ = unix.Fsync(descriptor)
	} else {
		_ = unix.SyncFileRange(descriptor, 0, 0, unix.SYNC_FILE_RANGE_WRITE)
	}
}

// isLink reports whether opening failed because a link or a file is in place of a folder.
func isLink(err error) bool { return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) }
