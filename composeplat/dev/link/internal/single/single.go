// Package single is one synced file: what it holds, and how it is put in its place. Both ends use it.
package single

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"composeplat/link/internal/beneath"
)

const (
	// Most is how long a file may be.
	Most = 64 << 20
	look = 100 * time.Millisecond
)

// A State is a file as it was found. A file that can't be synced has a problem and no content.
type State struct {
	Exists  bool   `json:"exists"`
	Digest  string `json:"digest,omitempty"`
	Mode    uint32 `json:"mode,omitempty"`
	Problem string `json:"problem,omitempty"`
	Content []byte `json:"-"`
}

// stamp tells cheaply whether a file may have changed.
type stamp struct {
	size, changed int64
	inode         uint64
	mode          uint32
	missing       bool
	problem       string
}

// stampOf looks at the file itself: a link in its place is not followed, and none on the way to it.
func stampOf(place beneath.Place) stamp {
	status, err := statusOf(place)
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{missing: true}
	}
	if err != nil {
		return stamp{problem: err.Error()}
	}
	return stamp{
		size: status.Size, changed: status.Mtim.Nano(), inode: uint64(status.Ino), mode: uint32(status.Mode),
	}
}

func statusOf(place beneath.Place) (status unix.Stat_t, err error) {
	folder, err := place.Folder()
	if err != nil {
		return status, err
	}
	defer folder.Close()
	return folder.Status(place.Name())
}

// Digest names contents.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Read reads the file until it stays the same meanwhile.
func Read(place beneath.Place) State {
	for range 20 {
		before := stampOf(place)
		state := read(place, before)
		if stampOf(place) == before {
			return state
		}
		time.Sleep(look / 4)
	}
	return State{Exists: true, Problem: "it changes all the time"}
}

func read(place beneath.Place, found stamp) State {
	switch {
	case found.missing:
		return State{}
	case found.problem != "":
		return State{Exists: true, Problem: found.problem}
	case found.mode&unix.S_IFMT == unix.S_IFLNK:
		return State{Exists: true, Problem: "it is a link, and links are not followed"}
	case found.mode&unix.S_IFMT != unix.S_IFREG:
		return State{Exists: true, Problem: "it is not a file"}
	case found.size > Most:
		return State{Exists: true, Problem: fmt.Sprintf("it is longer than %d MiB", Most>>20)}
	}
	content, err := contentOf(place)
	if err != nil {
		return State{Exists: true, Problem: err.Error()}
	}
	return State{Exists: true, Digest: Digest(content), Mode: found.mode & 0o777, Content: content}
}

func contentOf(place beneath.Place) ([]byte, error) {
	folder, err := place.Folder()
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	file, err := folder.OpenFile(place.Name(), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errNoFile)
	}
	var content bytes.Buffer
	_, err = io.Copy(&content, io.LimitReader(file, Most+1))
	return content.Bytes(), err
}

var errNoFile = errors.New("it is not a file")

// Follow tells the file's state, and each other state that it comes to, until done.
func Follow(place beneath.Place, done <-chan struct{}, tell func(State)) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	last, began := stamp{}, false
	var told State
	for {
		now := stampOf(place)
		// A file that was only just stamped may change again under the same stamp.
		fresh := time.Since(time.Unix(0, now.changed)).Abs() < 2*look
		if now != last || fresh || !began {
			state := Read(place)
			if !began || state.Digest != told.Digest || state.Mode != told.Mode || state.Exists != told.Exists ||
				state.Problem != told.Problem {
				tell(state)
				told = state
				told.Content = nil
			}
			last, began = now, true
		}
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}

// Write puts contents in the file's place: at once where the folder allows it, and else into the file as it is. What is
// no file there stays as it is.
func Write(place beneath.Place, content []byte, mode uint32) error {
	folder, err := place.Folder()
	if err != nil {
		return err
	}
	defer folder.Close()
	permissions := fs.FileMode(mode & 0o777)
	if status, err := folder.Status(place.Name()); err == nil && status.Mode&unix.S_IFMT != unix.S_IFREG {
		return errNoFile
	}
	if err := replace(folder, place.Name(), content, permissions); err == nil {
		return nil
	}
	file, err := folder.OpenFile(place.Name(), os.O_WRONLY|os.O_CREATE, permissions)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, errNoFile)
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	if _, err := file.Write(content); err != nil {
		return err
	}
	_ = file.Chmod(permissions)
	return file.Close()
}

func replace(folder *beneath.Folder, name string, content []byte, mode fs.FileMode) error {
	half := ".composeplat-" + rand.Text()
	if err := put(folder, half, content, mode); err != nil {
		return err
	}
	err := folder.Rename(half, name)
	if err != nil {
		_ = folder.Remove(half)
	}
	return err
}

// put makes a file that is not there yet, whole or not at all.
func put(folder *beneath.Folder, name string, content []byte, mode fs.FileMode) error {
	file, err := folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = folder.Remove(name)
	}
	return err
}
