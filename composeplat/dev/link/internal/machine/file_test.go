//go:build !windows

package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
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
	content, err := os.ReadFile(os.Args[0])
	must(t, err)
	must(t, os.WriteFile(program, content, 0o755))
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
