//go:build portable

package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A name that was moved away and is taken again is another folder: what is in it is watched, whatever had its names before.
func TestANameThatIsTakenAgainIsWatched(t *testing.T) {
	root := t.TempDir()
	put(t, root, "src/deep/file", "x")
	watch := watched(t, root)
	must(t, os.Rename(filepath.Join(root, "src"), filepath.Join(root, "old")))
	put(t, root, "src/deep/file", "y")
	drain(watch)
	for _, folder := range []string{"src/deep", "old/deep"} {
		put(t, root, folder+"/file", "z")
		touches(t, watch, folder)
		drain(watch)
	}
	// So is a file that was deleted and created again.
	must(t, os.Remove(filepath.Join(root, "src/deep/file")))
	put(t, root, "src/deep/file", "y")
	drain(watch)
	put(t, root, "src/deep/file", "z")
	touches(t, watch, "src/deep")
}

// A link is not watched itself: another one in its place is found by comparing it.
func TestALinkThatIsReplacedIsReported(t *testing.T) {
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "folder"), 0o700))
	link := filepath.Join(root, "folder/link")
	must(t, os.Symlink("one", link))
	watch := watched(t, root)
	must(t, os.Symlink("other", filepath.Join(root, "folder/link.new")))
	must(t, os.Rename(link+".new", link))
	drain(watch)
	must(t, os.Remove(link))
	must(t, os.Symlink("third", link))
	touches(t, watch, "folder")
	drain(watch)
	must(t, os.Remove(link))
	touches(t, watch, "folder")
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
	if len(watch.entries) != 2 || len(watch.names) != 2 || watch.entries["name"].inside != nil {
		t.Errorf("watched: %v", watch.entries)
	}
	watch.lock.Unlock()
	put(t, root, "name", "another")
	touches(t, watch, "")
}

// Each of kqueue's watches is an open file. Where they are too many, all are closed: the sync needs some too.
func TestTooManyToWatchIsScanning(t *testing.T) {
	root := t.TempDir()
	put(t, root, "a/file", "x")
	watch := watched(t, root)
	watch.lock.Lock()
	watch.vnodes.limit = 5
	watch.lock.Unlock()
	for _, name := range []string{"b/1", "b/2", "b/3"} {
		put(t, root, name, "x")
	}
	everything(t, watch)
	everything(t, watch)
	if !strings.HasPrefix(watch.Error(), cantWatch+"too many open files") {
		t.Fatalf("%q", watch.Error())
	}
	watch.lock.Lock()
	if kept := len(watch.vnodes.watches); kept != 0 {
		t.Errorf("%d are still watched", kept)
	}
	watch.lock.Unlock()
	must(t, watch.Close())
	must(t, watch.Close())
}

func TestAWatchThatFailsIsScanning(t *testing.T) {
	root := t.TempDir()
	put(t, root, "file", "x")
	watch := watched(t, root)
	must(t, watch.vnodes.events.SetReadDeadline(time.Now()))
	for range 2 {
		everything(t, watch)
	}
	if !strings.HasPrefix(watch.Error(), cantWatch) {
		t.Errorf("%q", watch.Error())
	}
}

func TestWhatIsGoneIsNoProblem(t *testing.T) {
	for _, err := range []error{unix.ENOENT, unix.EACCES, unix.EPERM, unix.ENOTDIR, unix.ELOOP, fs.ErrNotExist} {
		if !isMissing(err) {
			t.Error(err)
		}
	}
	if isMissing(unix.EMFILE) || isMissing(errors.ErrUnsupported) {
		t.Error("a problem counts as nothing")
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
