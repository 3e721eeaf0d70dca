// Package beneath opens what lies in a folder, and nothing else: each path is resolved from the folder's descriptor, a
// component at a time, and a link on the way or at the end is refused. It is apart so that no other package of this
// module opens what the other side can have a say in.
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

// maxLinks is how many links are followed in thought before a chain of them counts as one that leads out.
const maxLinks = 40

// byHand is set where the kernel has no openat2, or the sandbox of a container refuses it.
var byHand atomic.Bool

// A Folder is fixed when it is opened: whatever takes its place later is another folder.
type Folder struct {
	descriptor int
	path       string
}

// Open opens a folder by a path that is trusted: links on the way are followed.
func Open(path string) (*Folder, error) {
	descriptor, err := unix.Open(path, folderFlags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &Folder{descriptor: descriptor, path: path}, nil
}

func (f *Folder) Close() error { return unix.Close(f.descriptor) }

// parts splits a path below a folder. Nothing but names is allowed in it; the folder's own path is empty.
func parts(name string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	names := strings.Split(name, "/")
	for _, one := range names {
		if one == "" || one == "." || one == ".." || strings.ContainsRune(one, 0) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
		}
	}
	return names, nil
}

// open resolves a path without links and gives a descriptor.
func (f *Folder) open(name string, flags int, mode uint32) (int, error) {
	names, err := parts(name)
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

// openByHand opens a component at a time: what openBeneath does where the kernel can't do it at once.
func openByHand(folder int, names []string, flags int, mode uint32) (int, error) {
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

// OpenFile opens a file below this folder, and waits for no pipe.
func (f *Folder) OpenFile(name string, flags int, mode fs.FileMode) (*os.File, error) {
	descriptor, err := f.open(name, flags|unix.O_NONBLOCK, uint32(mode.Perm()))
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(descriptor), filepath.Join(f.path, name)), nil
}

// Status is what an entry itself is, a link too.
func (f *Folder) Status(name string) (status unix.Stat_t, err error) {
	names, err := parts(name)
	if err != nil {
		return status, err
	}
	if len(names) == 0 {
		return status, unix.Fstat(f.descriptor, &status)
	}
	err = f.inParent(name, func(parent int, last string) error {
		return unix.Fstatat(parent, last, &status, unix.AT_SYMLINK_NOFOLLOW)
	})
	return status, err
}

// inParent does something with the last name of a path, by the descriptor of the folder that has it.
func (f *Folder) inParent(name string, do func(parent int, last string) error) error {
	names, err := parts(name)
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

// MakeFolder makes one folder.
func (f *Folder) MakeFolder(name string, mode fs.FileMode) error {
	return f.inParent(name, func(parent int, last string) error { return unix.Mkdirat(parent, last, uint32(mode.Perm())) })
}

// MakeFolders makes a folder and those on the way to it; they may be there.
func (f *Folder) MakeFolders(name string, mode fs.FileMode) error {
	names, err := parts(name)
	if err != nil {
		return err
	}
	for number := range names {
		err := f.MakeFolder(strings.Join(names[:number+1], "/"), mode)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// Rename puts an entry in the place of another in the same folder or another one.
func (f *Folder) Rename(from, to string) error {
	return f.inParent(from, func(source int, first string) error {
		return f.inParent(to, func(target int, last string) error { return unix.Renameat(source, first, target, last) })
	})
}

// Remove removes a file or a link.
func (f *Folder) Remove(name string) error {
	return f.inParent(name, func(parent int, last string) error { return unix.Unlinkat(parent, last, 0) })
}

// Link reads the target of a link.
func (f *Folder) Link(name string) (target string, err error) {
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
	descriptor, err := openByHand(f.descriptor, nil, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	list := os.NewFile(uintptr(descriptor), f.Path())
	defer list.Close()
	return list.ReadDir(-1)
}

// IsSame tells whether both are one folder.
func (f *Folder) IsSame(other *Folder) bool {
	var one, two unix.Stat_t
	return unix.Fstat(f.descriptor, &one) == nil && unix.Fstat(other.descriptor, &two) == nil &&
		one.Dev == two.Dev && one.Ino == two.Ino
}

// IsThere tells whether the path that the folder was opened by leads to it still.
func (f *Folder) IsThere() bool {
	now, err := Open(f.path)
	if err != nil {
		return false
	}
	defer now.Close()
	return f.IsSame(now)
}

// StaysInside tells whether a link that lies in a folder below this one leads to something below this one: through
// whatever links there are on the way. What is not there yet counts as no link.
func (f *Folder) StaysInside(folder, target string) bool {
	at, err := parts(folder)
	if err != nil || target == "" || strings.HasPrefix(target, "/") {
		return false
	}
	rest := strings.Split(target, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if len(at) == 0 {
				return false
			}
			at = at[:len(at)-1]
			continue
		}
		next := strings.Join(append(at[:len(at):len(at)], name), "/")
		inner, err := f.Link(next)
		if err != nil {
			at = append(at[:len(at):len(at)], name)
			continue
		}
		if links++; links > maxLinks || strings.HasPrefix(inner, "/") {
			return false
		}
		rest = append(strings.Split(inner, "/"), rest...)
	}
	return true
}

// checkHasMode refuses what is neither a file nor a folder: nothing else is given permissions.
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

// descriptorPath names the very file of a descriptor.
func descriptorPath(descriptor int) string { return "/proc/self/fd/" + strconv.Itoa(descriptor) }
