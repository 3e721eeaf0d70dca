//go:build !linux || portable

package tree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// After lost events, every folder is watched anew, and anything may have changed.
func TestLostEventsMeanThatAnythingMayHaveChanged(t *testing.T) {
	root := t.TempDir()
	put(t, root, "a/b/file", "x")
	watch := watched(t, root)
	watch.watcher.Errors <- fsnotify.ErrEventOverflow
	everything(t, watch)
	drain(watch)
	put(t, root, "a/b/file", "y")
	touches(t, watch, "a/b")
}

func TestEventsOfOtherFoldersAreIgnored(t *testing.T) {
	root := t.TempDir()
	watch := watched(t, root)
	watch.lock.Lock()
	watch.handle(fsnotify.Event{Name: filepath.Dir(root), Op: fsnotify.Write})
	watch.handle(fsnotify.Event{Name: root + "-beside", Op: fsnotify.Create})
	touched := len(watch.touched)
	watch.lock.Unlock()
	if touched != 0 {
		t.Error("touched")
	}
}

// A name that was a folder and is a file now is not watched as a folder any more.
func TestAFolderThatBecomesAFileIsDropped(t *testing.T) {
	root := t.TempDir()
	put(t, root, "name/deep/file", "x")
	watch := watched(t, root)
	must(t, os.RemoveAll(filepath.Join(root, "name")))
	put(t, root, "name", "a file")
	touches(t, watch, "")
	drain(watch)
	watch.lock.Lock()
	folders := len(watch.watched)
	watch.lock.Unlock()
	if folders != 1 {
		t.Errorf("watched: %v", watch.watched)
	}
	put(t, root, "name", "another")
	touches(t, watch, "")
}

// Each of kqueue's watches is an open file: their number is limited.
func TestAFolderThatCanNotBeWatchedIsAProblem(t *testing.T) {
	root := t.TempDir()
	put(t, root, "a/file", "x")
	watch := watched(t, root)
	must(t, watch.watcher.Close())
	watch.lock.Lock()
	watch.drop("")
	isNew := watch.isBlind()
	watch.lock.Unlock()
	if !isNew {
		t.Error("the root counts as watched")
	}
	if !strings.HasPrefix(watch.Error(), cantWatch) {
		t.Fatalf("%q", watch.Error())
	}
	everything(t, watch)
	if err := watch.watcher.Add(root); !errors.Is(err, fsnotify.ErrClosed) {
		t.Error(err)
	}
}

// everything waits until it is reported that anything may have changed.
func everything(t *testing.T, watch *Watch) {
	t.Helper()
	for timeout := time.After(deadline); ; {
		if _, all := watch.TakeTouched(); all {
			return
		}
		select {
		case <-watch.Changed():
		case <-timeout:
			t.Fatal("only a part")
		}
	}
}

func TestWatchingThatCanNotBeginIsScanning(t *testing.T) {
	root := t.TempDir()
	put(t, root, "file", "x")
	watch := watched(t, root)
	watch.lock.Lock()
	watch.problem = cantWatch + "no more files"
	watch.lock.Unlock()
	for range 2 {
		everything(t, watch)
	}
	must(t, watch.Close())
	must(t, watch.Close())
}
