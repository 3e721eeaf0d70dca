package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"composeplat/link/internal/beneath"
)

// watched is a Watch of a folder, whose first report was taken.
func watched(t *testing.T, root string, ignores ...string) *Watch {
	t.Helper()
	place, err := beneath.Find(root, "")
	must(t, err)
	ignorer, err := NewIgnorer(ignores)
	must(t, err)
	watch := NewWatch(place, ignorer)
	t.Cleanup(func() { watch.Close() })
	if _, all := watch.TakeTouched(); !all {
		t.Error("a new watch has seen everything")
	}
	drain(watch)
	return watch
}

// drain takes what is reported until there is quiet.
func drain(watch *Watch) {
	for {
		select {
		case <-watch.Changed():
		case <-time.After(4 * quietPeriod):
			watch.TakeTouched()
			return
		}
	}
}

// touches are the folders that are reported until the wanted ones were.
func touches(t *testing.T, watch *Watch, wanted ...string) {
	t.Helper()
	seen, timeout := map[string]bool{}, time.After(deadline)
	for {
		touched, _ := watch.TakeTouched()
		for folder := range touched {
			seen[folder] = true
		}
		if !slices.ContainsFunc(wanted, func(folder string) bool { return !seen[folder] }) {
			return
		}
		select {
		case <-watch.Changed():
		case <-timeout:
			t.Fatalf("%v is touched, and not all of %q", seen, wanted)
		}
	}
}

func staysQuiet(t *testing.T, watch *Watch) {
	t.Helper()
	select {
	case <-watch.Changed():
		touched, all := watch.TakeTouched()
		t.Errorf("reported: %v, %v", touched, all)
	case <-time.After(4 * quietPeriod):
	}
}

func TestTheFolderOfEachChangeIsReported(t *testing.T) {
	root := t.TempDir()
	put(t, root, "a/file", "x")
	put(t, root, "a/b/file", "x")
	watch := watched(t, root)
	for name, change := range map[string]struct {
		do     func() error
		folder string
	}{
		"written":     {func() error { return os.WriteFile(filepath.Join(root, "a/file"), []byte("y"), 0o600) }, "a"},
		"its mode":    {func() error { return os.Chmod(filepath.Join(root, "a/b/file"), 0o600) }, "a/b"},
		"made":        {func() error { return os.WriteFile(filepath.Join(root, "new"), nil, 0o600) }, ""},
		"renamed":     {func() error { return os.Rename(filepath.Join(root, "a/file"), filepath.Join(root, "a/other")) }, "a"},
		"a link":      {func() error { return os.Symlink("a", filepath.Join(root, "a/b/link")) }, "a/b"},
		"folder mode": {func() error { return os.Chmod(filepath.Join(root, "a/b"), 0o700) }, "a"},
	} {
		must(t, change.do())
		t.Log(name)
		touches(t, watch, change.folder)
	}
	must(t, os.Remove(filepath.Join(root, "a/b/file")))
	touches(t, watch, "a/b")
}

// The system reports nothing of a folder that is renamed above the one that is watched: each change was found a minute later.
func TestTheFolderThatComesToAPlaceIsWatched(t *testing.T) {
	top := t.TempDir()
	put(t, top, "above/root/file", "x")
	place, err := beneath.Find(filepath.Join(top, "above/root"), top)
	must(t, err)
	ignorer, err := NewIgnorer(nil)
	must(t, err)
	watch := NewWatch(place, ignorer)
	t.Cleanup(func() { watch.Close() })
	drain(watch)
	must(t, os.Rename(filepath.Join(top, "above"), filepath.Join(top, "old")))
	put(t, top, "above/root/inside/file", "x")
	touches(t, watch, "", "inside")
	drain(watch)
	put(t, top, "above/root/inside/file", "y")
	touches(t, watch, "inside")
	drain(watch)
	// What is done in the one before is not.
	put(t, top, "old/root/file", "y")
	staysQuiet(t, watch)
}

func TestFoldersThatAreMadeAndMovedAreWatched(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	watch := watched(t, root)
	must(t, os.MkdirAll(filepath.Join(root, "a/b/c"), 0o755))
	touches(t, watch, "", "a", "a/b", "a/b/c")
	drain(watch)
	must(t, os.Rename(filepath.Join(root, "a"), filepath.Join(root, "moved")))
	touches(t, watch, "", "moved", "moved/b", "moved/b/c")
	drain(watch)
	put(t, root, "moved/b/c/file", "x")
	touches(t, watch, "moved/b/c")
	// What is moved out is no longer watched; what is moved in is.
	must(t, os.Rename(filepath.Join(root, "moved/b"), filepath.Join(outside, "b")))
	touches(t, watch, "moved")
	drain(watch)
	put(t, outside, "b/c/file", "y")
	staysQuiet(t, watch)
	put(t, outside, "in/deep/file", "y")
	must(t, os.Rename(filepath.Join(outside, "in"), filepath.Join(root, "in")))
	touches(t, watch, "", "in", "in/deep")
	drain(watch)
	put(t, root, "in/deep/file", "z")
	touches(t, watch, "in/deep")
}

func TestIgnoredFoldersAndTemporaryFilesAreNotReported(t *testing.T) {
	root := t.TempDir()
	put(t, root, "node_modules/deep/file", "x")
	put(t, root, "built/kept/file", "x")
	watch := watched(t, root, "node_modules", "built", "!built/kept", "*.log")
	put(t, root, "node_modules/deep/file", "y")
	put(t, root, "node_modules/new/file", "y")
	put(t, root, "build.log", "y")
	put(t, root, TemporaryPrefix+"file", "y")
	staysQuiet(t, watch)
	// A pattern brings something below it back, so the folder above that is watched.
	put(t, root, "built/kept/file", "y")
	touches(t, watch, "built/kept")
}

func TestLinksAreNotWatchedThrough(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	put(t, outside, "folder/file", "x")
	must(t, os.Symlink(filepath.Join(outside, "folder"), filepath.Join(root, "link")))
	watch := watched(t, root)
	put(t, outside, "folder/file", "y")
	staysQuiet(t, watch)
}

func TestChangesThatFollowEachOtherAreReportedTogether(t *testing.T) {
	root := t.TempDir()
	watch := watched(t, root)
	reports := 0
	for number := range 20 {
		put(t, root, fmt.Sprint(number), "x")
		select {
		case <-watch.Changed():
			reports++
		case <-time.After(quietPeriod / 10):
		}
	}
	drain(watch)
	if reports > 4 {
		t.Errorf("%d reports", reports)
	}
	// Changes that never end are reported all the same.
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(quietPeriod / 20):
				_ = os.WriteFile(filepath.Join(root, "log"), nil, 0o600)
			}
		}
	}()
	defer close(ended)
	began := time.Now()
	for range 2 {
		select {
		case <-watch.Changed():
		case <-time.After(deadline):
			t.Fatal("never reported")
		}
	}
	if passed := time.Since(began); passed > 6*maxGatherTime {
		t.Errorf("reported after %v", passed)
	}
}

func TestARootThatIsMovedAwayIsFoundAgain(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	put(t, root, "a/file", "x")
	watch := watched(t, root)
	must(t, os.Rename(root, root+".elsewhere"))
	reported := func() (all bool) {
		for timeout := time.After(deadline); !all; {
			select {
			case <-watch.Changed():
				_, all = watch.TakeTouched()
			case <-timeout:
				t.Fatal("never reported")
			}
		}
		return all
	}
	reported()
	put(t, root+".elsewhere", "a/file", "y")
	put(t, root, "b/file", "x")
	reported()
	drain(watch)
	put(t, root, "b/file", "y")
	touches(t, watch, "b")
}

func TestARootThatIsMadeLaterIsWatched(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	watch := watched(t, root)
	put(t, root, "a/file", "x")
	for timeout := time.After(deadline); ; {
		if _, all := watch.TakeTouched(); all {
			break
		}
		select {
		case <-watch.Changed():
		case <-timeout:
			t.Fatal("never reported")
		}
	}
	drain(watch)
	put(t, root, "a/file", "y")
	touches(t, watch, "a")
}
