package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Changes of either side that were lost, or came back: a copy that can't be made, a full disk, an end in the middle.

// The name of the copy was longer than names may be: the container's file was lost.
func TestConflictOfALongName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("name", 60)
	write(t, w.here(long), "base")
	w.startSynced()
	w.setBroken(true)
	write(t, w.here(long), "mine")
	write(t, w.there(long), "theirs")
	w.setBroken(false)
	w.arrives(w.there(long), "mine")
	w.arrives(w.there(w.all("conflict")[0]["kept_as"].(string)), "theirs")
}

// The last text that the command writes into a single file is here when up ends.
func TestSingleFileFlushed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	here, there := w.single(0o644, "base")
	w.config.Command = []string{"sh", "-c", "sleep 1; echo made > " + there}
	w.startSynced()
	select {
	case <-w.status:
		w.up = nil
	case <-time.After(eventTimeout):
		t.Fatal("no end")
	}
	equal(t, "made\n", read(there))
	equal(t, "made\n", read(here))
}

// A disk that is full here does not damage a single file, neither here nor there.
func TestSingleFileFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, there := w.single(0o644, "base")
	disk := filepath.Join(w.root, "disk")
	must(t, os.Mkdir(disk, 0o755))
	if os.Getuid() != 0 {
		t.Skip("needs to be root, to mount a small file system")
	}
	must(t, unix.Mount("none", disk, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	here := filepath.Join(disk, "conf")
	write(t, here, "base")
	w.config.Folders[0].Local = here
	w.startSynced()
	w.arrives(there, "base")
	content := strings.Repeat("new", 100_000)
	write(t, there, content)
	time.Sleep(3 * time.Second)
	if read(there) != content {
		t.Errorf("there: %d bytes, %v", len(read(there)), w.all("conflict"))
	}
	if read(here) != "base" {
		t.Errorf("here: %d bytes", len(read(here)))
	}
}

// The message was "open conf: permission denied", of which file or user it did not say.
func TestASingleFileThatMayNotBeWritten(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Fatal("needs to be root, to make a folder that the agent's user may not write to")
	}
	for _, name := range []string{"conf", "new/conf"} {
		w := newWorld(t)
		_, there := w.single(0o644, "local")
		there = filepath.Join(filepath.Dir(there), name)
		w.config.Folders[0].Remote = there
		w.hold(w.asNobody())
		w.start()
		w.eventually("a problem", func() bool { return w.count("problem") == 1 })
		expected := "user 65534 of the container may write neither this file nor its folder " + filepath.Dir(there) + ": "
		if reason := w.all("problem")[0]["reason"].(string); !strings.HasPrefix(reason, expected) {
			t.Error(reason)
		}
		w.stop()
	}
}

// A replaced link was overwritten by a replaced file with the name that the link got among the saved files; where that was the
// name of a folder, or too long, the sync stopped.
func TestReplacedLinksBesideFilesOfTheirNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	marker := w.usedVolume()
	long := strings.Repeat("x", 254)
	files := []string{"a.link", "b.link/file"}
	links := map[string]string{"a": "to a", "b": "to b", "c": "to c", "c.link/c": "to c/c", long: "to long"}
	for _, name := range files {
		write(t, w.here(name), "mine")
		write(t, w.there(name), "its")
	}
	must(t, os.Mkdir(w.here("c.link"), 0o755))
	must(t, os.Mkdir(w.there("c.link"), 0o755))
	for name, target := range links {
		must(t, os.Symlink("mine", w.here(name)))
		must(t, os.Symlink(target, w.there(name)))
	}
	w.hold(nil, marker)
	w.startSynced()
	w.arrives(w.there("a.link"), "mine")
	equal(t, 1, w.count("replaced"))
	event := w.all("replaced")[0]
	equal[any](t, float64(len(files)+len(links)), event["files"])
	kept := event["kept_as"].(string)
	for name, content := range map[string]string{
		"a.link": "its", "a.link-2": "to a\n", "b.link/file": "its", "b.link-2": "to b\n", "c.link/c.link": "to c/c\n",
		"c.link-2": "to c\n", long[:220] + ".link": "to long\n",
	} {
		equal(t, content, read(filepath.Join(kept, name)))
	}
}

// Replaced files of several folders are all saved: those of the same millisecond got the same folder.
func TestReplacedOfManyFolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	marker := w.usedVolume()
	w.config.Folders = nil
	for number := range 8 {
		name := fmt.Sprint(number)
		w.config.Folders = append(w.config.Folders, FolderConfig{Local: w.here(name), Remote: w.there(name)})
		write(t, w.here(name+"/config"), "local")
		write(t, w.there(name+"/config"), "of "+name)
	}
	w.hold(nil, marker)
	w.start()
	w.eventually("all", func() bool { return w.count("replaced") == 8 })
	found := map[string]bool{}
	for _, event := range w.all("replaced") {
		found[read(filepath.Join(event["kept_as"].(string), "config"))] = true
	}
	equal(t, 8, len(found))
}

// Files that are deleted after a first sync that was ended early do not come back from the container.
func TestDeletedAfterAHalfFirstSync(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	marker := filepath.Join(w.root, "marker")
	write(t, marker, "volume\n")
	const count = 4000
	for number := range count {
		write(t, w.here(fmt.Sprintf("branch/%d", number)), fmt.Sprint(number))
	}
	write(t, w.there("image/file"), "x")
	w.hold(nil, marker)
	w.start()
	w.eventually("some", func() bool {
		entries, err := os.ReadDir(w.there("branch"))
		return err == nil && len(entries) > 10
	})
	w.stop()
	// As with `git switch`: another branch has other files.
	must(t, os.RemoveAll(w.here("branch")))
	write(t, w.here("other"), "x")
	time.Sleep(2 * time.Second)
	w.startSynced()
	w.arrives(w.there("other"), "x")
	w.arrives(w.here("image/file"), "x")
	time.Sleep(time.Second)
	back, _ := os.ReadDir(w.here("branch"))
	if len(back) > 0 {
		t.Errorf("%d files are back", len(back))
	}
}

// removeForGood removes a file here, which does not come back.
func (w *world) removeForGood(name string) {
	w.t.Helper()
	must(w.t, os.Remove(w.here(name)))
	w.goes(w.there(name))
	time.Sleep(300 * time.Millisecond)
	if _, err := os.Lstat(w.here(name)); err == nil {
		w.t.Fatalf("%s is back", name)
	}
}

// A file whose mode and content were merged is deleted for good: its mode seemed to be changed in the container.
func TestMergedModeThenDeleted(t *testing.T) {
	t.Parallel()
	for range 10 {
		w := newWorld(t)
		write(t, w.here("script"), "1")
		w.startSynced()
		w.stop()
		write(t, w.here("script"), "22")
		must(t, os.Chmod(w.there("script"), 0o755))
		w.start()
		w.arrives(w.there("script"), "22")
		w.removeForGood("script")
		w.stop()
	}
}

// A file that could not be read for a moment, and is deleted then, is deleted in the pods too.
func TestWatchDeletionOfAProblem(t *testing.T) {
	w := watchFolder(t, map[string]string{"a": "1", "b": "1"}, WatchFolderConfig{})
	w.expect("changed", "changed", "")
	must(t, os.Remove(filepath.Join(w.here, "a")))
	must(t, os.Symlink("/outside", filepath.Join(w.here, "a")))
	time.Sleep(500 * time.Millisecond)
	must(t, os.Remove(filepath.Join(w.here, "a")))
	until := time.After(eventTimeout)
	for {
		select {
		case event := <-w.events:
			if strings.Contains(fmt.Sprint(event["deleted"]), "a") {
				return
			}
		case <-until:
			t.Fatal("not reported")
		}
	}
}

// A folder that is moved into a folder made just before stays watched.
func TestMovedIntoNewFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("old/sub/file"), "1")
	w.startSynced()
	must(t, os.Mkdir(w.here("new"), 0o755))
	must(t, os.Rename(w.here("old"), w.here("new/old")))
	w.arrives(w.there("new/old/sub/file"), "1")
	w.goes(w.there("old"))
	time.Sleep(time.Second)
	write(t, w.here("new/old/sub/file"), "22")
	w.arrives(w.there("new/old/sub/file"), "22")
}

// A folder that may be read later is watched from then on.
func TestFolderThatMayBeReadLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.there("locked/sub/file"), "1")
	must(t, os.Chmod(w.there("locked"), 0o700))
	w.hold(w.asNobody())
	w.startSynced()
	must(t, os.Chmod(w.there("locked"), 0o755))
	w.arrives(w.here("locked/sub/file"), "1")
	write(t, w.there("locked/sub/file"), "22")
	w.arrives(w.here("locked/sub/file"), "22")
}

// What a full disk does not take is not reported as synced, again and again.
func TestNothingIsSyncedToAFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs to be root, to mount a small file system")
	}
	w := newWorld(t)
	must(t, unix.Mount("none", w.here(""), "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { _ = unix.Unmount(w.here(""), unix.MNT_DETACH) })
	w.startSynced()
	before := w.count("synced")
	write(t, w.there("large"), strings.Repeat("large", 40_000))
	w.eventually("a problem", func() bool { return w.count("problem") > 0 })
	equal(t, before, w.count("synced"))
	must(t, os.Truncate(w.there("large"), 5))
	w.arrives(w.here("large"), "large")
	w.eventually("it is reported", func() bool { return w.count("synced") == before+1 })
}
