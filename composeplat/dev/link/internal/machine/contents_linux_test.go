package machine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Large files are on their way while small ones are saved.

// slowDialer has a line to the agent that carries so many bytes a second each way, and counts them.
type slowDialer struct {
	inner dialer
	rate  int
	lock  sync.Mutex
	sent  int
}

func (s *slowDialer) open(ctx context.Context) (io.ReadWriteCloser, string, error) {
	carrier, pod, err := s.inner.open(ctx)
	if err != nil {
		return nil, "", err
	}
	return &slowLine{ReadWriteCloser: carrier, dialer: s}, pod, nil
}

type slowLine struct {
	io.ReadWriteCloser
	dialer *slowDialer
}

const linePiece = 16 << 10

func (s *slowLine) pass(bytes int) {
	time.Sleep(time.Duration(bytes) * time.Second / time.Duration(s.dialer.rate))
	s.dialer.lock.Lock()
	s.dialer.sent += bytes
	s.dialer.lock.Unlock()
}

func (s *slowLine) Write(from []byte) (written int, err error) {
	for written < len(from) && err == nil {
		n := 0
		n, err = s.ReadWriteCloser.Write(from[written:min(written+linePiece, len(from))])
		written += n
		s.pass(n)
	}
	return written, err
}

func (s *slowLine) Read(into []byte) (int, error) {
	n, err := s.ReadWriteCloser.Read(into[:min(len(into), linePiece)])
	s.pass(n)
	return n, err
}

func (s *slowDialer) total() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.sent
}

// slowWorld has a line of 1 MB a second.
func slowWorld(t *testing.T) (*world, *slowDialer) {
	t.Helper()
	w := newWorld(t)
	line := &slowDialer{inner: processDialer{w.config.AgentCommand}, rate: 1 << 20}
	w.dialer = line
	write(t, w.here("small"), "before")
	w.startSynced()
	w.arrives(w.there("small"), "before")
	return w, line
}

// noise is content that can't be compressed.
func noise(seed uint64, size int) []byte {
	var key [32]byte
	key[0] = byte(seed)
	content := make([]byte, size)
	_, _ = rand.NewChaCha8(key).Read(content)
	return content
}

const largeSize = 10 << 20

func writeBytes(t *testing.T, path string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(path+".new", content, 0o644))
	must(t, os.Rename(path+".new", path))
}

func sum(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(content))
}

func (w *world) becomes(path string, content []byte) {
	w.t.Helper()
	wanted := fmt.Sprintf("%x", sha256.Sum256(content))
	w.eventually(path+" is whole", func() bool {
		time.Sleep(50 * time.Millisecond)
		return sum(path) == wanted
	})
}

// isMissing checks that a file has not arrived yet.
func (w *world) isMissing(path string) {
	w.t.Helper()
	if _, err := os.Lstat(path); err == nil {
		w.t.Fatalf("%s has arrived already", path)
	}
}

func TestASmallSaveOvertakesALargeFile(t *testing.T) {
	t.Parallel()
	for _, toContainer := range []bool{true, false} {
		t.Run(fmt.Sprint(toContainer), func(t *testing.T) {
			t.Parallel()
			w, _ := slowWorld(t)
			from, to := w.here, w.there
			if !toContainer {
				from, to = to, from
			}
			content := noise(1, largeSize)
			writeBytes(t, from("large"), content)
			time.Sleep(2 * time.Second)
			for number := range 4 {
				text := fmt.Sprint("save ", number)
				began := time.Now()
				write(t, from("small"), text)
				w.arrives(to("small"), text)
				t.Logf("save %d took %s", number, time.Since(began))
				w.isMissing(to("large"))
			}
			// Those of the other side too.
			write(t, to("other"), "x")
			w.arrives(from("other"), "x")
			w.isMissing(to("large"))
			w.becomes(to("large"), content)
			equal(t, 0, w.count("conflict"))
			equal(t, 0, w.count("problem"))
			w.wasShown("large", largeSize)
			w.eventually("nothing is left in the staging areas", func() bool { return w.staged() == 0 })
		})
	}
}

// wasShown checks the events by which people see how far a large file is.
func (w *world) wasShown(path string, size float64) {
	w.t.Helper()
	var before float64
	for _, event := range w.all("transferring") {
		if done := event["done"].(float64); event["path"] != path || event["bytes"] != size || done <= before || done > size {
			w.t.Errorf("after %f: %v", before, event)
		}
		before = event["done"].(float64)
	}
	ends := w.all("transferred")
	if before == 0 || len(ends) != 1 || ends[0]["path"] != path {
		w.t.Errorf("%f %v", before, ends)
	}
}

// staged is how many files are in the staging areas.
func (w *world) staged() (count int) {
	for _, folder := range []string{w.there(".mutagen-temporary-staging"), filepath.Join(w.config.State, "staging")} {
		_ = filepath.WalkDir(folder, func(_ string, entry os.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				count++
			}
			return nil
		})
	}
	return count
}

// A smaller large file overtakes a larger one too.
func TestASmallerLargeFileOvertakesALargerOne(t *testing.T) {
	t.Parallel()
	w, _ := slowWorld(t)
	larger, smaller := noise(1, largeSize*3/2), noise(2, 5<<20)
	writeBytes(t, w.here("larger"), larger)
	time.Sleep(2 * time.Second)
	writeBytes(t, w.here("folder"), smaller)
	w.becomes(w.there("folder"), smaller)
	w.isMissing(w.there("larger"))
	w.becomes(w.there("larger"), larger)
}

func TestALargeFileThatChangesOnItsWayIsSentAsItIsThen(t *testing.T) {
	t.Parallel()
	w, _ := slowWorld(t)
	writeBytes(t, w.here("large"), noise(1, largeSize))
	time.Sleep(2 * time.Second)
	// In place: what is sent is of both.
	changed := noise(2, largeSize)
	must(t, os.WriteFile(w.here("large"), changed, 0o644))
	write(t, w.here("small"), "after")
	w.arrives(w.there("small"), "after")
	w.becomes(w.there("large"), changed)
	equal(t, 0, w.count("conflict"))
	w.eventually("nothing is left in the staging areas", func() bool { return w.staged() == 0 })
}

func TestALargeFileThatIsDeletedOnItsWayDoesNotArrive(t *testing.T) {
	t.Parallel()
	w, line := slowWorld(t)
	writeBytes(t, w.here("large"), noise(1, largeSize))
	time.Sleep(2 * time.Second)
	must(t, os.Remove(w.here("large")))
	write(t, w.here("small"), "after")
	w.arrives(w.there("small"), "after")
	w.eventually("nothing is left in the staging areas", func() bool { return w.staged() == 0 })
	before := line.total()
	time.Sleep(2 * time.Second)
	if more := line.total() - before; more > 1<<20 {
		t.Errorf("%d bytes are sent of a file that is deleted", more)
	}
	w.isMissing(w.there("large"))
	w.isMissing(w.here("large"))
}

func TestALargeFileArrivesOverTheNextLink(t *testing.T) {
	t.Parallel()
	w, _ := slowWorld(t)
	content := noise(1, largeSize)
	must(t, os.Mkdir(w.here("new"), 0o755))
	writeBytes(t, w.here("new/large"), content)
	write(t, w.here("new/small"), "beside it")
	w.arrives(w.there("new/small"), "beside it")
	time.Sleep(2 * time.Second)
	w.isMissing(w.there("new/large"))
	w.cut()
	w.becomes(w.there("new/large"), content)
	equal(t, 0, w.count("conflict"))
	w.eventually("nothing is left in the staging areas", func() bool { return w.staged() == 0 })
}

// Programs write a file beside another one and rename it then: the contents have another path when they are sent.
func TestALargeFileThatIsRenamedOnItsWayIsStillOvertaken(t *testing.T) {
	t.Parallel()
	w, _ := slowWorld(t)
	content := noise(1, largeSize)
	writeBytes(t, w.here("first"), content)
	time.Sleep(2 * time.Second)
	must(t, os.Rename(w.here("first"), w.here("second")))
	write(t, w.here("small"), "after")
	w.arrives(w.there("small"), "after")
	w.isMissing(w.there("second"))
	w.becomes(w.there("second"), content)
	w.isMissing(w.there("first"))
}

// Only the differences of a large file are sent, and nothing of one that is moved.
func TestWhatALargeFileHasAlreadyIsNotSent(t *testing.T) {
	t.Parallel()
	w, line := slowWorld(t)
	content := noise(1, largeSize)
	writeBytes(t, w.here("large"), content)
	w.becomes(w.there("large"), content)
	before := line.total()
	copy(content[largeSize/2:], "a few bytes in the middle")
	writeBytes(t, w.here("large"), content)
	w.becomes(w.there("large"), content)
	must(t, os.Rename(w.here("large"), w.here("moved")))
	w.becomes(w.there("moved"), content)
	w.goes(w.there("large"))
	if more := line.total() - before; more > 4<<20 {
		t.Errorf("%d bytes were sent", more)
	}
}

// The container's file in a conflict stays until the contents of this machine's are there, and is kept beside it then.
func TestALargeFileInAConflict(t *testing.T) {
	t.Parallel()
	w, _ := slowWorld(t)
	write(t, w.here("large"), "both")
	w.arrives(w.there("large"), "both")
	content := noise(1, largeSize)
	w.setBroken(true)
	writeBytes(t, w.here("large"), content)
	write(t, w.there("large"), "theirs")
	w.setBroken(false)
	time.Sleep(3 * time.Second)
	write(t, w.here("small"), "after")
	w.arrives(w.there("small"), "after")
	equal(t, "theirs", read(w.there("large")))
	equal(t, 0, w.count("conflict"))
	w.becomes(w.there("large"), content)
	w.eventually("conflict", func() bool { return w.count("conflict") == 1 })
	w.arrives(w.there(w.all("conflict")[0]["kept_as"].(string)), "theirs")
}
