//go:build !portable

package tree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/disktest"
)

// A file that the other side counts as synced has its contents after a lost power: an older or an empty one would come back
// as a change.
func TestSyncedFilesSurviveALostPower(t *testing.T) {
	disk, lost := disktest.New(t)
	source := t.TempDir()
	put(t, source, "file", "new contents")
	put(t, source, "made/deep/file", "new contents")
	many := &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{}}
	for number := range 100 {
		name := fmt.Sprint(number)
		put(t, source, "many/"+name, "new contents")
		many.Contents[name] = fileOf("new contents")
	}
	must(t, os.Mkdir(filepath.Join(disk, "root"), 0o755))
	put(t, disk, "root/file", "old")
	put(t, disk, "root/gone", "old")
	put(t, disk, "root/other", "old")
	must(t, exec.Command("sync", "-f", disk).Run())
	place, err := beneath.Find(filepath.Join(disk, "root"), "")
	must(t, err)
	to, err := NewTree(place, nil, place.Below(TemporaryPrefix+"staging"), nil)
	must(t, err)
	t.Cleanup(func() { to.Close() })
	from := planted(t, source)
	scan(t, from, true)
	before := scan(t, to, true)
	folder := func(name string, entry *core.Entry) *core.Entry {
		return &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{name: entry}}
	}
	outcome := transfer(t, from, to,
		&core.Change{Path: "file", Old: entryAt(before, "file"), New: fileOf("new contents")},
		&core.Change{Path: "made", New: folder("deep", folder("file", fileOf("new contents")))},
		&core.Change{Path: "gone", Old: entryAt(before, "gone")},
	)
	if len(outcome.Problems) > 0 {
		t.Fatal(outcome.Problems)
	}
	scan(t, to, false)
	transfer(t, from, to, &core.Change{Path: "many", New: many})
	scan(t, to, false)
	transfer(t, from, to, &core.Change{Path: "other", Old: entryAt(before, "other")})
	found := filepath.Join(lost(), "root")
	for _, name := range []string{"file", "made/deep/file", "many/0", "many/50", "many/99"} {
		if content, err := os.ReadFile(filepath.Join(found, name)); string(content) != "new contents" {
			t.Errorf("%s: %q %v", name, content, err)
		}
	}
	for _, name := range []string{"gone", "other"} {
		if _, err := os.Lstat(filepath.Join(found, name)); !os.IsNotExist(err) {
			t.Errorf("%s is back", name)
		}
	}
}

// A mode, a folder and a link that were synced are there after a lost power, each by itself.
func TestEachKindOfChangeSurvivesALostPower(t *testing.T) {
	for name, test := range map[string]struct {
		change *core.Change
		modes  map[string]uint32
		holds  func(root string) bool
	}{
		"a mode": {
			modes: map[string]uint32{"file": 0o640, "other": 0o640},
			holds: func(root string) bool {
				file, err := os.Stat(filepath.Join(root, "file"))
				other, failed := os.Stat(filepath.Join(root, "other"))
				return err == nil && failed == nil && file.Mode() == 0o640 && other.Mode() == 0o640
			},
		},
		"a folder": {
			change: &core.Change{Path: "made", New: &core.Entry{Kind: core.EntryKind_Directory}},
			holds: func(root string) bool {
				found, err := os.Stat(filepath.Join(root, "made"))
				return err == nil && found.IsDir()
			},
		},
		"a link": {
			change: &core.Change{Path: "link", New: &core.Entry{Kind: core.EntryKind_SymbolicLink, Target: "file"}},
			holds: func(root string) bool {
				target, err := os.Readlink(filepath.Join(root, "link"))
				return err == nil && target == "file"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk, lost := disktest.New(t)
			root := filepath.Join(disk, "root")
			put(t, root, "file", "x")
			put(t, root, "other", "x")
			must(t, exec.Command("sync", "-f", disk).Run())
			made := planted(t, root)
			scan(t, made, true)
			if test.change != nil {
				outcome, err := made.Transition(t.Context(), []*core.Change{test.change}, Additions{})
				must(t, err)
				if len(outcome.Problems) > 0 {
					t.Fatal(outcome.Problems)
				}
			} else {
				refused, err := made.SetModes(test.modes)
				must(t, err)
				if len(refused) > 0 {
					t.Fatal(refused)
				}
			}
			if !test.holds(filepath.Join(lost(), "root")) {
				t.Error("it is lost")
			}
		})
	}
}

// Files that were saved before they are replaced at the other end are whole after a lost power, also if their names alone have
// come to the disk with something else.
func TestSavedFilesSurviveALostPower(t *testing.T) {
	disk, lost := disktest.New(t)
	source := t.TempDir()
	var paths []string
	var digests [][]byte
	for number := range 20 {
		name := fmt.Sprintf("deep/%d", number)
		put(t, source, name, name)
		paths, digests = append(paths, name), append(digests, digestOf(name))
	}
	side := planted(t, source)
	scan(t, side, true)
	folder, err := beneath.Open(disk)
	must(t, err)
	t.Cleanup(func() { folder.Close() })
	saved, err := Save(side, folder, paths, digests)
	must(t, err)
	if slices.Contains(saved, false) {
		t.Fatal(saved)
	}
	put(t, disk, "other", "x")
	folder.Flush("other", true)
	found := lost()
	for _, name := range paths {
		if content, err := os.ReadFile(filepath.Join(found, name)); string(content) != name {
			t.Errorf("%s: %q %v", name, content, err)
		}
	}
}
