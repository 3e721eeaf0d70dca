package tree

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/beneath"
)

// A stagingArea keeps contents until a Transition puts them in place. They survive a lost link, but not the process: the
// next one starts with an empty folder. The engine's own store would cost another rename for each file.
type stagingArea struct {
	place  beneath.Place
	lock   sync.Mutex
	folder *beneath.Folder
	next   int
	files  map[string]string
	// held are complete contents of large files by their digest, and open those that are being written.
	held map[string]string
	open map[string]bool
	// failure is why contents could not be written, since the last Transition.
	failure error
}

func newStagingArea(place beneath.Place) *stagingArea {
	return &stagingArea{place: place, files: map[string]string{}, held: map[string]string{}, open: map[string]bool{}}
}

// begin creates the folder, and removes what another process has left there.
func (s *stagingArea) begin() (err error) {
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
func (s *stagingArea) clear() error {
	above, err := s.place.Folder()
	if err != nil {
		return err
	}
	defer above.Close()
	return os.RemoveAll(above.Path() + "/" + s.place.Name())
}

// endTransition forgets the contents that a Transition has not taken. Those that are held stay.
func (s *stagingArea) endTransition() {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.folder != nil && s.removeOthers() {
		s.files = map[string]string{}
		return
	}
	s.remove()
}

// end removes the folder and forgets its contents.
func (s *stagingArea) end() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.remove()
}

func (s *stagingArea) remove() {
	if s.folder != nil {
		s.folder.Close()
		s.folder, s.next, s.files, s.held = nil, 0, map[string]string{}, map[string]string{}
		_ = s.clear()
	}
}

func (s *stagingArea) contains(path string, digest []byte) bool {
	return s.find(path, digest) != ""
}

// find returns the name of staged contents in the folder, or nothing.
func (s *stagingArea) find(path string, digest []byte) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.locate(path, digest)
}

func (s *stagingArea) locate(path string, digest []byte) string {
	if name := s.files[path+"\x00"+string(digest)]; name != "" {
		return name
	}
	return s.held[string(digest)]
}

// newName returns a name that no file in the folder has.
func (s *stagingArea) newName() string {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.next++
	return strconv.Itoa(s.next)
}

// Provide implements the engine's Provider.
func (s *stagingArea) Provide(path string, digest []byte) (string, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.folder == nil {
		return "", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	file := s.locate(path, digest)
	if file == "" {
		// The engine counts contents as missing when their path leads nowhere, and not when there is no path.
		file = notStaged
	}
	return s.folder.Path() + "/" + file, nil
}

// add stages contents by path. What can't be written is missing in the Transition.
func (s *stagingArea) add(contents map[string][]byte) error {
	if len(contents) == 0 {
		return nil
	}
	if err := s.begin(); err != nil {
		return err
	}
	for path, content := range contents {
		to, err := s.Sink(path)
		if err != nil {
			continue
		}
		_, _ = to.Write(content)
		_ = to.Close()
	}
	return nil
}

// Sink implements the engine's Sinker.
func (s *stagingArea) Sink(path string) (io.WriteCloser, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.folder == nil {
		return nil, errors.New("nothing is being staged")
	}
	s.next++
	name := strconv.Itoa(s.next)
	file, err := s.folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		s.failure = err
		return nil, err
	}
	s.open[name] = true
	return &sink{area: s, path: path, name: name, file: file, hash: sha256.New()}, nil
}

// notStaged is a name that no staged file has: they are numbered.
const notStaged = "missing"

// explainMissing gives problems with contents that are not staged their reason.
func (s *stagingArea) explainMissing(problems []*core.Problem) {
	s.lock.Lock()
	defer s.lock.Unlock()
	why := "its contents have changed on their way"
	var reason syscall.Errno
	if errors.As(s.failure, &reason) {
		why = "its contents can't be written: " + reason.Error()
	} else if s.failure != nil {
		why = "its contents can't be written: " + s.failure.Error()
	}
	s.failure = nil
	for _, problem := range problems {
		if strings.Contains(problem.Error, "/"+notStaged+": ") || strings.Contains(problem.Error, "staged file path") {
			problem.Error = why
		}
	}
}

type sink struct {
	area   *stagingArea
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
	s.area.lock.Lock()
	defer s.area.lock.Unlock()
	delete(s.area.open, s.name)
	if err != nil && s.area.folder != nil {
		_ = s.area.folder.Remove(s.name)
	}
	if err != nil {
		s.area.failure = err
		return err
	}
	s.area.files[s.path+"\x00"+string(s.hash.Sum(nil))] = s.name
	return nil
}
