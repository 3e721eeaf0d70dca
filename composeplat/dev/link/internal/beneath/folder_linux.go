package beneath

import (
	"strings"

	"golang.org/x/sys/unix"
)

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
