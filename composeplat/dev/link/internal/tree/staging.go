package tree

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"

	"composeplat/link/internal/beneath"
)

// staged keeps contents that are about to be put in place. They outlive a link that is cut, but not the process: then it
// is begun again. The engine's own store would cost another rename for each file.
type staged struct {
	place  beneath.Place
	lock   sync.Mutex
	folder *beneath.Folder
	next   int
	have   map[string]string
}

func newStaged(place beneath.Place) *staged { return &staged{place: place, have: map[string]string{}} }

// begin makes the folder, without what another process has left in it.
func (s *staged) begin() (err error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.folder != nil {
		return nil
	}
	if err := s.place.MakeFolder(0o700); err != nil {
		return err
	}
	if err := s.clear(); err != nil {
		return err
	}
	if err := s.place.Make(0o700); err != nil {
		return err
	}
	s.folder, err = s.place.Open()
	return err
}

// clear removes the folder: by its name in the one that holds it, so that a link there is removed and not followed.
func (s *staged) clear() error {
	above, err := s.place.Folder()
	if err != nil {
		return err
	}
	defer above.Close()
	return os.RemoveAll(above.Path() + "/" + s.place.Name())
}

// end forgets everything.
func (s *staged) end() {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.folder != nil {
		s.folder.Close()
		s.folder, s.next, s.have = nil, 0, map[string]string{}
		_ = s.clear()
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
	if file := s.have[path+"\x00"+string(digest)]; file != "" && s.folder != nil {
		return s.folder.Path() + "/" + file, nil
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// Sink implements the engine's Sinker.
func (s *staged) Sink(path string) (io.WriteCloser, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.folder == nil {
		return nil, errors.New("nothing is being staged")
	}
	s.next++
	name := strconv.Itoa(s.next)
	file, err := s.folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &sink{staged: s, path: path, name: name, file: file, hash: sha256.New()}, nil
}

type sink struct {
	staged *staged
	path   string
	name   string
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
	err := errors.Join(s.failed, s.file.Close())
	s.staged.lock.Lock()
	defer s.staged.lock.Unlock()
	if err != nil && s.staged.folder != nil {
		_ = s.staged.folder.Remove(s.name)
	}
	if err != nil {
		return err
	}
	s.staged.have[s.path+"\x00"+string(s.hash.Sum(nil))] = s.name
	return nil
}
