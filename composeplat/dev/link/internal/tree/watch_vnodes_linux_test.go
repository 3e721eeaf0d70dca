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

// What comes into a folder is watched however it came: each later change of it is reported.
func TestWhateverComesIntoAFolderIsWatched(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	put(t, root, "folder/known", "x")
	path := func(name string) string { return filepath.Join(root, "folder", name) }
	watch := watched(t, root)
	for name, come := range map[string]func() error{
		"created": func() error { return os.WriteFile(path("created"), nil, 0o600) },
		"moved in": func() error {
			put(t, outside, "moved", "x")
			return os.Rename(filepath.Join(outside, "moved"), path("moved in"))
		},
		"renamed": func() error {
			put(t, root, "folder/before", "x")
			drain(watch)
			return os.Rename(path("before"), path("renamed"))
		},
		"linked": func() error { return os.Link(path("known"), path("linked")) },
		"saved by a rename": func() error {
			put(t, root, "folder/saved by a rename", "x")
			drain(watch)
			put(t, root, "folder/half", "y")
			return os.Rename(path("half"), path("saved by a rename"))
		},
		"was a folder": func() error {
			put(t, root, "folder/was a folder/inside", "x")
			drain(watch)
			if err := os.RemoveAll(path("was a folder")); err != nil {
				return err
			}
			return os.WriteFile(path("was a folder"), nil, 0o600)
		},
		"was a link": func() error {
			if err := os.Symlink("known", path("was a link")); err != nil {
				return err
			}
			drain(watch)
			if err := os.Remove(path("was a link")); err != nil {
				return err
			}
			return os.WriteFile(path("was a link"), nil, 0o600)
		},
	} {
		must(t, come())
		touches(t, watch, "folder")
		drain(watch)
		put(t, root, "folder/"+name, "changed")
		touches(t, watch, "folder")
		drain(watch)
		must(t, os.Chmod(path(name), 0o640))
		touches(t, watch, "folder")
		drain(watch)
		must(t, os.Remove(path(name)))
		touches(t, watch, "folder")
		drain(watch)
		staysQuiet(t, watch)
	}
}

// Pipes, sockets and devices are not opened: opening some of them has effects.
func TestWhatIsNoFileIsNotOpened(t *testing.T) {
	root := t.TempDir()
	watch := watched(t, root)
	must(t, unix.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	touches(t, watch, "")
	drain(watch)
	watch.lock.Lock()
	if entry := watch.entries["pipe"]; entry == nil || entry.id != unwatched {
		t.Errorf("%v", entry)
	}
	watch.lock.Unlock()
	must(t, os.Remove(filepath.Join(root, "pipe")))
	touches(t, watch, "")
}

// The mode of a folder is an entry of the one above, and the root has none.
func TestTheModeOfAFolderIsReportedAbove(t *testing.T) {
	root := t.TempDir()
	put(t, root, "a/b/file", "x")
	watch := watched(t, root)
	must(t, os.Chmod(filepath.Join(root, "a/b"), 0o700))
	touches(t, watch, "a", "a/b")
	drain(watch)
	must(t, os.Chmod(root, 0o700))
	touches(t, watch, "")
	drain(watch)
	put(t, root, "a/b/file", "y")
	touches(t, watch, "a/b")
}

// An entry that is forgotten leaves nothing: a session of days would take ever more memory, and open files.
func TestNothingIsLeftOfWhatIsGone(t *testing.T) {
	root := t.TempDir()
	put(t, root, "kept/file", "x")
	watch := watched(t, root)
	for round := range 5 {
		for number := range 20 {
			put(t, root, filepath.Join("made", strings.Repeat("d", number%4+1), strings.Repeat("f", number+1)), "x")
		}
		touches(t, watch, "made/dddd")
		drain(watch)
		if round%2 == 0 {
			must(t, os.Rename(filepath.Join(root, "made"), filepath.Join(root, "moved")))
			touches(t, watch, "moved/dddd")
			drain(watch)
			must(t, os.RemoveAll(filepath.Join(root, "moved")))
		} else {
			must(t, os.RemoveAll(filepath.Join(root, "made")))
		}
		touches(t, watch, "")
		drain(watch)
		watch.lock.Lock()
		watch.vnodes.lock.Lock()
		counts := [4]int{len(watch.entries), len(watch.names), len(watch.vnodes.watches), len(watch.vnodes.ids)}
		watch.vnodes.lock.Unlock()
		watch.lock.Unlock()
		if counts != [4]int{3, 3, 3, 3} {
			t.Errorf("round %d: %v", round, counts)
		}
	}
}

// Changes of many files at once are all found, and those after them.
func TestManyChangesAtOnceAreFound(t *testing.T) {
	root := t.TempDir()
	watch := watched(t, root)
	var folders []string
	for number := range 40 {
		folder := filepath.Join("top", strings.Repeat("x", number+1))
		folders = append(folders, folder)
		for file := range 30 {
			put(t, root, filepath.Join(folder, strings.Repeat("f", file+1)), "x")
		}
	}
	touches(t, watch, folders...)
	drain(watch)
	for _, folder := range folders {
		put(t, root, filepath.Join(folder, "fff"), "y")
	}
	touches(t, watch, folders...)
	if problem := watch.Error(); problem != "" {
		t.Error(problem)
	}
}
