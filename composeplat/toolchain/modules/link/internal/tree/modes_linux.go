package tree

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// A modeSetter follows no link below the root, neither on its way nor at its end, and changes files and folders only. It
// keeps the last folder open: names come sorted.
type modeSetter struct {
	root   string
	folder string
	held   int
}

func newModeSetter(root string) *modeSetter { return &modeSetter{root: root, held: -1} }

func (m *modeSetter) close() {
	if m.held >= 0 {
		unix.Close(m.held)
		m.held = -1
	}
}

func (m *modeSetter) set(name string, mode uint32) error {
	folder, last := path.Split(name)
	if last == "" || last == "." || last == ".." {
		return unix.EINVAL
	}
	if m.held < 0 || m.folder != folder {
		if err := m.enter(folder); err != nil {
			return err
		}
	}
	file, err := unix.Openat(m.held, last, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	var status unix.Stat_t
	if err := unix.Fstat(file, &status); err != nil {
		return err
	}
	if kind := status.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return unix.EINVAL
	}
	// A path descriptor has no fchmod; through /proc it names the very file that was opened.
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", file), mode)
}

func (m *modeSetter) enter(folder string) error {
	m.close()
	held, err := unix.Open(m.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(folder, "/"), "/") {
		if folder == "" {
			break
		}
		if part == "" || part == "." || part == ".." {
			unix.Close(held)
			return unix.EINVAL
		}
		next, err := unix.Openat(held, part, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(held)
		if err != nil {
			return err
		}
		held = next
	}
	m.held, m.folder = held, folder
	return nil
}
