package machine

import (
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/tree"
)

func folderOf(files map[string]string) *core.Entry {
	entry := &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{}}
	for name, digest := range files {
		entry.Contents[name] = &core.Entry{Kind: core.EntryKind_File, Digest: []byte(digest)}
	}
	return entry
}

// What the container does to a folder that it must not change is undone, and nothing of it comes here.
func TestOneWayIsUndone(t *testing.T) {
	base := folderOf(map[string]string{"kept": "1", "changed": "1", "deleted": "1"})
	there := folderOf(map[string]string{"kept": "1", "changed": "2", "made": "3"})
	p := makePlan(base, base, there, keptBeside, true, time.Now())
	if len(p.here) > 0 || len(p.conflicts) > 0 {
		t.Errorf("here %v, conflicts %v", p.here, p.conflicts)
	}
	after, err := core.Apply(there, p.there)
	if err != nil || !after.Equal(base, true) {
		t.Errorf("the container has %v (%v)", after, err)
	}
}

// Without a base a folder that goes one way is made what it is here.
func TestOneWayFirst(t *testing.T) {
	here := folderOf(map[string]string{"a": "1"})
	there := folderOf(map[string]string{"a": "2", "b": "3"})
	p := makePlan(nil, here, there, overwritten, true, time.Now())
	after, err := core.Apply(there, p.there)
	if err != nil || !after.Equal(here, true) || len(p.here) > 0 {
		t.Errorf("the container has %v (%v), here %v", after, err, p.here)
	}
}

// A mode is no content: where one side has changed only the mode of a file, the contents of the other side go there.
func TestAModeIsNoConflict(t *testing.T) {
	base := folderOf(map[string]string{"file": "1"})
	changed := folderOf(map[string]string{"file": "2"})
	executable := folderOf(map[string]string{"file": "1"})
	executable.Contents["file"].Executable = true
	for _, sides := range [][2]*core.Entry{{changed, executable}, {executable, changed}} {
		p := makePlan(base, sides[0], sides[1], keptBeside, false, time.Now())
		here, hereFailed := core.Apply(sides[0], p.here)
		there, thereFailed := core.Apply(sides[1], p.there)
		must(t, hereFailed)
		must(t, thereFailed)
		if len(p.conflicts)+len(p.copies) > 0 || !here.Equal(changed, true) || !there.Equal(changed, true) {
			t.Errorf("here %v, there %v, conflicts %v", here, there, p.conflicts)
		}
	}
}

// A file or folder that can't be read here any more stays in the container, also where that must be as it is here.
func TestWhatCannotBeReadHereStaysThere(t *testing.T) {
	problem := &core.Entry{Kind: core.EntryKind_Problematic, Problem: "permission denied"}
	inFolder := func(files map[string]string) *core.Entry {
		entry := folderOf(map[string]string{"other": "1"})
		entry.Contents["folder"] = folderOf(files)
		return entry
	}
	base := inFolder(map[string]string{"file": "1", "beside": "1"})
	for _, path := range []string{"other", "folder", "folder/file"} {
		here, err := tree.Apply(base, []*core.Change{{Path: path, New: problem}})
		must(t, err)
		for _, there := range []*core.Entry{base, inFolder(map[string]string{"file": "2"})} {
			for _, oneWay := range []bool{true, false} {
				p := makePlan(base, here, there, keptBeside, oneWay, time.Now())
				after, err := core.Apply(there, p.there)
				must(t, err)
				if kept := findEntry(after, path); !kept.Equal(findEntry(there, path), true) {
					t.Errorf("%s, one way %v: %v", path, oneWay, kept)
				}
			}
		}
	}
}
