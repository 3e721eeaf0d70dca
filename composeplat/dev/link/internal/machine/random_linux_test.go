package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An actor does random things on one side. What it takes away itself, it knows for sure: it moves it out in one step.
type actor struct {
	t      *testing.T
	name   string
	root   string
	trash  string
	random *rand.Rand
	number int

	written map[string]bool
	removed map[string]bool
}

func (a *actor) path() string {
	var parts []string
	for depth := a.random.IntN(3); depth > 0; depth-- {
		parts = append(parts, fmt.Sprintf("d%d", a.random.IntN(3)))
	}
	return filepath.Join(a.root, filepath.Join(append(parts, fmt.Sprintf("f%d", a.random.IntN(4)))...))
}

func (a *actor) aside() string {
	a.number++
	return filepath.Join(a.trash, fmt.Sprint(a.name, a.number))
}

func (a *actor) step() {
	path := a.path()
	switch a.random.IntN(12) {
	case 0, 1:
		aside := a.aside()
		if unix.Rename(path, aside) == nil {
			a.gone(aside)
		}
	case 2:
		if folder := filepath.Dir(path); folder != a.root {
			aside := a.aside()
			if unix.Rename(folder, aside) == nil {
				a.gone(aside)
			}
		}
	case 3, 4:
		to := a.path()
		_ = os.MkdirAll(filepath.Dir(to), 0o755)
		_ = unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	case 5:
		_ = os.Chmod(path, []os.FileMode{0o644, 0o600, 0o755}[a.random.IntN(3)])
	default:
		content := fmt.Sprintf("%s %d %s", a.name, a.number, strings.Repeat("x", a.random.IntN(2000)))
		aside := a.aside()
		must(a.t, os.WriteFile(aside, []byte(content), 0o644))
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE) == nil:
			a.written[content] = true
		case unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE) == nil:
			a.written[content] = true
			a.gone(aside)
		}
	}
}

func (a *actor) gone(aside string) {
	_ = filepath.WalkDir(aside, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			a.removed[read(path)] = true
		}
		return nil
	})
}

func TestRandomChangesLoseNothing(t *testing.T) {
	t.Parallel()
	seeds := []uint64{1, 2, 3}
	if given, err := strconv.ParseUint(os.Getenv("LINK_SEED"), 10, 64); err == nil {
		seeds = []uint64{given}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			randomly(t, seed)
		})
	}
}

func randomly(t *testing.T, seed uint64) {
	w := newWorld(t)
	must(t, os.Mkdir(filepath.Join(w.root, "trash"), 0o755))
	for number := range 30 {
		write(t, w.here(fmt.Sprintf("still/%d", number)), fmt.Sprint(number))
	}
	w.startSynced()
	actors := []*actor{}
	var both sync.WaitGroup
	for number, root := range []string{"here", "there"} {
		a := &actor{
			t: t, name: root, root: filepath.Join(w.root, root), trash: filepath.Join(w.root, "trash"),
			random:  rand.New(rand.NewPCG(seed, uint64(number))),
			written: map[string]bool{}, removed: map[string]bool{},
		}
		actors = append(actors, a)
		both.Go(func() {
			for range 400 {
				a.step()
				time.Sleep(time.Duration(a.random.IntN(8)) * time.Millisecond)
			}
		})
	}
	cutter := rand.New(rand.NewPCG(seed, 9))
	over := make(chan struct{})
	go func() {
		both.Wait()
		close(over)
	}()
	for running := true; running; {
		select {
		case <-over:
			running = false
		case <-time.After(time.Duration(100+cutter.IntN(500)) * time.Millisecond):
			w.cut()
		}
	}
	before := ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(difference(listingNow(w.here("")), listingNow(w.there(""))))
		}
	})
	w.eventually("both sides are the same", func() bool {
		time.Sleep(300 * time.Millisecond)
		here, there := listingNow(w.here("")), listingNow(w.there(""))
		same := here == there && here == before
		before = here
		return same
	})
	equal(t, 0, w.count("sync-stopped"))
	found := map[string]bool{}
	_ = filepath.WalkDir(w.here(""), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			found[read(path)] = true
		}
		return err
	})
	removed := map[string]bool{}
	for _, a := range actors {
		// Into a folder that was moved out, a file may have come while it was read.
		a.gone(a.trash)
		for content := range a.removed {
			removed[content] = true
		}
	}
	for _, a := range actors {
		for content := range a.written {
			if !found[content] && !removed[content] {
				t.Errorf("lost: %.40s", content)
			}
		}
	}
	if len(found) < 35 {
		t.Errorf("too little happened: %d contents", len(found))
	}
	equal(t, "7", read(w.here("still/7")))
}

// difference is what only one of two listings has.
func difference(here, there string) string {
	var out strings.Builder
	for _, line := range strings.Split(here, "\n") {
		if !strings.Contains(there, line) {
			fmt.Fprintf(&out, "here: %.60s\n", line)
		}
	}
	for _, line := range strings.Split(there, "\n") {
		if !strings.Contains(here, line) {
			fmt.Fprintf(&out, "there: %.60s\n", line)
		}
	}
	return out.String()
}

// listingNow is a tree as text, or nothing while it changes.
func listingNow(root string) string {
	var out strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasPrefix(entry.Name(), ".mutagen-temporary-") {
			return errors.New("changing")
		}
		info, err := entry.Info()
		if err != nil || path == root {
			return err
		}
		name, _ := filepath.Rel(root, path)
		content := ""
		if info.Mode().IsRegular() {
			content = read(path)
		}
		fmt.Fprintf(&out, "%s %v %s\n", name, info.Mode(), content)
		return nil
	})
	if err != nil {
		return fmt.Sprint(time.Now())
	}
	return out.String()
}
