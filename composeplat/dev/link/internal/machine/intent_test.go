package machine

import (
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
)

func fileOf(digest string) *core.Entry {
	return &core.Entry{Kind: core.EntryKind_File, Digest: []byte(digest)}
}

// What was carried over before a cut is known to be ours, so that a later change here is no conflict with it.
func TestAnIntentThatWasCarriedOut(t *testing.T) {
	base := folderOf(map[string]string{"a": "1", "gone": "1"})
	there := folderOf(map[string]string{"a": "2"})
	here := folderOf(map[string]string{"a": "3"})
	changes := []*core.Change{{Path: "a", New: fileOf("2")}, {Path: "gone"}}
	known := applyDone(base, changes, there)
	if !known.Equal(there, true) {
		t.Fatalf("the base is %v", known)
	}
	p := makePlan(known, here, there, keptBeside, false, time.Now())
	if len(p.conflicts) > 0 || len(p.copies) > 0 {
		t.Errorf("conflicts %v", p.conflicts)
	}
}

// What was not carried out, and what was changed since, is as it was.
func TestAnIntentThatWasNotCarriedOut(t *testing.T) {
	base := folderOf(map[string]string{"a": "1", "b": "1", "gone": "1"})
	there := folderOf(map[string]string{"a": "1", "b": "other", "gone": "1"})
	changes := []*core.Change{{Path: "a", New: fileOf("2")}, {Path: "b", New: fileOf("2")}, {Path: "gone"}}
	if known := applyDone(base, changes, there); !known.Equal(base, true) {
		t.Errorf("the base is %v", known)
	}
}

// Of a folder that was half carried over, that half is known.
func TestAnIntentThatWasHalfCarriedOut(t *testing.T) {
	base := folderOf(nil)
	wanted := folderOf(map[string]string{"x": "1", "y": "1"})
	there := folderOf(nil)
	there.Contents["new"] = folderOf(map[string]string{"x": "1"})
	known := applyDone(base, []*core.Change{{Path: "new", New: wanted}}, there)
	if !known.Equal(there, true) {
		t.Errorf("the base is %v", known)
	}
}

// An intent comes back as it was written, and not for another volume.
func TestAnIntentIsKept(t *testing.T) {
	state, folder := t.TempDir(), FolderConfig{Local: "/a", Remote: "/b"}
	written := &intent{
		here:  []*core.Change{{Path: "h"}},
		there: []*core.Change{{Path: "t", New: fileOf("00000000000000000000000000000000")}, {Path: "d", New: folderOf(nil)}},
	}
	if err := written.save(state, folder, "one"); err != nil {
		t.Fatal(err)
	}
	found := loadIntent(state, folder, "one")
	if found == nil || len(found.here) != 1 || len(found.there) != 2 || found.there[0].Path != "t" ||
		!found.there[0].New.Equal(written.there[0].New, true) || !found.there[1].New.Equal(folderOf(nil), true) {
		t.Errorf("found %+v", found)
	}
	if loadIntent(state, folder, "other") != nil {
		t.Error("an intent of another volume")
	}
	dropIntent(state, folder)
	if loadIntent(state, folder, "one") != nil {
		t.Error("an intent that was dropped")
	}
}
