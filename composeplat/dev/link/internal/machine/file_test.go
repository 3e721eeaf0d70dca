//go:build !windows

package machine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func (w *world) single(mode os.FileMode, content string) (here, there string) {
	here, there = filepath.Join(w.root, "conf"), filepath.Join(w.root, "image", "conf")
	write(w.t, here, content)
	must(w.t, os.Chmod(here, mode))
	must(w.t, os.Mkdir(filepath.Dir(there), 0o755))
	w.config.Folders = []FolderConfig{{Local: here, Remote: there, File: true}}
	return here, there
}

func TestASingleFileGoesBothWays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	here, there := w.single(0o640, "local")
	write(t, there, "of the image")
	w.startSynced()
	w.arrives(there, "local")
	w.eventually("its mode", func() bool { return modeOf(there) == 0o640 })
	write(t, there, "changed there")
	w.arrives(here, "changed there")
	write(t, here, "changed here")
	w.arrives(there, "changed here")
	must(t, os.Chmod(there, 0o755))
	w.eventually("the mode comes here", func() bool { return modeOf(here) == 0o755 })
	// Neither is deleted because the other is.
	must(t, os.Remove(here))
	write(t, there, "after the deletion")
	write(t, here, "again")
	w.arrives(there, "again")
}

func modeOf(path string) os.FileMode {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.Mode().Perm()
}

func TestASingleFileConflictKeepsBoth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	here, there := w.single(0o644, "base")
	w.startSynced()
	w.arrives(there, "base")
	w.setBroken(true)
	write(t, here, "mine")
	write(t, there, "theirs")
	w.setBroken(false)
	w.arrives(there, "mine")
	w.eventually("a conflict", func() bool { return w.count("conflict") == 1 })
	equal(t, "theirs", read(w.all("conflict")[0]["kept_as"].(string)))
}

func TestASingleFileInAFolderThatMayNotBeWritten(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Fatal("needs to be root, to make a folder that the agent's user may not write to")
	}
	w := newWorld(t)
	_, there := w.single(0o644, "local")
	write(t, there, "of the image")
	must(t, os.Chmod(there, 0o666))
	for _, folder := range []string{filepath.Dir(w.root), w.root} {
		must(t, os.Chmod(folder, 0o755))
	}
	must(t, os.Chmod(filepath.Join(w.root, "run"), 0o777))
	program := filepath.Join(w.root, "agent")
	copyProgram(t, program)
	w.hold(func(agent *exec.Cmd) {
		agent.Path = program
		agent.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	})
	before, err := os.Stat(there)
	must(t, err)
	w.startSynced()
	w.arrives(there, "local")
	after, err := os.Stat(there)
	must(t, err)
	equal(t, true, os.SameFile(before, after))
}

// An older state of the container, which arrived after a write, replaced the newer file here, and ended as a conflict.
func TestASingleFileIsEditedOftenOnOneSide(t *testing.T) {
	t.Parallel()
	for _, inContainer := range []bool{false, true} {
		t.Run(fmt.Sprintf("in the container %v", inContainer), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			here, there := w.single(0o644, "0")
			w.startSynced()
			w.arrives(there, "0")
			edited, other := here, there
			if inContainer {
				edited, other = there, here
			}
			for number := range 120 {
				text := fmt.Sprint(number + 1)
				write(t, edited, text)
				time.Sleep(time.Duration(10+number*7%60) * time.Millisecond)
				equal(t, text, read(edited))
			}
			w.arrives(other, "120")
			time.Sleep(2 * longDelay)
			equal(t, "120", read(edited))
			equal(t, 0, w.count("conflict"))
			equal(t, 1, len(entries(t, filepath.Dir(there))))
		})
	}
}

func entries(t *testing.T, folder string) []os.DirEntry {
	t.Helper()
	found, err := os.ReadDir(folder)
	must(t, err)
	return found
}
