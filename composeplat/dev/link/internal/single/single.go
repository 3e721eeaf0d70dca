// Package single is a file that is synced by itself. It owns reading, watching and replacing the file, and the protocol by
// which the other end does so; both ends use it.
//
// It must not know which end's contents win: package machine decides that.
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
	"sync/atomic"
	"time"

	"composeplat/link/internal/beneath"
)

const (
	// MaxSize is the maximum length of a file in bytes.
	MaxSize      = 64 << 20
	pollInterval = 100 * time.Millisecond
	// settleTime is more than a program takes from opening a file until it has written it.
	settleTime = 20 * time.Millisecond
)

// A State is a file as it was read. A file that can't be synced has a problem and no content.
type State struct {
	Exists  bool   `json:"exists"`
	Digest  string `json:"digest,omitempty"`
	Mode    uint32 `json:"mode,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Writes is how many times the sync had replaced the file before it was read: a state with fewer than the last is old.
	Writes  uint64 `json:"writes,omitempty"`
	Content []byte `json:"-"`
}

// A stamp shows without reading whether a file may have changed.
type stamp struct {
	size, changed int64
	inode         uint64
	mode          fs.FileMode
	missing       bool
	problem       string
}

// readStamp returns the stamp of a file. It follows no symbolic link.
func readStamp(place beneath.Place) stamp {
	status, err := stat(place)
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{missing: true}
	}
	if err != nil {
		return stamp{problem: err.Error()}
	}
	return stamp{size: status.Size, changed: status.Changed, inode: status.Number, mode: status.Mode}
}

func stat(place beneath.Place) (status beneath.Status, err error) {
	folder, err := place.Folder()
	if err != nil {
		return status, err
	}
	defer folder.Close()
	return folder.Stat(place.Name())
}

// Digest returns the SHA-256 of contents.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Read reads the file, again if it changes meanwhile.
func Read(place beneath.Place) State {
	for range 20 {
		before := readStamp(place)
		state := read(place, before)
		if readStamp(place) == before {
			return state
		}
		time.Sleep(pollInterval / 4)
	}
	return State{Exists: true, Problem: "the file keeps changing"}
}

func read(place beneath.Place, found stamp) State {
	switch {
	case found.missing:
		return State{}
	case found.problem != "":
		return State{Exists: true, Problem: found.problem}
	case found.mode&fs.ModeSymlink != 0:
		return State{Exists: true, Problem: "a symbolic link, which is not followed"}
	case !found.mode.IsRegular():
		return State{Exists: true, Problem: "not a regular file"}
	case found.size > MaxSize:
		return State{Exists: true, Problem: fmt.Sprintf("larger than %d MiB", MaxSize>>20)}
	}
	content, err := readContent(place)
	if err != nil {
		return State{Exists: true, Problem: err.Error()}
	}
	return State{Exists: true, Digest: Digest(content), Mode: uint32(found.mode.Perm()), Content: content}
}

func readContent(place beneath.Place) ([]byte, error) {
	folder, err := place.Folder()
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return contentOf(folder, place.Name())
}

func contentOf(folder *beneath.Folder, name string) ([]byte, error) {
	file, err := folder.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errNotAFile)
	}
	var content bytes.Buffer
	_, err = io.Copy(&content, io.LimitReader(file, MaxSize+1))
	return content.Bytes(), err
}

var errNotAFile = errors.New("not a regular file")

// Follow emits the file's state, each new state, and the state after each write, until done is closed. The counter is
// that of the writes.
func Follow(place beneath.Place, done <-chan struct{}, writes *atomic.Uint64, emit func(State)) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	last, began := stamp{}, false
	var emitted State
	for {
		count := writes.Load()
		now := readStamp(place)
		// A file that has just been written may change again and keep its timestamp.
		changed := time.Unix(0, now.changed)
		fresh := time.Since(changed).Abs() < 2*pollInterval+beneath.Granularity(changed)
		if now != last || fresh || !began || count != emitted.Writes {
			state := Read(place)
			state.Writes = count
			if !began || count != emitted.Writes || state.Digest != emitted.Digest || state.Mode != emitted.Mode || state.Exists != emitted.Exists ||
				state.Problem != emitted.Problem {
				emit(state)
				emitted = state
				emitted.Content = nil
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

// ErrChanged means that the file is another one than the expected: it stays.
var ErrChanged = errors.New("the file has changed")

// Write replaces the file with the expected digest, which is empty if there is none: by a rename where the folder allows it,
// and otherwise by writing into the file. Anything that is not a regular file stays as it is.
func Write(place beneath.Place, content []byte, mode uint32, expected string) error {
	folder, err := place.Folder()
	if err != nil {
		return err
	}
	defer folder.Close()
	permissions := fs.FileMode(mode & 0o777)
	if status, err := folder.Stat(place.Name()); err == nil && !status.Mode.IsRegular() {
		return errNotAFile
	}
	// On a full disk, writing into the file would damage it.
	if err := replace(folder, place.Name(), content, permissions, expected); err == nil || isFull(err) || errors.Is(err, ErrChanged) {
		if err == nil {
			folder.Flush(place.Name(), true)
		}
		return err
	}
	file, err := folder.OpenFile(place.Name(), os.O_WRONLY|os.O_CREATE, permissions)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, errNotAFile)
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

func replace(folder *beneath.Folder, name string, content []byte, mode fs.FileMode, expected string) error {
	half := ".composeplat-" + rand.Text()
	if err := createFile(folder, half, content, mode); err != nil {
		return err
	}
	err := exchange(folder, half, name, Digest(content), expected)
	if err != nil && !errors.Is(err, ErrChanged) {
		// The system or the file system can only replace.
		if err = folder.Rename(half, name); err == nil {
			return nil
		}
	}
	_ = folder.Remove(half)
	return err
}

// exchange puts a new file in place of the expected one, in one step: what it finds under the new one's name afterwards is
// what it has replaced. If that is another file, it is put back.
func exchange(folder *beneath.Folder, half, name, digest, expected string) error {
	if expected == "" {
		err := folder.MoveTo(folder, half, name)
		if errors.Is(err, fs.ErrExist) {
			return ErrChanged
		}
		return err
	}
	err := folder.Exchange(folder, half, name)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrChanged
	}
	if err != nil {
		return err
	}
	// A program may have opened the file before, and write into it now.
	if digestOf(folder, half) == expected {
		time.Sleep(settleTime)
	}
	if digestOf(folder, half) == expected {
		return nil
	}
	if folder.Exchange(folder, half, name) != nil || digestOf(folder, half) != digest {
		// It was deleted or saved once more: what this has taken is kept beside it.
		_ = folder.MoveTo(folder, half, ConflictName(name, time.Now())+"-"+rand.Text()[:6])
	}
	return ErrChanged
}

func digestOf(folder *beneath.Folder, name string) string {
	content, err := contentOf(folder, name)
	if err != nil {
		return ""
	}
	return Digest(content)
}

// createFile creates a new file with contents; if that fails, no file is left.
func createFile(folder *beneath.Folder, name string, content []byte, mode fs.FileMode) error {
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
