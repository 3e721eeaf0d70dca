package beneath

import (
	"strings"

	"golang.org/x/sys/unix"
)

// A descriptor of a path alone can be had of a folder that may not be read.
const folderFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC

const resolution = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

func openBeneath(folder int, names []string, flags int, mode uint32) (int, error) {
	if byHand.Load() {
		return openByHand(folder, names, flags, mode)
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
		descriptor, err = openByHand(folder, names, flags, mode)
		if err == nil {
			byHand.Store(true)
		}
	}
	return descriptor, err
}

// Path is for what can be given a path only: it leads to this very folder, wherever that is now.
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
	// A descriptor of a path has no fchmod; through /proc it names the very file that was opened.
	return unix.Chmod(descriptorPath(descriptor), mode)
}
