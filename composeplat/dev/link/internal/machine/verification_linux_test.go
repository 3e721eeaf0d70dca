package machine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// hidden makes a file in a folder, and returns a function that writes it without a report of the kernel there, as where
// another machine writes in a shared folder.
func hidden(t *testing.T, folder, name string) (change func(content string)) {
	t.Helper()
	outside := filepath.Join(t.TempDir(), name)
	write(t, outside, "1")
	must(t, os.MkdirAll(folder, 0o755))
	must(t, os.Link(outside, filepath.Join(folder, name)))
	// A file that has just been written is read again in any case.
	time.Sleep(200 * time.Millisecond)
	return func(content string) { write(t, outside, content) }
}

// A watch finds changes that are not reported, also where others are reported all the time.
func TestAWatchFindsChangesThatAreNotReported(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]bool{"alone": false, "beside others": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			here := filepath.Join(root, "here")
			change := hidden(t, filepath.Join(here, "sub"), "file")
			found := &lines{}
			watched, err := newWatchedFolder(0, WatchFolderConfig{Local: here}, root, NewEvents(found))
			must(t, err)
			watched.verified.interval = 300 * time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				watched.run(ctx)
				close(ended)
			}()
			defer func() {
				cancel()
				<-ended
			}()
			found.wait(t, `"first":true`)
			change("22")
			for until := time.Now().Add(3 * time.Second); other && time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
				write(t, filepath.Join(here, "other"), fmt.Sprint(time.Now()))
			}
			found.wait(t, `"sub/file"`)
		})
	}
}

// So does a sync.
func TestASyncFindsChangesThatAreNotReported(t *testing.T) {
	before := verifyInterval
	verifyInterval = 300 * time.Millisecond
	w := newWorld(t)
	t.Cleanup(func() {
		w.stop()
		verifyInterval = before
	})
	change := hidden(t, w.here("sub"), "file")
	w.startSynced()
	w.arrives(w.there("sub/file"), "1")
	change("22")
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		write(t, w.here("other"), fmt.Sprint(time.Now()))
	}
	equal(t, "22", read(w.there("sub/file")))
}

// lines are events as they are written.
type lines struct {
	lock  sync.Mutex
	texts []string
}

func (l *lines) Write(line []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.texts = append(l.texts, string(line))
	return len(line), nil
}

// wait waits for an event with a text.
func (l *lines) wait(t *testing.T, text string) {
	t.Helper()
	for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		l.lock.Lock()
		has := slices.ContainsFunc(l.texts, func(line string) bool { return strings.Contains(line, text) })
		l.lock.Unlock()
		if has {
			return
		}
	}
	t.Fatalf("no %s", text)
}
