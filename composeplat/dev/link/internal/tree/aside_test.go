package tree

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/beneath"
)

// namesIn are the paths of everything below a folder, with the staging area's.
func namesIn(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	must(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(root, path); name != "." {
			names = append(names, filepath.ToSlash(name))
		}
		return err
	}))
	slices.Sort(names)
	return names
}

// overwrite changes contents, and nothing that a scan could see: neither size nor timestamp.
func overwrite(t *testing.T, path, content string) {
	t.Helper()
	before, err := os.Stat(path)
	must(t, err)
	must(t, os.WriteFile(path, []byte(content), 0o644))
	must(t, os.Chtimes(path, before.ModTime(), before.ModTime()))
}

func TestWhatHasChangedSinceTheScanStays(t *testing.T) {
	edits := map[string]func(t *testing.T, path string){
		"other contents":    func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("longer contents"), 0o644)) },
		"another mode":      func(t *testing.T, path string) { must(t, os.Chmod(path, 0o640)) },
		"a link":            func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, os.Symlink("nowhere", path)) },
		"a folder":          func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, os.Mkdir(path, 0o755)) },
		"another timestamp": func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("1234"), 0o644)) },
	}
	if beneath.CanExchange {
		edits["the same timestamp"] = func(t *testing.T, path string) { overwrite(t, path, "abcd") }
	}
	for name, edit := range edits {
		for _, wanted := range []string{"replaced", "removed", "removed with its folder"} {
			t.Run(name+" "+wanted, func(t *testing.T) {
				root := t.TempDir()
				path := filepath.Join(root, "folder", "file")
				put(t, root, "folder/file", "0123")
				side := planted(t, root)
				folder := scan(t, side, true).Content.Contents["folder"]
				edit(t, path)
				before, err := os.Lstat(path)
				must(t, err)
				change, with := &core.Change{Path: "folder/file", Old: folder.Contents["file"]}, Additions{}
				switch wanted {
				case "replaced":
					change.New, with.Contents = fileOf("new"), map[string][]byte{change.Path: []byte("new")}
				case "removed with its folder":
					change.Path, change.Old = "folder", folder
				}
				outcome, err := side.Transition(t.Context(), []*core.Change{change}, with)
				must(t, err)
				after, err := os.Lstat(path)
				must(t, err)
				if before.Mode() != after.Mode() || before.Size() != after.Size() || len(outcome.Problems) == 0 {
					t.Errorf("%v %v %+v", before.Mode(), after.Mode(), outcome)
				}
				if !outcome.Results[0].Equal(change.Old, true) {
					t.Errorf("the result is %v", outcome.Results[0])
				}
				if names := namesIn(t, root); !slices.Equal(names, []string{"folder", "folder/file"}) {
					t.Errorf("%v", names)
				}
			})
		}
	}
}

// What is new in a folder stays with it; all else goes.
func TestAFolderIsRemovedButForWhatIsNew(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"folder/one", "folder/inner/two", "folder/inner/deep/three", "gone/four"} {
		put(t, root, name, name)
	}
	must(t, os.Symlink("one", filepath.Join(root, "folder", "link")))
	must(t, os.Symlink("four", filepath.Join(root, "gone", "link")))
	side := planted(t, root)
	before := scan(t, side, true).Content
	put(t, root, "folder/inner/new", "new")
	outcome, err := side.Transition(t.Context(), []*core.Change{
		{Path: "folder", Old: before.Contents["folder"]}, {Path: "gone", Old: before.Contents["gone"]},
	}, Additions{})
	must(t, err)
	if names := namesIn(t, root); !slices.Equal(names, []string{"folder", "folder/inner", "folder/inner/new"}) {
		t.Errorf("%v", names)
	}
	if outcome.Results[0] == nil || outcome.Results[1] != nil || len(before.Contents["folder"].Contents) != 3 {
		t.Errorf("%+v", outcome)
	}
}

// A staging area on another file system, a cancelled transition and a file in place of a folder are left to the engine.
func TestWhatIsLeftToTheEngine(t *testing.T) {
	elsewhere, err := os.MkdirTemp("/dev/shm", "staging")
	if err != nil {
		elsewhere = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(elsewhere) })
	root := t.TempDir()
	place, err := beneath.Find(root, "")
	must(t, err)
	staging, err := beneath.Find(filepath.Join(elsewhere, "area"), "")
	must(t, err)
	side, err := NewTree(place, nil, staging, nil)
	must(t, err)
	t.Cleanup(func() { side.Close() })
	for _, name := range []string{"replaced", "removed", "turned", "later"} {
		put(t, root, name, name)
	}
	before := scan(t, side, true).Content.Contents
	program := fileOf("program")
	program.Executable = true
	outcome, err := side.Transition(t.Context(), []*core.Change{
		{Path: "replaced", Old: before["replaced"], New: program},
		{Path: "removed", Old: before["removed"]},
		{Path: "turned", Old: before["turned"], New: &core.Entry{Kind: core.EntryKind_Directory}},
	}, Additions{Contents: map[string][]byte{"replaced": []byte("program")}})
	must(t, err)
	if names := namesIn(t, root); len(outcome.Problems) > 0 || !slices.Equal(names, []string{"later", "replaced", "turned"}) {
		t.Errorf("%v %+v", names, outcome)
	}
	if info, err := os.Stat(filepath.Join(root, "replaced")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	outcome, err = side.Transition(cancelled, []*core.Change{{Path: "later", Old: before["later"]}}, Additions{})
	if err != nil || contentOf(t, root, "later") != "later" || outcome.Results[0] == nil {
		t.Errorf("%+v %v", outcome, err)
	}
}

// An entry whose name was taken in the meantime is put beside it.
func TestWhatCanNotBePutBackIsKeptBeside(t *testing.T) {
	if !beneath.CanExchange {
		t.Skip("nothing is moved aside here")
	}
	root := t.TempDir()
	put(t, root, "folder/file", "now here")
	put(t, root, "folder/file.kept-1", "kept before")
	side := planted(t, root)
	scan(t, side, true)
	must(t, side.staging.begin())
	area := &aside{tree: side, folder: side.staging.folder}
	for _, name := range []string{"a", "b"} {
		put(t, root, TemporaryPrefix+"staging/"+name, name)
	}
	area.putBack("a", "folder/file")
	area.putBack("b", "folder/free")
	for name, content := range map[string]string{
		"folder/file": "now here", "folder/file.kept-1": "kept before", "folder/file.kept-2": "a", "folder/free": "b",
	} {
		if found := contentOf(t, root, name); found != content {
			t.Errorf("%s: %s", name, found)
		}
	}
}
