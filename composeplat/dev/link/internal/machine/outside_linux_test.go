package machine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"composeplat/link/internal/beneath"
)

// ignored is what the command line hands over for each folder.
var ignored = []string{"**/.[gG][iI][tT]", "**/.[sS][tT][iI][gG][nN][oO][rR][eE]"}

// An outsider watches a folder beside the synced one, which no container may reach. The kernel reports every process that
// opens, changes or creates a file there.
type outsider struct {
	t      *testing.T
	root   string
	before string
	events *os.File

	lock sync.Mutex
	seen []string
}

const outsiderMask = unix.IN_OPEN | unix.IN_ACCESS | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE |
	unix.IN_MOVED_FROM | unix.IN_MOVED_TO

func (w *world) outsider() *outsider {
	w.t.Helper()
	o := &outsider{t: w.t, root: filepath.Join(w.root, "outside")}
	write(w.t, filepath.Join(o.root, ".bashrc"), "the developer's")
	write(w.t, filepath.Join(o.root, "secret"), "the developer's secret")
	write(w.t, filepath.Join(o.root, "folder/file"), "the developer's file")
	o.before = listingNow(o.root)
	descriptor, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(w.t, err)
	for _, folder := range []string{o.root, filepath.Join(o.root, "folder")} {
		_, err := unix.InotifyAddWatch(descriptor, folder, outsiderMask)
		must(w.t, err)
	}
	o.events = os.NewFile(uintptr(descriptor), "inotify")
	go o.watch()
	return o
}

func (o *outsider) watch() {
	buffer := make([]byte, 16<<10)
	for {
		n, err := o.events.Read(buffer)
		if err != nil {
			return
		}
		for rest := buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			event := (*unix.InotifyEvent)(unsafe.Pointer(&rest[0]))
			length := unix.SizeofInotifyEvent + int(event.Len)
			name := strings.TrimRight(string(rest[unix.SizeofInotifyEvent:length]), "\x00")
			o.lock.Lock()
			o.seen = append(o.seen, name)
			o.lock.Unlock()
			rest = rest[length:]
		}
	}
}

// untouched fails where anything outside was so much as opened.
func (o *outsider) untouched() {
	o.t.Helper()
	o.events.Close()
	o.lock.Lock()
	seen := o.seen
	o.lock.Unlock()
	if len(seen) > 0 {
		o.t.Errorf("opened outside: %q", seen)
	}
	if now := listingNow(o.root); now != o.before {
		o.t.Errorf("outside is now\n%s", now)
	}
}

// linksInside fails where a link in a folder leads out of it, whether or not there is anything there.
func linksInside(t *testing.T, root string) {
	t.Helper()
	root = filepath.Clean(root)
	top, err := beneath.Open(root)
	must(t, err)
	defer top.Close()
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type()&fs.ModeSymlink != 0 {
			if _, err := os.Stat(path); errors.Is(err, unix.ELOOP) {
				return nil // it leads to itself, and so nowhere
			}
			folder := strings.TrimPrefix(strings.TrimPrefix(filepath.Dir(path), root), "/")
			if target, err := os.Readlink(path); err != nil || !top.StaysInside(folder, target) {
				t.Errorf("%s leads to %s", path, target)
			}
		}
		return nil
	})
}

// A link whose target has an empty part, or goes through another link, was taken for one that stays inside.
func TestNoLinkThatLeadsOutArrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := w.outsider()
	w.config.Folders[0].Ignores = ignored
	write(t, w.here("d/file"), "x")
	write(t, w.here(".git/config"), "the developer's")
	w.startSynced()
	for name, target := range map[string]string{
		"empty": "d//../../outside/.bashrc", "k": ".", "l3": "k/../outside/secret", "absolute": filepath.Join(w.root, "outside"),
		"d/plain": "../../outside/secret", "git": ".git/config", "d/git": "../.GIT", "fine": "d/file",
	} {
		must(t, os.Symlink(target, w.there(name)))
	}
	write(t, w.there("last"), "x")
	w.arrives(w.here("last"), "x")
	w.eventually("the links that stay", func() bool {
		first, _ := os.Readlink(w.here("k"))
		second, _ := os.Readlink(w.here("fine"))
		return first == "." && second == "d/file"
	})
	w.eventually("problems", func() bool { return w.count("problem") == 6 })
	for _, name := range []string{"empty", "l3", "absolute", "d/plain", "git", "d/git"} {
		w.goes(w.here(name))
	}
	w.stop()
	equal(t, "the developer's", read(w.here(".git/config")))
	outside.untouched()
}

// A folder mount and a mount of a single file in it: a link in the file's place led out, or to .git/config.
func TestASingleFileIsNeverFollowed(t *testing.T) {
	t.Parallel()
	for name, oneWay := range map[string]bool{"mounted to write": false, "mounted read-only": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			outside := w.outsider()
			write(t, w.here("nginx.conf"), "of the project")
			write(t, w.here("other.txt"), "another file")
			write(t, w.here(".git/config"), "the developer's")
			there := filepath.Join(w.root, "image", "nginx.conf")
			write(t, there, "of the image")
			w.config.Folders = []FolderConfig{
				{Local: w.here(""), Remote: w.there(""), Within: w.here(""), Ignores: ignored},
				{Local: w.here("nginx.conf"), Remote: there, Within: w.here(""), File: true, OneWay: oneWay},
			}
			w.startSynced()
			w.arrives(there, "of the project")
			for _, target := range []string{"../outside/secret", ".git/config", "other.txt", "d//../../outside/.bashrc"} {
				_ = os.Remove(w.there("nginx.conf"))
				_ = os.Symlink(target, w.there("nginx.conf"))
				w.until(func() bool { _, err := os.Readlink(w.here("nginx.conf")); return err == nil })
				write(t, there, "written by the container")
				w.until(func() bool { return read(there) != "written by the container" })
				if content := read(there); content != "written by the container" && content != "of the project" {
					t.Fatalf("the container has read %q through %s", content, target)
				}
			}
			// Whoever puts links there from this side is not followed either.
			_ = os.Remove(w.here("nginx.conf"))
			must(t, os.Symlink("../outside/secret", w.here("nginx.conf")))
			write(t, there, "written by the container again")
			w.eventually("a problem", func() bool { return w.count("problem") > 0 })
			w.stop()
			equal(t, "another file", read(w.here("other.txt")))
			equal(t, "the developer's", read(w.here(".git/config")))
			outside.untouched()
		})
	}
}

// until waits a moment for what may happen or not.
func (w *world) until(holds func() bool) {
	for range 60 {
		if holds() {
			return
		}
		unix.Nanosleep(&unix.Timespec{Nsec: 10_000_000}, nil)
	}
}

// What was mounted from within a synced folder was replaced by a link, which then was what is synced.
func TestALinkDoesNotBecomeARoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := w.outsider()
	write(t, w.here("sub/file"), "x")
	write(t, w.here("other/kept"), "kept")
	elsewhere := filepath.Join(w.root, "elsewhere")
	w.config.Folders = []FolderConfig{
		{Local: w.here(""), Remote: w.there(""), Within: w.here("")},
		{Local: w.here("sub"), Remote: elsewhere, Within: w.here("")},
	}
	w.start()
	w.arrives(filepath.Join(elsewhere, "file"), "x")
	w.arrives(w.there("sub/file"), "x")
	must(t, os.RemoveAll(w.there("sub")))
	must(t, os.Symlink("other", w.there("sub")))
	w.eventually("the link arrives", func() bool { target, _ := os.Readlink(w.here("sub")); return target == "other" })
	write(t, filepath.Join(elsewhere, "planted"), "x")
	// It is seen as a link, or before that as a folder that is gone.
	w.eventually("a problem", func() bool {
		for _, event := range append(w.all("problem"), w.all("sync-stopped")...) {
			if event["event"] == "sync-stopped" && event["folder"] == 1.0 {
				return true
			}
			if why, _ := event["reason"].(string); strings.Contains(why, "links are not followed") {
				return true
			}
		}
		return false
	})
	w.stop()
	equal(t, "kept", read(w.here("other/kept")))
	w.goes(w.here("other/planted"))
	// The next session is refused, with the reason.
	w.start()
	if err := <-w.failed; !strings.Contains(err.Error(), w.here("sub")) || !strings.Contains(err.Error(), "links are not followed") {
		t.Fatal(err)
	}
	<-w.status
	w.up = nil
	outside.untouched()
}

// The rules lie in the folder that they are about, and the container changed them there.
func TestTheContainerDoesNotChangeTheRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Folders[0].Ignores = ignored
	write(t, w.here(".stignore"), "the developer's")
	w.startSynced()
	write(t, w.there(".stignore"), "!.git")
	write(t, w.there("sub/.StIgnore"), "!.git")
	write(t, w.there(".git/hooks/pre-commit"), "planted")
	write(t, w.there("last"), "x")
	w.arrives(w.here("last"), "x")
	w.arrives(w.here("last"), "x")
	equal(t, "the developer's", read(w.here(".stignore")))
	w.goes(w.here("sub/.StIgnore"))
	w.goes(w.here(".git"))
}
