package tree

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// staged keeps contents that are about to be put in place. They outlive a link that is cut, but not the process: then it
// is begun again. The engine's own store would cost another rename for each file.
type staged struct {
	root string
	lock sync.Mutex
	open bool
	next int
	have map[string]string
}

func newStaged(root string) *staged { return &staged{root: root, have: map[string]string{}} }

// begin makes the folder, without what another process has left in it.
func (s *staged) begin() error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.open {
		return nil
	}
	if err := os.RemoveAll(s.root); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.root), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(s.root, 0o700); err != nil {
		return err
	}
	s.open = true
	return nil
}

// end forgets everything.
func (s *staged) end() {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.open {
		s.open, s.next, s.have = false, 0, map[string]string{}
		_ = os.RemoveAll(s.root)
	}
}

func (s *staged) contains(path string, digest []byte) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.have[path+"\x00"+string(digest)] != ""
}

// Provide implements the engine's Provider.
func (s *staged) Provide(path string, digest []byte) (string, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if file := s.have[path+"\x00"+string(digest)]; file != "" {
		return file, nil
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// Sink implements the engine's Sinker.
func (s *staged) Sink(path string) (io.WriteCloser, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.open {
		return nil, errors.New("nothing is being staged")
	}
	s.next++
	file, err := os.OpenFile(filepath.Join(s.root, strconv.Itoa(s.next)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &sink{staged: s, path: path, file: file, hash: sha256.New()}, nil
}

type sink struct {
	staged *staged
	path   string
	file   *os.File
	hash   hash.Hash
	failed error
}

func (s *sink) Write(content []byte) (int, error) {
	n, err := s.file.Write(content)
	s.hash.Write(content[:n])
	if err != nil {
		s.failed = err
	}
	return n, err
}

func (s *sink) Close() error {
	if err := errors.Join(s.failed, s.file.Close()); err != nil {
		os.Remove(s.file.Name())
		return err
	}
	s.staged.lock.Lock()
	defer s.staged.lock.Unlock()
	s.staged.have[s.path+"\x00"+string(s.hash.Sum(nil))] = s.file.Name()
	return nil
}
