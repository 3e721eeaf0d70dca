// Package single is one synced file: what it holds, and how it is put in its place. Both ends use it.
package single

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
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
	mode          fs.FileMode
	missing       bool
	problem       string
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{missing: true}
	}
	if err != nil {
		return stamp{problem: err.Error()}
	}
	result := stamp{size: info.Size(), changed: info.ModTime().UnixNano(), mode: info.Mode()}
	if status, can := info.Sys().(*syscall.Stat_t); can {
		result.inode = status.Ino
	}
	return result
}

// Digest names contents.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Read reads the file until it stays the same meanwhile.
func Read(path string) State {
	for range 20 {
		before := stampOf(path)
		state := read(path, before)
		if stampOf(path) == before {
			return state
		}
		time.Sleep(look / 4)
	}
	return State{Exists: true, Problem: "it changes all the time"}
}

func read(path string, found stamp) State {
	switch {
	case found.missing:
		return State{}
	case found.problem != "":
		return State{Exists: true, Problem: found.problem}
	case !found.mode.IsRegular():
		return State{Exists: true, Problem: "it is not a file"}
	case found.size > Most:
		return State{Exists: true, Problem: fmt.Sprintf("it is longer than %d MiB", Most>>20)}
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return State{Exists: true, Problem: err.Error()}
	}
	defer file.Close()
	var content bytes.Buffer
	if _, err := io.Copy(&content, io.LimitReader(file, Most+1)); err != nil {
		return State{Exists: true, Problem: err.Error()}
	}
	return State{Exists: true, Digest: Digest(content.Bytes()), Mode: uint32(found.mode.Perm()), Content: content.Bytes()}
}

// Follow tells the file's state, and each other state that it comes to, until done.
func Follow(path string, done <-chan struct{}, tell func(State)) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	last, began := stamp{}, false
	var told State
	for {
		now := stampOf(path)
		// A file that was only just stamped may change again under the same stamp.
		fresh := time.Since(time.Unix(0, now.changed)).Abs() < 2*look
		if now != last || fresh || !began {
			state := Read(path)
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

// Write puts contents in the file's place: at once where the folder allows it, and else into the file as it is.
func Write(path string, content []byte, mode uint32) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	permissions := fs.FileMode(mode & 0o777)
	if err := replace(path, content, permissions); err == nil {
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, permissions)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	if _, err := file.Write(content); err != nil {
		return err
	}
	_ = file.Chmod(permissions)
	return file.Close()
}

func replace(path string, content []byte, mode fs.FileMode) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".composeplat-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(mode)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}
