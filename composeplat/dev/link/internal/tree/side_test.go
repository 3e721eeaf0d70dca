package tree

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"
)

// What a Side promises holds for the folder on this machine, and for the one at the other end of a stream alike.

const deadline = 60 * time.Second

// served is a Remote of a folder, with a Tree of it behind the stream.
func served(t *testing.T, root string, ignores ...string) *Remote {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan error, 1)
	tree := planted(t, root, ignores...)
	go func() { ended <- Serve(tree, far) }()
	remote, err := NewRemote(near, ignores)
	must(t, err)
	t.Cleanup(func() {
		remote.Close()
		select {
		case <-ended:
		case <-time.After(deadline):
			t.Error("the server does not end with its stream")
		}
	})
	return remote
}

func onBothSides(t *testing.T, test func(t *testing.T, root string, open func(ignores ...string) Side)) {
	t.Run("local", func(t *testing.T) {
		root := t.TempDir()
		test(t, root, func(ignores ...string) Side { return planted(t, root, ignores...) })
	})
	t.Run("remote", func(t *testing.T) {
		root := t.TempDir()
		test(t, root, func(ignores ...string) Side { return served(t, root, ignores...) })
	})
}

func scan(t *testing.T, side Side, full bool) *View {
	t.Helper()
	view, err := side.Scan(t.Context(), full)
	must(t, err)
	return view
}

// scanUntil scans after each change that is reported, until the view is as it should be.
func scanUntil(t *testing.T, side Side, what string, holds func(*View) bool) *View {
	t.Helper()
	timeout := time.After(deadline)
	for {
		if view := scan(t, side, false); holds(view) {
			return view
		}
		select {
		case <-side.Changed():
		case <-timeout:
			t.Fatalf("never: %s", what)
		}
	}
}

// put writes a file, and the folders on the way to it.
func put(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

func contentOf(t *testing.T, root, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	must(t, err)
	return string(content)
}

// listed are the paths of a view, with the kinds of what is there.
func listed(view *View) string {
	var paths []string
	Walk("", view.Content, func(name string, entry *core.Entry) {
		if name != "" {
			paths = append(paths, name+" "+entry.Kind.String())
		}
	})
	slices.Sort(paths)
	return strings.Join(paths, ", ")
}

func modesOf(view *View) map[string]uint32 { return maps.Collect(view.Modes.All()) }

// entryAt finds an entry of a view.
func entryAt(view *View, name string) *core.Entry {
	entry := view.Content
	for part := range strings.SplitSeq(name, "/") {
		if entry == nil {
			return nil
		}
		entry = entry.Contents[part]
	}
	return entry
}

func digestOf(content string) []byte {
	sum := sha256.Sum256([]byte(content))
	return sum[:]
}

func fileOf(content string) *core.Entry {
	return &core.Entry{Kind: core.EntryKind_File, Digest: digestOf(content)}
}

// transfer makes changes on one side with the contents of the other one.
func transfer(t *testing.T, from, to Side, changes ...*core.Change) *Outcome {
	t.Helper()
	paths, digests := core.TransitionDependencies(changes)
	needed, signatures, receiver, err := to.Stage(paths, digests)
	must(t, err)
	if len(needed) > 0 {
		must(t, from.Supply(needed, signatures, receiver))
	}
	outcome, err := to.Transition(t.Context(), changes, Additions{})
	must(t, err)
	return outcome
}

func TestAScanFindsFilesFoldersLinksAndTheirModes(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		put(t, root, "folder/file", "12345")
		put(t, root, "run", "678")
		must(t, os.Chmod(filepath.Join(root, "run"), 0o751))
		must(t, os.Chmod(filepath.Join(root, "folder"), 0o700))
		must(t, os.Symlink("folder/file", filepath.Join(root, "link")))
		view := scan(t, open(), true)
		if found := listed(view); found != "folder Directory, folder/file File, link SymbolicLink, run File" {
			t.Fatal(found)
		}
		if !HaveSameContent(entryAt(view, "folder/file"), fileOf("12345")) || entryAt(view, "link").Target != "folder/file" {
			t.Errorf("%v", view.Content)
		}
		if want := map[string]uint32{"folder": 0o700, "folder/file": 0o644, "run": 0o751}; !maps.Equal(modesOf(view), want) {
			t.Errorf("%v, and not %v", modesOf(view), want)
		}
		if view.Files != 2 || view.Bytes != 8 {
			t.Errorf("%d files, %d bytes", view.Files, view.Bytes)
		}
	})
}

func TestTheSameViewSaysThatNothingHasChanged(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		put(t, root, "file", "a")
		side := open()
		first := scan(t, side, true)
		for _, full := range []bool{false, true, true} {
			if again := scan(t, side, full); again != first {
				t.Fatalf("another view (full: %v): %v", full, again)
			}
		}
		put(t, root, "file", "b")
		if changed := scan(t, side, true); changed == first || !HaveSameContent(entryAt(changed, "file"), fileOf("b")) {
			t.Fatal("the change is not seen")
		}
		if HaveSameContent(entryAt(first, "file"), fileOf("b")) {
			t.Error("the first view has changed")
		}
	})
}

func TestChangesAreReportedAndFound(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		put(t, root, "kept/file", "a")
		put(t, root, "gone/file", "a")
		side := open()
		scan(t, side, true)
		put(t, root, "new/deep/file", "b")
		must(t, os.RemoveAll(filepath.Join(root, "gone")))
		must(t, os.Chmod(filepath.Join(root, "kept/file"), 0o600))
		view := scanUntil(t, side, "all three", func(view *View) bool {
			_, stillHasMode := modesOf(view)["gone/file"]
			return entryAt(view, "new/deep/file") != nil && entryAt(view, "gone") == nil && !stillHasMode &&
				modesOf(view)["kept/file"] == 0o600
		})
		if found := listed(view); found != "kept Directory, kept/file File, new Directory, new/deep Directory, new/deep/file File" {
			t.Error(found)
		}
		if side.WatchError() != "" {
			t.Error(side.WatchError())
		}
	})
}

func TestIgnoredAndTemporaryFilesAreNotTracked(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		put(t, root, "built/a", "x")
		put(t, root, "built/keep", "x")
		put(t, root, "src/a.pyc", "x")
		put(t, root, "src/a.py", "x")
		put(t, root, TemporaryPrefix+"x", "x")
		view := scan(t, open("built/*", "!built/keep", "**/*.pyc"), true)
		want := "built Directory, built/a Untracked, built/keep File, src Directory, src/a.py File, src/a.pyc Untracked"
		if found := listed(view); found != want {
			t.Error(found)
		}
	})
}

func TestAFolderThatIsNotThereIsNotEmpty(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		put(t, root, "file", "x")
		side := open()
		scan(t, side, true)
		must(t, os.Rename(root, root+".elsewhere"))
		if view := scan(t, side, true); view.Content != nil || len(modesOf(view)) != 0 {
			t.Fatalf("%v", view.Content)
		}
		// Nothing can be done in it meanwhile.
		changes := []*core.Change{{Path: "new", New: fileOf("x")}}
		if _, err := side.Transition(t.Context(), changes, Additions{}); err == nil || err.Error() != errNoFolder.Error() {
			t.Errorf("changed: %v", err)
		}
		if _, _, _, err := side.Stage([]string{"new"}, [][]byte{digestOf("x")}); err == nil || err.Error() != errNoFolder.Error() {
			t.Errorf("staged: %v", err)
		}
		if _, err := side.StageCopies([]string{"new"}, [][]byte{digestOf("x")}); err == nil || err.Error() != errNoFolder.Error() {
			t.Errorf("copied: %v", err)
		}
		if _, err := side.SetModes(map[string]uint32{"file": 0o600}); err == nil || err.Error() != errNoFolder.Error() {
			t.Errorf("modes set: %v", err)
		}
		must(t, os.Mkdir(root, 0o755))
		if view := scan(t, side, true); view.Content == nil || len(view.Content.Contents) != 0 {
			t.Fatalf("the new folder: %v", view.Content)
		}
		put(t, root, "other", "y")
		scanUntil(t, side, "a file in the new folder", func(view *View) bool { return entryAt(view, "other") != nil })
	})
}

func TestContentsAreTransferred(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		source := t.TempDir()
		large := strings.Repeat("0123456789abcdef", 40_000)
		put(t, source, "folder/large", large)
		put(t, source, "small", "small")
		put(t, source, "empty", "")
		put(t, root, "small", "before")
		from, to := planted(t, source), open()
		wanted := scan(t, from, true).Content
		before := scan(t, to, true).Content
		outcome := transfer(t, from, to, &core.Change{Path: "folder", New: wanted.Contents["folder"]},
			&core.Change{Path: "small", Old: before.Contents["small"], New: wanted.Contents["small"]},
			&core.Change{Path: "empty", New: wanted.Contents["empty"]})
		if len(outcome.Problems) > 0 || outcome.Missing || len(outcome.Results) != 3 {
			t.Fatalf("%+v", outcome)
		}
		for i, name := range []string{"folder", "small", "empty"} {
			if !outcome.Results[i].Equal(wanted.Contents[name], true) {
				t.Errorf("%s: %v", name, outcome.Results[i])
			}
		}
		if contentOf(t, root, "folder/large") != large || contentOf(t, root, "small") != "small" || contentOf(t, root, "empty") != "" {
			t.Error("other contents")
		}
		if found := listed(scan(t, to, false)); found != "empty File, folder Directory, folder/large File, small File" {
			t.Error(found)
		}
		// Files are made with the fewest permissions: SetModes gives them theirs.
		if modes := modesOf(scan(t, to, true)); modes["folder/large"] != 0o600 || modes["folder"] != 0o700 {
			t.Errorf("%v", modes)
		}
		refused, err := to.SetModes(map[string]uint32{"folder/large": 0o640, "folder": 0o750, "small": 0o4777, "absent": 0o600})
		must(t, err)
		want := map[string]uint32{"folder/large": 0o640, "folder": 0o750, "small": 0o777, "empty": 0o600}
		if modes := modesOf(scan(t, to, false)); len(refused) > 0 || !maps.Equal(modes, want) {
			t.Errorf("%v, refused %v", modes, refused)
		}
	})
}

// A small change takes one request: contents and modes go with it. Contents that differ from the change are not taken, and
// a mode is set only for what the change has made.
func TestSmallContentsAndModesGoWithTheChange(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		source := t.TempDir()
		put(t, source, "folder/new", "new")
		put(t, source, "changed", "after")
		put(t, source, "later", "as it was scanned")
		put(t, root, "changed", "before")
		put(t, root, "later", "kept")
		from, to := planted(t, source), open()
		wanted, before := scan(t, from, true).Content, scan(t, to, true).Content
		contents := from.ReadSmall([]string{"folder/new", "changed", "later"})
		contents["later"] = []byte("something else")
		outcome, err := to.Transition(t.Context(), []*core.Change{
			{Path: "folder", New: wanted.Contents["folder"]},
			{Path: "changed", Old: before.Contents["changed"], New: wanted.Contents["changed"]},
			{Path: "later", Old: before.Contents["later"], New: wanted.Contents["later"]},
		}, Additions{Contents: contents, Modes: map[string]uint32{
			"folder": 0o755, "folder/new": 0o640, "changed": 0o4711, "later": 0o777, "other": 0o777,
		}})
		must(t, err)
		if !outcome.Missing || len(outcome.Problems) != 1 || outcome.Problems[0].Path != "later" || len(outcome.Refused) > 0 {
			t.Fatalf("%+v", outcome)
		}
		if contentOf(t, root, "folder/new") != "new" || contentOf(t, root, "changed") != "after" || contentOf(t, root, "later") != "kept" {
			t.Error("other contents")
		}
		kept := modesOf(scan(t, to, true))["later"]
		want := map[string]uint32{"folder": 0o755, "folder/new": 0o640, "changed": 0o711, "later": kept}
		if modes := modesOf(scan(t, to, false)); kept == 0o777 || !maps.Equal(modes, want) {
			t.Errorf("%v", modes)
		}
	})
}

// Contents and modes are given by whoever is at the other end: only those that a change asks for have an effect.
func TestAdditionsThatNoChangeAsksForHaveNoEffect(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		outside := t.TempDir()
		put(t, outside, "file", "outside")
		put(t, root, "kept", "kept")
		must(t, os.Symlink(outside, filepath.Join(root, "link")))
		to := open()
		before := scan(t, to, true)
		additions := Additions{Contents: map[string][]byte{"made": []byte("made")}, Modes: map[string]uint32{"made": 0o640}}
		for _, path := range []string{"kept", "other", "link/file", "../up", filepath.Join(outside, "file")} {
			additions.Contents[path], additions.Modes[path] = []byte("taken"), 0o777
		}
		outcome, err := to.Transition(t.Context(), []*core.Change{{Path: "made", New: fileOf("made")}}, additions)
		must(t, err)
		if outcome.Missing || len(outcome.Problems) > 0 || contentOf(t, outside, "file") != "outside" || contentOf(t, root, "kept") != "kept" {
			t.Fatalf("%+v", outcome)
		}
		after := scan(t, to, true)
		if found := listed(after); found != "kept File, link Problematic, made File" || modesOf(after)["kept"] != modesOf(before)["kept"] {
			t.Error(found, modesOf(after))
		}
		if found, err := filepath.Glob(filepath.Join(filepath.Dir(root), "up")); err != nil || len(found) > 0 {
			t.Error(found, err)
		}
	})
}

func TestOnlySmallContentsAreRead(t *testing.T) {
	source := t.TempDir()
	put(t, source, "small", "small")
	put(t, source, "empty", "")
	put(t, source, "half", strings.Repeat("x", maxSmall/2+1))
	put(t, source, "other half", strings.Repeat("y", maxSmall/2+1))
	from := planted(t, source)
	scan(t, from, true)
	if found := from.ReadSmall([]string{"small", "empty", "half"}); len(found) != 3 || string(found["small"]) != "small" || len(found["empty"]) != 0 {
		t.Error(found)
	}
	put(t, source, "small", "grown since")
	for _, paths := range [][]string{{"half", "other half"}, {"empty", "small"}, {"empty", "unknown"}} {
		if found := from.ReadSmall(paths); found != nil {
			t.Errorf("%v: %v", paths, found)
		}
	}
}

// The other direction: what is asked of the side is contents.
func TestContentsAreSupplied(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		target := t.TempDir()
		old := strings.Repeat("0123456789abcdef", 40_000)
		put(t, target, "large", old)
		put(t, root, "large", old+"and a little more")
		put(t, root, "new", "new")
		from, to := open(), planted(t, target)
		wanted, before := scan(t, from, true).Content, scan(t, to, true).Content
		outcome := transfer(t, from, to,
			&core.Change{Path: "large", Old: before.Contents["large"], New: wanted.Contents["large"]},
			&core.Change{Path: "new", New: wanted.Contents["new"]})
		if len(outcome.Problems) > 0 || outcome.Missing {
			t.Fatalf("%+v", outcome)
		}
		if contentOf(t, target, "large") != old+"and a little more" || contentOf(t, target, "new") != "new" {
			t.Error("other contents")
		}
	})
}

func TestAFileThatHasChangedMeanwhileIsMissing(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		source := t.TempDir()
		put(t, source, "file", "as it was scanned")
		from, to := planted(t, source), open()
		wanted := scan(t, from, true).Content
		scan(t, to, true)
		put(t, source, "file", "changed since")
		outcome := transfer(t, from, to, &core.Change{Path: "file", New: wanted.Contents["file"]})
		if !outcome.Missing || outcome.Results[0] != nil {
			t.Fatalf("%+v", outcome)
		}
		if _, err := os.Lstat(filepath.Join(root, "file")); !os.IsNotExist(err) {
			t.Error(err)
		}
	})
}

func TestWhatHasChangedMeanwhileIsNotOverwritten(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		source := t.TempDir()
		put(t, source, "file", "wanted")
		put(t, root, "file", "as it was scanned")
		put(t, root, "gone", "as it was scanned")
		from, to := planted(t, source), open()
		wanted, before := scan(t, from, true).Content, scan(t, to, true).Content
		put(t, root, "file", "edited meanwhile")
		put(t, root, "gone", "edited meanwhile, too")
		outcome := transfer(t, from, to,
			&core.Change{Path: "file", Old: before.Contents["file"], New: wanted.Contents["file"]},
			&core.Change{Path: "gone", Old: before.Contents["gone"]})
		if len(outcome.Problems) != 2 {
			t.Fatalf("%+v", outcome)
		}
		if contentOf(t, root, "file") != "edited meanwhile" || contentOf(t, root, "gone") != "edited meanwhile, too" {
			t.Error("overwritten")
		}
	})
}

// What the side has already under another path is copied there, and not transferred.
func TestOwnContentsAreNotAskedFor(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		put(t, root, "here", "content")
		side := open()
		scan(t, side, true)
		needed, _, _, err := side.Stage([]string{"moved", "other"}, [][]byte{digestOf("content"), digestOf("other")})
		must(t, err)
		if !slices.Equal(needed, []string{"other"}) {
			t.Fatal(needed)
		}
		had, err := side.StageCopies([]string{"copy", "none"}, [][]byte{digestOf("content"), digestOf("none")})
		if err == nil && !slices.Equal(had, []bool{true, false}) {
			t.Fatal(had)
		}
	})
}

func TestCopiesAreMadeOfOwnContents(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		put(t, root, "file", "loser")
		put(t, root, "edited", "scanned")
		side := open()
		before := scan(t, side, true).Content
		put(t, root, "edited", "edited since")
		paths := []string{"file.conflict", "edited.conflict", "none"}
		had, err := side.StageCopies(paths, [][]byte{digestOf("loser"), digestOf("scanned"), digestOf("none")})
		must(t, err)
		if !slices.Equal(had, []bool{true, false, false}) {
			t.Fatal(had)
		}
		outcome, err := side.Transition(t.Context(), []*core.Change{{Path: "file.conflict", New: before.Contents["file"]}}, Additions{})
		must(t, err)
		if len(outcome.Problems) > 0 || contentOf(t, root, "file.conflict") != "loser" || contentOf(t, root, "file") != "loser" {
			t.Fatalf("%+v", outcome)
		}
	})
}

// A file whose copy can't be made is not replaced: its contents would be lost.
func TestAFileIsReplacedAfterItsCopy(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		put(t, root, "file", "loser")
		put(t, root, "other", "loser too")
		side := open()
		before := scan(t, side, true).Content
		copies := []string{"file.conflict", "missing/other.conflict"}
		_, err := side.StageCopies(copies, [][]byte{digestOf("loser"), digestOf("loser too")})
		must(t, err)
		wanted := &core.Entry{Kind: core.EntryKind_File, Digest: digestOf("winner")}
		outcome, err := side.Transition(t.Context(), []*core.Change{
			{Path: "file", Old: before.Contents["file"], New: wanted},
			{Path: "other", Old: before.Contents["other"], New: wanted},
			{Path: copies[0], New: before.Contents["file"]},
			{Path: copies[1], New: before.Contents["other"]},
		}, Additions{
			Contents: map[string][]byte{"file": []byte("winner"), "other": []byte("winner")},
			After:    map[string]string{"file": copies[0], "other": copies[1]},
		})
		must(t, err)
		for name, content := range map[string]string{"file": "winner", "file.conflict": "loser", "other": "loser too"} {
			if found := contentOf(t, root, name); found != content {
				t.Errorf("%s: %s", name, found)
			}
		}
		if len(outcome.Problems) != 2 || !outcome.Results[0].Equal(wanted, true) || outcome.Results[1].Equal(wanted, true) {
			t.Errorf("%+v", outcome)
		}
	})
}

func TestPathsAndDigestsMustBeAsMany(t *testing.T) {
	onBothSides(t, func(t *testing.T, _ string, open func(...string) Side) {
		side := open()
		scan(t, side, true)
		if _, _, _, err := side.Stage([]string{"a", "b"}, [][]byte{digestOf("x")}); err == nil {
			t.Error("staged")
		}
		if _, err := side.StageCopies([]string{"a"}, nil); err == nil {
			t.Error("copied")
		}
		// A request that fails is no reason to end the stream.
		scan(t, side, true)
	})
}

func TestNothingIsStagedWhereNothingIsWanted(t *testing.T) {
	onBothSides(t, func(t *testing.T, _ string, open func(...string) Side) {
		side := open()
		scan(t, side, true)
		needed, signatures, receiver, err := side.Stage(nil, nil)
		if err != nil || needed != nil || signatures != nil || receiver != nil {
			t.Fatal(needed, signatures, receiver, err)
		}
		outcome, err := side.Transition(t.Context(), nil, Additions{})
		if err != nil || len(outcome.Results)+len(outcome.Problems) > 0 {
			t.Fatal(outcome, err)
		}
	})
}

func TestFoldersAndLinksAreMadeAndRemoved(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		put(t, root, "old/file", "x")
		side := open()
		before := scan(t, side, true).Content
		outcome := transfer(t, side, side, &core.Change{Path: "old", Old: before.Contents["old"]},
			&core.Change{Path: "new", New: folder("inner", link("../file"))},
			&core.Change{Path: "out", New: link("../outside")})
		if len(outcome.Problems) != 1 || outcome.Problems[0].Path != "out" || outcome.Problems[0].Error != LinkLeadsOut {
			t.Fatalf("%+v", outcome)
		}
		if found := listed(scan(t, side, false)); found != "new Directory, new/inner SymbolicLink" {
			t.Error(found)
		}
	})
}

func TestASideThatIsClosedReportsNothingMore(t *testing.T) {
	root := t.TempDir()
	side := planted(t, root)
	scan(t, side, true)
	must(t, side.Close())
	must(t, side.Close())
	for range len(side.Changed()) {
		<-side.Changed()
	}
	put(t, root, "file", "x")
	select {
	case <-side.Changed():
		t.Error("still watched")
	case <-time.After(2 * quietPeriod):
	}
}

func TestARemoteThatIsClosedIsLost(t *testing.T) {
	near, far := net.Pipe()
	remote, err := NewRemote(near, nil)
	must(t, err)
	far.Close()
	lost := map[string]func() error{
		"scan":       func() error { _, err := remote.Scan(context.Background(), true); return err },
		"stage":      func() error { _, _, _, err := remote.Stage([]string{"a"}, [][]byte{nil}); return err },
		"copies":     func() error { _, err := remote.StageCopies([]string{"a"}, [][]byte{nil}); return err },
		"supply":     func() error { return remote.Supply([]string{"a"}, []*rsync.Signature{{}}, nil) },
		"transition": func() error { _, err := remote.Transition(context.Background(), nil, Additions{}); return err },
		"modes":      func() error { _, err := remote.SetModes(nil); return err },
	}
	for name, ask := range lost {
		if err := ask(); !isLost(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	remote.Close()
}

func isLost(err error) bool { return errors.Is(err, ErrLost) }
