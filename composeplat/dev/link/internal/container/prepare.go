//go:build !windows

package container

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"composeplat/link/internal/record"
)

// Name is the file name of the installed agent.
const Name = "platform-agent"

// Install copies this program into the folder, and creates others that any user may write to.
func Install(folder string, others []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := copyFile(self, filepath.Join(folder, Name), 0o755); err != nil {
		return err
	}
	for _, other := range others {
		if err := os.MkdirAll(other, 0o777); err != nil {
			return err
		}
		// A folder that has this mode already may belong to another user.
		if info, err := os.Stat(other); err == nil && info.Mode().Perm() == 0o777 {
			continue
		}
		if err := os.Chmod(other, 0o777); err != nil {
			return err
		}
	}
	return nil
}

// Seed copies a folder of the image to a volume once: it writes the marker when the copy is complete.
func Seed(marker, source, target string) error {
	if _, err := os.Lstat(marker); err == nil {
		return nil
	}
	if err := os.MkdirAll(target, 0o777); err != nil {
		return err
	}
	info, err := os.Stat(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", source)
	default:
		if source, err = filepath.EvalSymlinks(source); err != nil {
			return err
		}
		if err := copyTree(source, target); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(marker), 0o777); err != nil {
		return err
	}
	return record.Replace(marker, []byte(rand.Text()+"\n"), 0o666)
}

// copyTree leaves out devices, sockets and pipes, and what can't be read: images may contain such.
func copyTree(source, target string) error {
	type folder struct {
		path string
		mode fs.FileMode
	}
	var folders []folder
	err := filepath.WalkDir(source, func(from string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				fmt.Fprintln(os.Stderr, "left out:", err)
				return nil
			}
			return err
		}
		name, err := filepath.Rel(source, from)
		if err != nil {
			return err
		}
		to := filepath.Join(target, name)
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() || name == ".":
			if name != "." {
				if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
					return err
				}
				folders = append(folders, folder{to, info.Mode().Perm()})
			}
			return nil
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(from)
			if err != nil {
				return err
			}
			_ = os.Remove(to)
			return os.Symlink(link, to)
		case info.Mode().IsRegular():
			err := copyFile(from, to, info.Mode().Perm())
			if errors.Is(err, fs.ErrPermission) {
				fmt.Fprintln(os.Stderr, "left out:", err)
				return nil
			}
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Inner folders first: an outer one may become unwritable.
	for _, made := range slices.Backward(folders) {
		if err := os.Chmod(made.path, made.mode); err != nil {
			return err
		}
	}
	return nil
}

// A file has the suffix until it is complete, or it alone as its name, where that would be longer than names may be.
const (
	halfSuffix = ".half"
	maxName    = 255
)

func copyFile(from, to string, mode fs.FileMode) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	half := to + halfSuffix
	if len(filepath.Base(half)) > maxName {
		half = filepath.Join(filepath.Dir(to), halfSuffix)
	}
	_ = os.Remove(half)
	target, err := os.OpenFile(half, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err == nil {
		err = target.Chmod(mode)
	}
	if closed := target.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(half, to)
	}
	if err != nil {
		_ = os.Remove(half)
	}
	return err
}
