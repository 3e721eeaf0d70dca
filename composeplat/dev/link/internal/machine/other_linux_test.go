package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// otherFileSystem is a folder on the file system under test; its name is the file system's. The tests of the project
// mount several in an emulated machine, and run those here on each.
const otherFileSystem = "OTHER_FILE_SYSTEM"

// onOther is a world whose folder on this machine is on another file system.
func onOther(t *testing.T) *world {
	t.Helper()
	folder := os.Getenv(otherFileSystem)
	if folder == "" {
		t.Skip(otherFileSystem + " is not set")
	}
	t.Parallel()
	w := newWorld(t)
	local, err := os.MkdirTemp(folder, "here")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(local) })
	w.local, w.config.Folders[0].Local = local, local
	return w
}

// keepsModes reports whether the file system under test has permissions, and takes any name.
func keepsModes() bool { return filepath.Base(os.Getenv(otherFileSystem)) == "casefold" }

// staysQuiet fails if anything is synced, without a change by anybody.
func (w *world) staysQuiet() {
	w.t.Helper()
	time.Sleep(2 * longDelay)
	before := w.count("synced")
	time.Sleep(5 * time.Second)
	equal(w.t, before, w.count("synced"))
}

// problemsOf are the reasons of the problems of a path.
func (w *world) problemsOf(path string) (reasons []string) {
	for _, event := range w.all("problem") {
		if event["path"] == path {
			reasons = append(reasons, event["reason"].(string))
		}
	}
	return reasons
}

// FAT has timestamps of two seconds: a change of the same length in the same two was not seen.
func TestOtherEveryChangeArrives(t *testing.T) {
	w := onOther(t)
	write(t, w.here("sub/file"), "0000")
	w.startSynced()
	for number := range 12 {
		text := fmt.Sprintf("%04d", number)
		if number%3 == 2 {
			write(t, w.there("sub/file"), text)
			w.arrives(w.here("sub/file"), text)
			continue
		}
		write(t, w.here("sub/file"), text)
		w.arrives(w.there("sub/file"), text)
	}
	must(t, os.Rename(w.here("sub"), w.here("moved")))
	w.arrives(w.there("moved/file"), "0011")
	w.goes(w.there("sub/file"))
	write(t, w.there("moved/made \u00e4\u00f6"), "there")
	w.arrives(w.here("moved/made \u00e4\u00f6"), "there")
	w.staysQuiet()
	if found := w.all("conflict"); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// A file that the container has got without its mode seems to be changed there: a change or deletion here, right after, was
// a conflict.
func TestOtherNewFilesMayChangeAtOnce(t *testing.T) {
	w := onOther(t)
	w.startSynced()
	for number := range 12 {
		kept, gone := fmt.Sprintf("kept%d", number), fmt.Sprintf("gone%d", number)
		write(t, w.here(kept), "first")
		write(t, w.here(gone), "first")
		w.arrives(w.there(gone), "first")
		w.arrives(w.there(kept), "first")
		write(t, w.here(kept), "again")
		must(t, os.Remove(w.here(gone)))
		w.goes(w.there(gone))
		w.arrives(w.there(kept), "again")
	}
	w.staysQuiet()
	found, err := filepath.Glob(w.there("*"))
	must(t, err)
	equal(t, 12, len(found))
	if found := w.all("conflict"); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// The file system's permissions are the same for all files: they were those of the container's files after a moment.
func TestOtherModesStayTheContainers(t *testing.T) {
	w := onOther(t)
	write(t, w.there("script"), "#!/bin/sh")
	write(t, w.there("secret"), "s")
	must(t, os.Chmod(w.there("script"), 0o750))
	must(t, os.Chmod(w.there("secret"), 0o600))
	write(t, w.here("new"), "#!/bin/sh")
	must(t, os.Chmod(w.here("new"), 0o644))
	w.startSynced()
	w.arrives(w.here("script"), "#!/bin/sh")
	w.hasMode("script", 0o750)
	w.hasMode("secret", 0o600)
	if keepsModes() {
		w.hasMode("new", 0o644)
	} else {
		w.hasMode("new", modeWithoutModes)
	}
	write(t, w.here("script"), "#!/bin/bash")
	w.arrives(w.there("script"), "#!/bin/bash")
	w.hasMode("script", 0o750)
	must(t, os.Chmod(w.there("new"), 0o711))
	write(t, w.here("secret"), "changed")
	w.arrives(w.there("secret"), "changed")
	w.hasMode("secret", 0o600)
	w.hasMode("new", 0o711)
	w.staysQuiet()
	w.hasMode("new", 0o711)
	w.stop()
	w.startSynced()
	w.staysQuiet()
	w.hasMode("script", 0o750)
	equal(t, 0, w.count("conflict"))
	equal(t, 0, w.count("problem"))
}

func (w *world) hasMode(name string, mode os.FileMode) {
	w.t.Helper()
	found := os.FileMode(0)
	for until := time.Now().Add(eventTimeout); found != mode && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if info, err := os.Stat(w.there(name)); err == nil {
			found = info.Mode().Perm()
		}
	}
	equal(w.t, mode, found)
}

// The problem of the second name was "file exists", without the name that exists.
func TestOtherNamesThatDifferInCaseOnly(t *testing.T) {
	w := onOther(t)
	write(t, w.here("a.txt"), "first")
	write(t, w.here("readme"), "content of readme")
	write(t, w.here("Notes/file"), "note")
	w.startSynced()
	if _, err := os.Stat(w.here("A.TXT")); err != nil {
		t.Skip("this driver does not fold case")
	}
	write(t, w.there("A.TXT"), "second")
	w.eventually("a problem of A.TXT", func() bool { return len(w.problemsOf("A.TXT")) > 0 })
	if why := w.problemsOf("A.TXT")[0]; !strings.Contains(why, "differs from that of a.txt in case only") {
		t.Errorf("%q", why)
	}
	equal(t, "first", read(w.here("a.txt")))
	equal(t, "first", read(w.there("a.txt")))
	equal(t, "second", read(w.there("A.TXT")))
	// The first goes on being synced, and the second follows when the first is gone.
	write(t, w.here("a.txt"), "third")
	w.arrives(w.there("a.txt"), "third")
	equal(t, "second", read(w.there("A.TXT")))
	must(t, os.Remove(w.there("a.txt")))
	w.goes(w.there("a.txt"))
	// The kernel keeps the names of a FUSE file system for a second; what was refused is tried again with the next change.
	time.Sleep(2 * time.Second)
	write(t, w.there("next"), "change")
	w.eventually("A.TXT arrives", func() bool { return slices.Contains(w.names(""), "A.TXT") })
	equal(t, "second", read(w.here("A.TXT")))
	// A new case of a name goes both ways.
	must(t, os.Rename(w.there("readme"), w.there("README")))
	w.eventually("README", func() bool { return slices.Contains(w.names(""), "README") })
	equal(t, "content of readme", read(w.here("README")))
	must(t, os.Rename(w.here("Notes"), w.here("between")))
	must(t, os.Rename(w.here("between"), w.here("NOTES")))
	w.arrives(w.there("NOTES/file"), "note")
	w.goes(w.there("Notes"))
	w.staysQuiet()
	equal(t, 0, w.count("conflict"))
	equal(t, "content of readme", read(w.there("README")))
}

// names are the names in a folder on this machine.
func (w *world) names(folder string) (names []string) {
	entries, err := os.ReadDir(w.here(folder))
	must(w.t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// On FAT, "dot." was created as "dot", and then deleted in the container as "dot.".
func TestOtherNamesThatWindowsRefuses(t *testing.T) {
	w := onOther(t)
	write(t, w.here("file"), "x")
	w.startSynced()
	refused := []string{"dot.", "a:b", "con.txt", "what?", "sub/back\\slash", "space ", "star*/inside"}
	for _, name := range refused {
		write(t, w.there(name), name)
	}
	write(t, w.there("sub/fine"), "fine")
	w.arrives(w.here("sub/fine"), "fine")
	if keepsModes() {
		w.arrives(w.here("a:b"), "a:b")
		return
	}
	for _, name := range refused {
		path := strings.TrimSuffix(name, "/inside")
		w.eventually("a problem of "+path, func() bool { return len(w.problemsOf(path)) > 0 })
	}
	w.staysQuiet()
	for _, name := range refused {
		equal(t, name, read(w.there(name)))
	}
	equal(t, 2, len(w.names("")))
	equal(t, 1, len(w.names("sub")))
	// One that gets another name arrives.
	must(t, os.Rename(w.there("a:b"), w.there("a-b")))
	w.arrives(w.here("a-b"), "a:b")
}

// The mode that all files have there was copied into containers.
func TestOtherWatchReportsWhetherThereAreModes(t *testing.T) {
	w := onOther(t)
	write(t, w.here("script"), "#!/bin/sh")
	watched := watchPlace(t, w.root, WatchFolderConfig{Local: w.here(""), Lists: true})
	first := watched.next()
	equal[any](t, keepsModes(), first["modes"])
	equal(t, 1, len(w.names("")))
	write(t, w.here("script"), "#!/bin/bash")
	equal[any](t, keepsModes(), watched.next()["modes"])
}

func TestOtherSingleFile(t *testing.T) {
	w := onOther(t)
	write(t, w.there("site.conf"), "old")
	must(t, os.Chmod(w.there("site.conf"), 0o640))
	write(t, w.here("site.conf"), "1")
	w.config.Folders = []FolderConfig{{Local: w.here("site.conf"), Remote: w.there("site.conf"), File: true}}
	w.start()
	w.arrives(w.there("site.conf"), "1")
	for number := range 6 {
		text := fmt.Sprint(number + 2)
		write(t, w.here("site.conf"), text)
		w.arrives(w.there("site.conf"), text)
	}
	if !keepsModes() {
		w.hasMode("site.conf", 0o640)
		must(t, os.Chmod(w.there("site.conf"), 0o604))
		time.Sleep(2 * longDelay)
		write(t, w.here("site.conf"), "again")
		w.arrives(w.there("site.conf"), "again")
		w.hasMode("site.conf", 0o604)
	}
	write(t, w.there("site.conf"), "there")
	w.arrives(w.here("site.conf"), "there")
	w.staysQuiet()
	equal(t, 0, w.count("conflict"))
}
