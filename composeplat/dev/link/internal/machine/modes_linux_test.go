package machine

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/tree"
)

// Permissions that nobody has chosen: after a kill, where one side can't have them, and where this machine has none.

// asNobody runs the agent as another user.
func (w *world) asNobody() func(*exec.Cmd) {
	for _, folder := range []string{filepath.Dir(w.root), w.root} {
		must(w.t, os.Chmod(folder, 0o755))
	}
	must(w.t, os.Chmod(filepath.Join(w.root, "run"), 0o777))
	must(w.t, os.Chmod(w.there(""), 0o777))
	program := filepath.Join(w.root, "agent")
	copyProgram(w.t, program)
	return func(command *exec.Cmd) {
		command.Path = program
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}

// A mode that the container can't have is not taken back here.
func TestRefusedMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("script"), "x")
	write(t, w.there("script"), "x")
	must(t, os.Chmod(w.there("script"), 0o644))
	w.hold(w.asNobody())
	w.startSynced()
	must(t, os.Chmod(w.here("script"), 0o755))
	time.Sleep(3 * time.Second)
	equal(t, os.FileMode(0o755), modeOf(w.here("script")))
}

// Nor is one of a first sync.
func TestRefusedModeFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("script"), "x")
	must(t, os.Chmod(w.here("script"), 0o755))
	write(t, w.there("script"), "x")
	must(t, os.Chmod(w.there("script"), 0o644))
	w.hold(w.asNobody())
	w.startSynced()
	time.Sleep(3 * time.Second)
	equal(t, os.FileMode(0o755), modeOf(w.here("script")))
}

// someArrive waits until some of many files have their new contents in a place, and not all of them.
func (w *world) someArrive(place func(string) string) {
	w.t.Helper()
	w.eventually("some", func() bool {
		for number := range 50 {
			if info, err := os.Stat(place(fmt.Sprint(number))); err == nil && info.Size() == 2 {
				return true
			}
		}
		return false
	})
}

// allAreWhole checks that all files have their new contents and their mode on both sides.
func (w *world) allAreWhole(count int) {
	w.t.Helper()
	bad := map[string]int{}
	for number := range count {
		for side, path := range map[string]string{"here": w.here(fmt.Sprint(number)), "there": w.there(fmt.Sprint(number))} {
			if mode := modeOf(path); mode != 0o644 || read(path) != "22" {
				bad[fmt.Sprint(side, " ", mode, read(path))]++
			}
		}
	}
	if len(bad) > 0 {
		w.t.Errorf("%v", bad)
	}
}

// The modes of files stay, also where the container is killed while it gets their new contents.
func TestModesAfterAKilledContainer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	marker := filepath.Join(w.root, "marker")
	write(t, marker, "volume\n")
	const count = 3000
	for number := range count {
		write(t, w.here(fmt.Sprintf("%d", number)), "1")
	}
	w.hold(nil, marker)
	w.startSynced()
	w.stop()
	for number := range count {
		write(t, w.here(fmt.Sprintf("%d", number)), "22")
	}
	w.start()
	w.someArrive(w.there)
	w.stopAgent()
	w.hold(nil, marker)
	w.eventually("all", func() bool {
		for number := range count {
			if read(w.there(fmt.Sprint(number))) != "22" {
				return false
			}
		}
		return true
	})
	time.Sleep(2 * time.Second)
	w.allAreWhole(count)
}

// startProcess runs `up` as a process that can be killed, by a program that runs another one, if any is named.
func (w *world) startProcess(runner ...string) *exec.Cmd {
	w.t.Helper()
	text, err := json.Marshal(w.config)
	must(w.t, err)
	path := filepath.Join(w.root, "config.json")
	must(w.t, os.WriteFile(path, text, 0o600))
	args := append(runner, os.Args[0], "up", path)
	command := exec.Command(args[0], args[1:]...)
	_, err = command.StdinPipe()
	must(w.t, err)
	must(w.t, command.Start())
	w.t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return command
}

// killUp kills `up` while files of the container come here: their modes stay.
func killUp(t *testing.T, first bool) {
	w := newWorld(t)
	marker := filepath.Join(w.root, "marker")
	write(t, marker, "volume\n")
	const count = 3000
	w.hold(nil, marker)
	if !first {
		for number := range count {
			write(t, w.there(fmt.Sprintf("%d", number)), "1")
		}
		w.startSynced()
		w.stop()
		equal(t, "1", read(w.here("7")))
	}
	for number := range count {
		write(t, w.there(fmt.Sprintf("%d", number)), "22")
	}
	w.config.Command = []string{"sleep", "1000"}
	up := w.startProcess()
	w.someArrive(w.here)
	_ = up.Process.Kill()
	_ = up.Wait()
	w.startSynced()
	time.Sleep(2 * time.Second)
	w.allAreWhole(count)
}

func TestModesAfterAKilledUp(t *testing.T)      { killUp(t, false) }
func TestModesAfterAKilledFirstUp(t *testing.T) { killUp(t, true) }

// A folder that is ignored, but for a file in it, has its mode on the other side.
func TestPhantomMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Folders[0].Ignores = []string{"build", "!build/keep"}
	write(t, w.here("build/keep"), "x")
	write(t, w.here("build/no"), "x")
	w.startSynced()
	w.arrives(w.there("build/keep"), "x")
	time.Sleep(time.Second)
	equal(t, os.FileMode(0o755), modeOf(w.there("build")))
}

// setWithoutModes makes a tree one on a file system without permissions. Nothing else can set it: it finds that out by itself.
func setWithoutModes(made *tree.Tree) {
	field := reflect.ValueOf(made).Elem().FieldByName("withoutModes")
	*(*bool)(unsafe.Pointer(field.UnsafeAddr())) = true
}

// startWithoutModes is startSynced, as if the folder here were on a file system without permissions.
func (w *world) startWithoutModes() {
	w.t.Helper()
	if w.agent == nil {
		w.hold(nil)
	}
	w.clients++
	typed, typing := io.Pipe()
	u := &client{config: w.config, events: NewEvents(w), name: fmt.Sprintf("%s-%d", w.root, w.clients),
		session: newSession(w.config), signals: make(chan os.Signal, 4)}
	u.session.input, u.session.output, u.session.errors = typed, screen{w}, screen{w}
	ended := make(chan int, 1)
	w.up, w.typed, w.status = u, typing, ended
	made, err := newFolder(0, w.config.Folders[0], w.config.State, u.events)
	must(w.t, err)
	setWithoutModes(made.local)
	u.folders = []*folder{made}
	u.ports, err = listen(w.config, u.events)
	must(w.t, err)
	go func() {
		status, _ := u.keepLinked(w)
		made.close()
		ended <- status
	}()
	w.t.Cleanup(w.stop)
	before := w.count("synced")
	w.eventually("synced", func() bool { return w.count("synced") > before })
}

// A folder that was a file does not get the mode of the file.
func TestWithoutModesFileBecomesFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("thing"), "x")
	write(t, w.there("thing"), "x")
	must(t, os.Chmod(w.there("thing"), 0o644))
	w.startWithoutModes()
	w.stop()
	must(t, os.Remove(w.here("thing")))
	write(t, w.here("thing/inside"), "y")
	w.startWithoutModes()
	w.arrives(w.there("thing/inside"), "y")
	time.Sleep(time.Second)
	equal(t, os.FileMode(0o755), modeOf(w.there("thing")))
}

// A file that was a folder can be deleted right after: it seemed to be changed in the container.
func TestWithoutModesFolderBecomesFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for number := range 20 {
		write(t, w.here(fmt.Sprintf("thing%d/inside", number)), "x")
	}
	w.startWithoutModes()
	for number := range 20 {
		name := fmt.Sprintf("thing%d", number)
		must(t, os.RemoveAll(w.here(name)))
		write(t, w.here(name), "y")
		w.arrives(w.there(name), "y")
		w.removeForGood(name)
	}
	equal(t, 0, w.count("conflict"))
}

// As in TestOtherNewFilesMayChangeAtOnce, with files that the container has.
func TestWithoutModesFirstSync(t *testing.T) {
	t.Parallel()
	for range 10 {
		w := newWorld(t)
		write(t, w.here("script"), "mine")
		write(t, w.there("script"), "theirs")
		must(t, os.Chmod(w.there("script"), 0o755))
		w.startWithoutModes()
		w.arrives(w.there("script"), "mine")
		w.removeForGood("script")
		w.stop()
	}
}

// SMB volumes, as those of Azure Files, take each mode without an effect, and show the same one for all files: it came here.
func TestContainerWithoutModes(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	here := func(name string) string { return filepath.Join(root, "here", name) }
	there := func(name string) string { return filepath.Join(root, "there", name) }
	c, _ := newCycle(t, root, setWithoutModes)
	run := func() {
		for range 4 {
			must(t, filepath.WalkDir(there(""), func(path string, _ fs.DirEntry, err error) error {
				return errors.Join(err, os.Chmod(path, 0o777))
			}))
			_, err := c.run(t.Context(), true)
			must(t, err)
		}
		equal(t, 0, len(c.seen))
	}
	has := func(name string, mode os.FileMode, content string) {
		t.Helper()
		equal(t, mode, modeOf(here(name)))
		if content != "" {
			equal(t, content, read(here(name)))
			equal(t, content, read(there(name)))
		}
	}

	write(t, here("plain"), "1")
	write(t, here("script"), "1")
	must(t, os.Chmod(here("script"), 0o755))
	write(t, here("sub/secret"), "1")
	must(t, os.Chmod(here("sub/secret"), 0o600))
	must(t, os.Chmod(here("sub"), 0o700))
	write(t, there("script"), "1")
	run()
	has("plain", 0o644, "1")
	has("script", 0o755, "1")
	has("sub", 0o700, "")
	has("sub/secret", 0o600, "1")

	write(t, there("made/file"), "1")
	write(t, there("script"), "22")
	write(t, here("sub/secret"), "22")
	must(t, os.Chmod(here("plain"), 0o750))
	run()
	has("made", 0o755, "")
	has("made/file", 0o644, "1")
	has("script", 0o755, "22")
	has("sub/secret", 0o600, "22")
	has("plain", 0o750, "1")

	// A file that changed on both sides is a conflict; one that only seems to have another mode there is none.
	must(t, os.Remove(here("plain")))
	run()
	equal(t, "", modeOrNothing(there("plain")))
	equal(t, 0, len(c.conflicts))
}

func modeOrNothing(path string) string {
	if mode := modeOf(path); mode != 0 {
		return mode.String()
	}
	return ""
}

// A kill after the files have come here, and before their modes, leaves them private: they get the mode of new ones.
func TestContainerWithoutModesAfterAKill(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	c, _ := newCycle(t, root, setWithoutModes)
	sync := func() {
		_, err := c.run(t.Context(), true)
		must(t, err)
	}
	sync()
	write(t, filepath.Join(root, "there", "file"), "1")
	write(t, filepath.Join(root, "here", "file"), "1")
	must(t, os.Chmod(filepath.Join(root, "here", "file"), 0o600))
	sum := sha256.Sum256([]byte("1"))
	c.intent = &intent{here: []*core.Change{{Path: "file", New: &core.Entry{Kind: core.EntryKind_File, Digest: sum[:]}}}}
	sync()
	equal(t, os.FileMode(0o644), modeOf(filepath.Join(root, "here", "file")))
}
