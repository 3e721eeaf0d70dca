//go:build !linux

package beneath

import "golang.org/x/sys/unix"

const folderFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC

func openBeneath(folder int, names []string, flags int, mode uint32) (int, error) {
	return openComponents(folder, names, flags, mode)
}

// Path is a path for libraries that take no descriptor. Without /proc, it is the path that was just resolved without links.
func (f *Folder) Path() string { return f.path }

// SetMode sets the permissions of a file or folder below this one that may be read.
func (f *Folder) SetMode(name string, mode uint32) error {
	if name == "" {
		return unix.EINVAL
	}
	descriptor, err := f.open(name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(descriptor)
	if err := checkHasMode(descriptor); err != nil {
		return err
	}
	return unix.Fchmod(descriptor, mode)
}
