package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/mutagen-io/mutagen/pkg/filesystem"
	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/beneath"
)

// The engine compares a file with the last scan, and removes or replaces it in a second step: a file that another program
// puts there between the two is lost. Here, the file is moved to the staging area in one step, compared there, and put
// back if it is another one. What can't be done so, as across file systems, is left to the engine.

// apply makes changes, and returns what the engine's Transition returns. Deletions come first, so that a name is free for
// one that differs in case only; then what is new, as the copies of files that are replaced are among it.
func (t *Tree) apply(ctx context.Context, changes []*core.Change, after map[string]string) (
	results []*core.Entry, problems []*core.Problem, missing bool, err error,
) {
	ownership, err := filesystem.NewOwnershipSpecification("", "")
	if err != nil {
		return nil, nil, false, err
	}
	results = make([]*core.Entry, len(changes))
	made := map[string]bool{}
	for _, numbers := range inPhases(changes, after) {
		var phase []*core.Change
		var order []int
		for _, number := range numbers {
			change := changes[number]
			if other := after[change.Path]; other != "" && !made[other] {
				results[number] = change.Old
				problems = append(problems, &core.Problem{Path: change.Path, Error: "no copy of the file could be made: " + other})
				continue
			}
			phase, order = append(phase, change), append(order, number)
		}
		rest, known := t.moveAside(ctx, phase)
		found, others, lacking := core.Transition(ctx, t.root.Path(), rest, known,
			core.SymbolicLinkMode_SymbolicLinkModePortable, 0o600, 0o700, ownership, t.snapshot.DecomposesUnicode, t.staging)
		problems, missing = append(problems, others...), missing || lacking
		for i, number := range order {
			results[number] = found[i]
			if rest[i] == madeAlready {
				results[number] = changes[number].New
			}
			made[changes[number].Path] = results[number].Equal(changes[number].New, true)
		}
	}
	return results, problems, missing, nil
}

// inPhases returns the numbers of the changes that delete, that create, and that replace or come after others.
func inPhases(changes []*core.Change, after map[string]string) (phases [3][]int) {
	for number, change := range changes {
		switch first := after[change.Path] == ""; {
		case first && change.New == nil:
			phases[0] = append(phases[0], number)
		case first && change.Old == nil:
			phases[1] = append(phases[1], number)
		default:
			phases[2] = append(phases[2], number)
		}
	}
	return phases
}

// moveAside removes and replaces the files of changes. It returns what is left for the engine, and what it may know.
func (t *Tree) moveAside(ctx context.Context, changes []*core.Change) ([]*core.Change, *core.Cache) {
	aside := t.newAside(changes)
	if aside == nil {
		return changes, t.cache
	}
	rest := slices.Clone(changes)
	for i, change := range changes {
		if ctx.Err() == nil {
			rest[i] = aside.begin(change)
		}
	}
	return rest, aside.withoutDiffering(t.cache)
}

// madeAlready takes the place of a change that the engine needs not make.
var madeAlready = &core.Change{}

// An aside moves what changes remove or replace to the staging area.
type aside struct {
	tree   *Tree
	folder *beneath.Folder
	// names are the names in the folders, by path: on some file systems, a file is found by other names too.
	names map[string]map[string]bool
	// racy are the paths of files that may have changed since the last scan without another timestamp.
	racy map[string]bool
	// differing are the paths where another file was found: the engine must not remove it either.
	differing map[string]bool
}

func (t *Tree) newAside(changes []*core.Change) *aside {
	replaces := false
	for _, change := range changes {
		replaces = replaces || change.Old != nil
	}
	// With decomposed Unicode, the names on the disk are not those of the entries.
	if !beneath.CanExchange || !replaces || t.snapshot.DecomposesUnicode || t.staging.begin() != nil {
		return nil
	}
	a := &aside{tree: t, folder: t.staging.folder, names: map[string]map[string]bool{}, racy: map[string]bool{}, differing: map[string]bool{}}
	for _, path := range t.racy {
		a.racy[path] = true
	}
	return a
}

// begin makes what it can of a change, and returns what is left of it for the engine.
func (a *aside) begin(change *core.Change) *core.Change {
	switch {
	case change.Path == "" || change.Old == nil:
		return change
	case change.Old.Kind == core.EntryKind_Directory:
		old := change.Old.Copy(core.EntryCopyBehaviorDeepPreservingLeaves)
		a.removeIn(change.Path, old)
		return &core.Change{Path: change.Path, Old: old, New: change.New}
	case change.New.GetKind() == core.EntryKind_File && change.Old.Kind == core.EntryKind_File:
		if !bytes.Equal(change.Old.Digest, change.New.Digest) && a.replace(change) {
			return madeAlready
		}
		return change
	case a.remove(change.Path, change.Old):
		return &core.Change{Path: change.Path, New: change.New}
	}
	return change
}

// withoutDiffering returns the scan's record of files without those that have changed since: the engine refuses these.
func (a *aside) withoutDiffering(cache *core.Cache) *core.Cache {
	if len(a.differing) == 0 {
		return cache
	}
	less := &core.Cache{Entries: maps.Clone(cache.Entries)}
	for path := range a.differing {
		delete(less.Entries, path)
	}
	return less
}

// removeIn removes the files in a folder, and from its entry.
func (a *aside) removeIn(folder string, entry *core.Entry) {
	for name, child := range entry.Contents {
		inside := Join(folder, name)
		switch {
		case child.Kind == core.EntryKind_Directory:
			a.removeIn(inside, child)
		case a.remove(inside, child):
			delete(entry.Contents, name)
		}
	}
}

// remove reports whether the file or link was as expected and is removed.
func (a *aside) remove(path string, old *core.Entry) bool {
	root := a.tree.root
	if !a.isExpected(root, path, path, old) {
		a.differing[path] = true
		return false
	}
	if !a.isNamed(path) {
		return false
	}
	name := a.tree.staging.newName()
	if root.MoveTo(a.folder, path, name) != nil {
		return false
	}
	if a.isTaken(name, path, old) {
		_ = a.folder.Remove(name)
		return true
	}
	a.differing[path] = true
	a.putBack(name, path)
	return false
}

// replace reports whether the file was as expected and is replaced.
func (a *aside) replace(change *core.Change) bool {
	root, path := a.tree.root, change.Path
	name := a.tree.staging.find(path, change.New.Digest)
	if !a.isExpected(root, path, path, change.Old) {
		a.differing[path] = true
		return false
	}
	if name == "" || !a.isNamed(path) {
		return false
	}
	mode := uint32(0o600)
	if change.New.Executable {
		mode = 0o700
	}
	if a.folder.SetMode(name, mode) != nil {
		return false
	}
	if a.folder.Exchange(root, name, path) != nil {
		return false
	}
	if a.isTaken(name, path, change.Old) {
		_ = a.folder.Remove(name)
		return true
	}
	a.differing[path] = true
	if a.folder.Exchange(root, name, path) != nil {
		a.putBack(name, path)
		return false
	}
	// Another file may have come in the meantime, or other contents into ours: they are kept, under another name.
	if !a.hasContent(name, change.New.Digest) {
		a.putBack(name, path)
	}
	return false
}

// putBack moves an entry from the staging area to its path, or to a free one beside it.
func (a *aside) putBack(name, path string) {
	for number, to := 1, path; number < 1000; number++ {
		if a.folder.MoveTo(a.tree.root, name, to) == nil {
			return
		}
		to = path + ".kept-" + strconv.Itoa(number)
	}
}

// isExpected reports whether the entry at a place in a folder is the one that the last scan found at the path.
func (a *aside) isExpected(folder *beneath.Folder, at, path string, expected *core.Entry) bool {
	found, err := folder.Stat(at)
	if err != nil {
		return false
	}
	switch expected.Kind {
	case core.EntryKind_SymbolicLink:
		target, err := folder.ReadLink(at)
		return err == nil && target == expected.Target
	case core.EntryKind_File:
		known := a.tree.cache.Entries[path]
		return known != nil && found.Mode.IsRegular() && bytes.Equal(known.Digest, expected.Digest) &&
			uint64(found.Size) == known.Size && found.Number == known.FileID &&
			uint32(found.Mode.Perm()) == known.Mode&0o777 && found.Changed == known.ModificationTime.AsTime().UnixNano()
	}
	return false
}

// isTaken reports whether the entry that was taken from a path is the expected one.
func (a *aside) isTaken(name, path string, expected *core.Entry) bool {
	if !a.isExpected(a.folder, name, path, expected) {
		return false
	}
	return !a.racy[path] || expected.Kind != core.EntryKind_File || a.hasContent(name, expected.Digest)
}

// hasContent reports whether a file in the staging area has a digest.
func (a *aside) hasContent(name string, digest []byte) bool {
	file, err := a.folder.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return err == nil && bytes.Equal(sum.Sum(nil), digest)
}

// isNamed reports whether a folder lists the very name of a path.
func (a *aside) isNamed(path string) bool {
	folder := parentPath(path)
	names, known := a.names[folder]
	if !known {
		names = map[string]bool{}
		if open, err := a.tree.root.Folder(folder); err == nil {
			entries, _ := open.Entries()
			open.Close()
			for _, entry := range entries {
				names[entry.Name()] = true
			}
		}
		a.names[folder] = names
	}
	return names[path[len(folder):][min(1, len(folder)):]]
}
