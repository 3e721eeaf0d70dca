//go:build !linux || portable

package beneath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// errNotFollowed means that something else than a folder is on the way, or that a link is in place of a file.
var errNotFollowed = errors.New("a symbolic link is not followed")

// A Folder is an open folder: one that takes its place later is another folder. os.Root opens nothing outside it, but
// follows links within: each entry is compared with what its name stands for after it was opened.
type Folder struct {
	root *os.Root
	path string
}

// Open opens a folder by a trusted path, whose symbolic links are followed.
func Open(path string) (*Folder, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Folder{root, path}, nil
}

func (f *Folder) Close() error { return f.root.Close() }

// enter opens a folder in another one. A link to one is none.
func enter(above *os.Root, name string) (*os.Root, error) {
	found, err := above.Lstat(name)
	if err == nil && !found.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: errNotFollowed}
	}
	if err != nil {
		return nil, err
	}
	inner, err := above.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := inner.Stat(".")
	if err == nil {
		err = checkSame(above, name, opened)
	}
	if err != nil {
		inner.Close()
		return nil, err
	}
	return inner, nil
}

// checkSame reports an error unless a name is that of an entry that was opened, and not that of a link to it.
func checkSame(above *os.Root, name string, opened fs.FileInfo) error {
	found, err := above.Lstat(name)
	if err == nil && !os.SameFile(found, opened) {
		err = &fs.PathError{Op: "open", Path: name, Err: errNotFollowed}
	}
	return err
}

// open opens a folder below this one as a new root.
func (f *Folder) open(names []string) (*os.Root, error) {
	held, err := f.root.OpenRoot(".")
	for _, name := range names {
		if err != nil {
			return nil, err
		}
		above := held
		held, err = enter(above, name)
		above.Close()
	}
	return held, err
}

// inParent calls do with a path's parent folder and the last name of the path.
func (f *Folder) inParent(name string, do func(parent *os.Root, last string) error) error {
	names, err := splitPath(name)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return &fs.PathError{Op: "open", Path: f.path, Err: fs.ErrInvalid}
	}
	parent, err := f.open(names[:len(names)-1])
	if err != nil {
		return err
	}
	defer parent.Close()
	return do(parent, names[len(names)-1])
}

// Folder opens a folder below this one.
func (f *Folder) Folder(name string) (*Folder, error) {
	names, err := splitPath(name)
	if err != nil {
		return nil, err
	}
	root, err := f.open(names)
	if err != nil {
		return nil, err
	}
	return &Folder{root, filepath.Join(f.path, name)}, nil
}

// OpenFile opens a file below this folder. It does not block on a pipe.
func (f *Folder) OpenFile(name string, flags int, mode fs.FileMode) (file *os.File, err error) {
	err = f.inParent(name, func(parent *os.Root, last string) error {
		if found, err := parent.Lstat(last); err == nil && !found.Mode().IsRegular() {
			why := errNotFollowed
			if flags&os.O_EXCL != 0 {
				why = fs.ErrExist
			}
			return &fs.PathError{Op: "open", Path: name, Err: why}
		}
		// Nothing is truncated before it is known not to be reached by a link.
		file, err = parent.OpenFile(last, flags&^os.O_TRUNC|nonblocking, mode.Perm())
		if err != nil {
			return err
		}
		opened, err := file.Stat()
		if err == nil {
			err = checkSame(parent, last, opened)
		}
		if err == nil && flags&os.O_TRUNC != 0 {
			err = file.Truncate(0)
		}
		if err != nil {
			file.Close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Stat returns the status of an entry, of a symbolic link itself.
func (f *Folder) Stat(name string) (Status, error) {
	if name == "" {
		found, err := f.root.Stat(".")
		return newStatus(found), err
	}
	var found fs.FileInfo
	err := f.inParent(name, func(parent *os.Root, last string) (err error) {
		found, err = parent.Lstat(last)
		return err
	})
	return newStatus(found), err
}

func newStatus(found fs.FileInfo) Status {
	if found == nil {
		return Status{}
	}
	return Status{
		Mode: found.Mode() & (fs.ModeType | fs.ModePerm), Size: found.Size(), Changed: found.ModTime().UnixNano(),
		Number: fileNumber(found),
	}
}

// MakeFolder creates a folder.
func (f *Folder) MakeFolder(name string, mode fs.FileMode) error {
	return f.inParent(name, func(parent *os.Root, last string) error { return parent.Mkdir(last, mode.Perm()) })
}

// Rename moves an entry below this folder, and replaces what is there.
func (f *Folder) Rename(from, to string) error {
	source, err := splitPath(from)
	if err != nil {
		return err
	}
	return f.inParent(to, func(target *os.Root, last string) error {
		above, err := f.open(source[:max(len(source)-1, 0)])
		if err != nil {
			return err
		}
		above.Close()
		// Both parents have just been entered without links; from here on, os.Root keeps the move inside.
		return f.root.Rename(filepath.FromSlash(from), filepath.FromSlash(to))
	})
}

// CanExchange is whether entries can be moved without replacing others.
const CanExchange = false

// MoveTo is not possible in one step with os.Root, which knows no other folder.
func (f *Folder) MoveTo(*Folder, string, string) error { return errors.ErrUnsupported }

// Exchange is not possible with os.Root.
func (f *Folder) Exchange(*Folder, string, string) error { return errors.ErrUnsupported }

// Remove removes a file or a link.
func (f *Folder) Remove(name string) error {
	return f.inParent(name, func(parent *os.Root, last string) error {
		if found, err := parent.Lstat(last); err == nil && found.IsDir() {
			return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrInvalid}
		}
		return parent.Remove(last)
	})
}

// ReadLink returns the target of a symbolic link.
func (f *Folder) ReadLink(name string) (target string, err error) {
	err = f.inParent(name, func(parent *os.Root, last string) error {
		target, err = parent.Readlink(last)
		return err
	})
	return filepath.ToSlash(target), err
}

// Entries lists the folder.
func (f *Folder) Entries() ([]os.DirEntry, error) {
	list, err := f.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer list.Close()
	return list.ReadDir(-1)
}

// IsSame reports whether both are the same folder.
func (f *Folder) IsSame(other *Folder) bool {
	ours, err := f.root.Stat(".")
	theirs, failed := other.root.Stat(".")
	return err == nil && failed == nil && os.SameFile(ours, theirs)
}

// Path is a path for libraries that take no open folder: the one that was just resolved without links.
func (f *Folder) Path() string { return f.path }

// SetMode sets the permissions of a file or folder below this one that may be read.
func (f *Folder) SetMode(name string, mode uint32) error {
	return f.inParent(name, func(parent *os.Root, last string) error {
		found, err := parent.Lstat(last)
		if err != nil {
			return err
		}
		if !found.IsDir() && !found.Mode().IsRegular() {
			return &fs.PathError{Op: "chmod", Path: name, Err: fs.ErrInvalid}
		}
		file, err := parent.OpenFile(last, os.O_RDONLY|nonblocking, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		opened, err := file.Stat()
		if err == nil {
			err = checkSame(parent, last, opened)
		}
		if err == nil {
			err = file.Chmod(fs.FileMode(mode).Perm())
		}
		return err
	})
}

// Flush writes a file to the disk, if the whole of it is to be written: no system has a call to begin only.
func (f *Folder) Flush(name string, whole bool) {
	if !whole {
		return
	}
	if file, err := f.OpenFile(name, os.O_RDWR, 0); err == nil {
		_ = file.Sync()
		file.Close()
	}
}

// isLink reports whether opening failed because a link or a file is in place of a folder.
func isLink(err error) bool { return errors.Is(err, errNotFollowed) }
