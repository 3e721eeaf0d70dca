package tree

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/wire"
)

// A gardener changes a folder at random, and notes which paths it has touched.
type gardener struct {
	t       *testing.T
	root    string
	random  *rand.Rand
	touched []string
}

func realPath(t *testing.T, name string) string {
	t.Helper()
	found, err := filepath.EvalSymlinks(name)
	must(t, err)
	return found
}

func (g *gardener) path() string {
	name := ""
	for range 1 + g.random.IntN(3) {
		name = Join(name, string(rune('a'+g.random.IntN(3))))
	}
	return name
}

func (g *gardener) change() {
	name := g.path()
	at := filepath.Join(g.root, name)
	other := filepath.Join(g.root, g.path())
	// Some of them fail, as something else is in the way.
	switch g.random.IntN(9) {
	case 0, 1, 2:
		_ = os.MkdirAll(filepath.Dir(at), 0o755)
		_ = os.WriteFile(at, []byte(fmt.Sprint(g.random.IntN(5000))), 0o644)
	case 3:
		_ = os.RemoveAll(at)
	case 4:
		_ = os.MkdirAll(at, 0o755)
	case 5:
		_ = os.Symlink([]string{"a", "../../out", "b/c"}[g.random.IntN(3)], at)
	case 6:
		_ = os.Rename(at, other)
	case 7:
		_ = os.Chmod(at, []os.FileMode{0o700, 0o755, 0o640, 0o600}[g.random.IntN(4)]|0o500)
	case 8:
		_ = os.WriteFile(at+".skipped", []byte("x"), 0o644)
	}
	for _, changed := range []string{at, other} {
		if above, err := filepath.EvalSymlinks(filepath.Dir(changed)); err == nil {
			changed = filepath.Join(above, filepath.Base(changed))
		}
		name, err := filepath.Rel(g.root, changed)
		must(g.t, err)
		// All folders on the way may be new, and a renamed folder brings its contents.
		for ; name != ""; name = parentPath(name) {
			g.touched = append(g.touched, name)
		}
		_ = filepath.Walk(changed, func(path string, _ os.FileInfo, err error) error {
			if name, relative := filepath.Rel(g.root, path); err == nil && relative == nil {
				g.touched = append(g.touched, name)
			}
			return nil
		})
	}
}

func (g *gardener) check(tree *Tree, before, after *View, ignores []string) {
	fresh := planted(g.t, g.root, ignores...)
	defer fresh.Close()
	want := scan(g.t, fresh, true)
	if !after.Content.Equal(want.Content, true) || !after.Modes.Equal(want.Modes) || after.Files != want.Files || after.Bytes != want.Bytes {
		g.t.Fatalf("%s %v %d %d, and not %s %v %d %d", listed(after), after.Modes, after.Files, after.Bytes, listed(want), want.Modes, want.Files, want.Bytes)
	}
	if !maps.EqualFunc(tree.cache.Entries, fresh.cache.Entries, func(a, b *core.CacheEntry) bool { return slices.Equal(a.Digest, b.Digest) }) {
		g.t.Fatal("other digests are kept")
	}
	if before == after {
		return
	}
	if after.Since != before.Number || after.Number == before.Number {
		g.t.Fatalf("%d since %d, after %d", after.Number, after.Since, before.Number)
	}
	answer := scanAnswer{Modes: map[string]uint32{}}
	content, err := Apply(before.Content, answer.compare(before, after))
	must(g.t, err)
	if modes := before.Modes.with(answer.Modes, answer.Gone); !content.Equal(after.Content, true) || !modes.Equal(after.Modes) {
		g.t.Fatalf("the changes %v do not lead there: %v, %v", after.Changed, modes, after.Modes)
	}
}

// After any changes, a scan of the touched paths finds as much as a full scan.
func TestNarrowScansFindWhatFullScansFind(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			ignores := []string{"**/*.skipped"}
			if seed%3 == 0 {
				ignores = []string{"b", "!b/a", "**/*.skipped"}
			}
			g := &gardener{t: t, root: realPath(t, t.TempDir()), random: rand.New(rand.NewPCG(seed, 1))}
			for range 60 {
				g.change()
			}
			tree := planted(t, g.root, ignores...)
			before := scan(t, tree, true)
			for range 80 {
				g.touched = nil
				for range 1 + g.random.IntN(3) {
					g.change()
				}
				tree.watch.TakeTouched()
				tree.full = false
				for _, name := range g.touched {
					tree.recheck[name] = true
				}
				must(t, tree.openRoot())
				tree.forgetRacy()
				read, err := tree.scanNarrow(t.Context())
				must(t, err)
				tree.recheck, tree.racy = map[string]bool{}, slices.Collect(maps.Keys(read.Entries))
				g.check(tree, before, tree.view, ignores)
				before = tree.view
			}
		})
	}
}

// A narrow scan reads the folders that changed, and no others.
func TestOtherFoldersAreNotRead(t *testing.T) {
	root := t.TempDir()
	put(t, root, "changed/file", "before")
	put(t, root, "other/file", "before")
	tree := planted(t, root)
	view := scan(t, tree, true)
	put(t, root, "changed/file", "after")
	put(t, root, "other/file", "after")
	tree.recheck["changed/file"] = true
	read, err := tree.scanNarrow(t.Context())
	must(t, err)
	if found := slices.Collect(maps.Keys(read.Entries)); !slices.Equal(found, []string{"changed/file"}) {
		t.Error(found)
	}
	if !slices.Equal(tree.view.Changed, []string{"changed/file"}) || tree.view.Content.Contents["other"] != view.Content.Contents["other"] {
		t.Error(tree.view.Changed)
	}
}

func TestChangesNeedAFolder(t *testing.T) {
	content := folder("a", folder("b", file()))
	for _, name := range []string{"x/y", "a/b/c", "a/x/y"} {
		if _, err := Apply(content, []*core.Change{{Path: name, New: file()}}); err != errNoParent {
			t.Errorf("%s: %v", name, err)
		}
	}
	changed, err := Apply(content, []*core.Change{{Path: "a/c", New: file()}, {Path: "a/b"}, {Path: "d", New: file()}})
	must(t, err)
	want := folder("a", folder("c", file()))
	want.Contents["d"] = file()
	if !changed.Equal(want, true) || !content.Equal(folder("a", folder("b", file())), true) {
		t.Error(changed, content)
	}
}

// A folder is copied once for all changes in it, and never changed where another tree has it too.
func TestAFolderIsCopiedOnceForManyChanges(t *testing.T) {
	large := &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{}}
	for number := range 200_000 {
		large.Contents[fmt.Sprint(number)] = file()
	}
	var changes []*core.Change
	for number := range maxNarrow - 1 {
		changes = append(changes, &core.Change{Path: fmt.Sprintf("large/%d", number)})
	}
	added := folder("x", file())
	changes = append(changes, &core.Change{Path: "large/new", New: added}, &core.Change{Path: "large/new/y", New: file()})
	content := folder("large", large)
	began := time.Now()
	changed, err := Apply(content, changes[1:])
	must(t, err)
	if took := time.Since(began); took > 2*time.Second {
		t.Error(took)
	}
	if len(changed.Contents["large"].Contents) != 200_000-maxNarrow+3 || len(large.Contents) != 200_000 || len(added.Contents) != 1 {
		t.Error(len(changed.Contents["large"].Contents), len(large.Contents), len(added.Contents))
	}
}

// The other end of a stream has the view of the tree after each scan, however it was made.
func TestARemoteHasTheViewOfTheTree(t *testing.T) {
	for seed := range uint64(4) {
		g := &gardener{t: t, root: realPath(t, t.TempDir()), random: rand.New(rand.NewPCG(seed, 2))}
		near, far := net.Pipe()
		tree := planted(t, g.root, "**/*.skipped")
		go func() { _ = Serve(tree, far) }()
		remote, err := NewRemote(near, []string{"**/*.skipped"})
		must(t, err)
		before := scan(t, remote, true)
		for number := range 60 {
			g.touched = nil
			for range g.random.IntN(4) {
				g.change()
			}
			tree.lock.Lock()
			for _, name := range g.touched {
				tree.recheck[name] = true
			}
			tree.lock.Unlock()
			after := scan(t, remote, number%7 == 6)
			if !after.Content.Equal(tree.view.Content, true) || !after.Modes.Equal(tree.view.Modes) || after.Files != tree.view.Files {
				t.Fatalf("%s %v, and not %s %v", listed(after), modesOf(after), listed(tree.view), modesOf(tree.view))
			}
			if after != before && after.Since != before.Number {
				t.Fatalf("%d since %d, after %d", after.Number, after.Since, before.Number)
			}
			before = after
		}
		remote.Close()
	}
}

// A view lists the differences from the one before, on both sides alike.
func TestAViewHasWhatHasChanged(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		put(t, root, "folder/file", "before")
		put(t, root, "other/file", "before")
		side := open()
		before := scan(t, side, true)
		put(t, root, "folder/file", "after")
		after := scanUntil(t, side, "the change", func(view *View) bool { return view != before })
		if after.Since != before.Number || !slices.Equal(after.Changed, []string{"folder/file"}) {
			t.Errorf("%v since %d", after.Changed, after.Since)
		}
		before = after
		must(t, os.Chmod(filepath.Join(root, "folder/file"), 0o600))
		after = scanUntil(t, side, "the mode", func(view *View) bool { return view != before })
		if after.Since != before.Number || !slices.Equal(after.Changed, []string{"folder/file"}) {
			t.Errorf("%v since %d", after.Changed, after.Since)
		}
		if again := scan(t, side, true); again != after {
			t.Errorf("%v since %d", again.Changed, again.Since)
		}
	})
}

// Where much has changed, everything may have: the paths are not listed.
func TestManyChangesAreNotListed(t *testing.T) {
	modes := map[string]uint32{}
	for number := range maxNarrow + 1 {
		modes[fmt.Sprint(number)] = 0o600
	}
	remote := answering(t, frames(frameScan, body[*core.Change](t, scanAnswer{Modes: modes})))
	if view := scan(t, remote, true); view.Since != 0 || view.Changed != nil {
		t.Error(view.Since, len(view.Changed))
	}
}

// Deltas are not trusted either: each of them must fit the view, and nothing of a refused one stays.
func TestDeltasThatDoNotFitAreRefused(t *testing.T) {
	for name, change := range map[string]*core.Change{
		"in a folder that is not there": {Path: "b/c", New: file()},
		"in a file":                     {Path: "a/c", New: file()},
		"deleted in a file":             {Path: "a/c"},
		"above":                         {Path: "../a", New: file()},
		"from the root":                 {Path: "/a", New: file()},
		"with an empty name":            {Path: "d//e", New: file()},
		"with a name that climbs":       {Path: "d/..", New: file()},
		"with contents that climb":      {Path: "d", New: folder("..", file())},
		"with a file that has contents": {Path: "d", New: &core.Entry{Kind: core.EntryKind_File, Contents: folder("a", file()).Contents}},
	} {
		t.Run(name, func(t *testing.T) {
			remote := answering(t, func(frames *wire.Frames) error {
				content := folder("a", file())
				content.Contents["d"] = folder("e", file())
				if err := frames.Send(frameScan, body(t, scanAnswer{}, &core.Change{New: content})); err != nil {
					return err
				}
				if _, _, err := frames.Read(); err != nil {
					return err
				}
				return frames.Send(frameScan, body(t, scanAnswer{}, change))
			})
			before := scan(t, remote, true)
			if view, err := remote.Scan(t.Context(), false); !errors.Is(err, ErrLost) {
				t.Errorf("believed: %v", view)
			}
			if remote.view != before || listed(before) != "a File, d Directory, d/e File" {
				t.Error(listed(remote.view))
			}
		})
	}
}
