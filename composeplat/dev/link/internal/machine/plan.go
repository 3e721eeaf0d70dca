package machine

import (
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/single"
	"composeplat/link/internal/tree"
)

const (
	minGuardedDeletions = 50
	maxDeletedPercent   = 30
	// fewFiles is how many files may be deleted even if no other file remains.
	fewFiles = 5
)

// A plan holds the changes of a cycle: on this machine, in the container, and of the base.
type plan struct {
	here, there []*core.Change
	base        []*core.Change
	copies      []conflictCopy
	conflicts   []conflict
	// replaced are files that lose without a shared base: they are saved outside the folder.
	replaced []conflictCopy
}

// A conflictCopy is the container's file in a conflict, which is kept beside this machine's.
type conflictCopy struct {
	winner *core.Change
	to     string
	entry  *core.Entry
}

type conflict struct {
	path, kept string
	// more is how many others there are, instead of a path.
	more int
}

// A loserPolicy is what happens to the container's entry where this machine's wins.
type loserPolicy int

const (
	keptBeside loserPolicy = iota
	keptElsewhere
	overwritten
)

// makePlan decides by the base. Where both sides have changed, this machine wins, and losers says what happens to the
// container's entry.
func makePlan(ancestor, here, there *core.Entry, losers loserPolicy, oneWay bool, now time.Time) *plan {
	p := &plan{}
	var undecided []*core.Conflict
	mode := core.SynchronizationMode_SynchronizationModeTwoWaySafe
	if oneWay {
		mode = core.SynchronizationMode_SynchronizationModeOneWayReplica
	}
	p.base, p.here, p.there, undecided = core.Reconcile(ancestor, here, there, mode)
	for _, undone := range undecided {
		if oneWay {
			p.conflicts = append(p.conflicts, conflict{path: undone.Root})
			continue
		}
		p.resolveConflict(undone.Root, findEntry(ancestor, undone.Root), findEntry(here, undone.Root), findEntry(there, undone.Root), here, there, losers, now)
	}
	return p
}

func (p *plan) resolveConflict(root string, ancestor, ours, theirs, here, there *core.Entry, losers loserPolicy, now time.Time) {
	switch {
	case isLeaf(ours) && isLeaf(theirs):
		change := &core.Change{Path: root, Old: theirs, New: ours}
		switch {
		case tree.HaveSameContent(ours, theirs), tree.HaveSameContent(ancestor, theirs):
			// Only the mode has changed there, and modes are decided by themselves.
		case tree.HaveSameContent(ancestor, ours):
			p.here = append(p.here, &core.Change{Path: root, Old: ours, New: theirs})
			return
		case losers == keptElsewhere:
			p.replaced = append(p.replaced, conflictCopy{change, root, theirs})
		case losers == keptBeside:
			name := p.findFreeName(root, here, there, now)
			p.copies = append(p.copies, conflictCopy{change, name, theirs})
			p.conflicts = append(p.conflicts, conflict{path: root, kept: name})
		}
		p.there = append(p.there, change)
	case ours == nil && isFolder(theirs) && hasOnlyDeletions(ancestor, theirs):
		p.there = append(p.there, prune(root, theirs)...)
	case theirs == nil && isFolder(ours) && hasOnlyDeletions(ancestor, ours):
		p.here = append(p.here, prune(root, ours)...)
	default:
		p.conflicts = append(p.conflicts, conflict{path: root})
	}
}

// makeExecutable gives files that are new in the container the permission that modeWithoutModes has: the base would differ
// from them else, as if the container had changed them.
func (p *plan) makeExecutable(there *core.Entry) {
	for _, change := range p.there {
		tree.Walk(change.Path, change.New, func(name string, entry *core.Entry) {
			if entry.Kind == core.EntryKind_File && findEntry(there, name) == nil {
				entry.Executable = true
			}
		})
	}
}

func isLeaf(entry *core.Entry) bool {
	return entry != nil && (entry.Kind == core.EntryKind_File || entry.Kind == core.EntryKind_SymbolicLink)
}

func isFolder(entry *core.Entry) bool {
	return entry != nil && entry.Kind == core.EntryKind_Directory
}

func (p *plan) findFreeName(root string, here, there *core.Entry, now time.Time) string {
	name := single.ConflictName(root, now)
	taken := func(candidate string) bool {
		return findEntry(here, candidate) != nil || findEntry(there, candidate) != nil ||
			slices.ContainsFunc(p.copies, func(c conflictCopy) bool { return c.to == candidate })
	}
	candidate := name
	for number := 2; taken(candidate); number++ {
		candidate = fmt.Sprintf("%s-%d", name, number)
	}
	return candidate
}

// findEntry returns the entry at a path, or nil.
func findEntry(entry *core.Entry, name string) *core.Entry {
	if name == "" || entry == nil {
		return entry
	}
	if folder := path.Dir(name); folder != "." {
		entry = findEntry(entry, folder)
	}
	if entry == nil {
		return nil
	}
	return entry.Contents[path.Base(name)]
}

// syncedPart returns an entry without what is ignored or can't be read.
func syncedPart(entry *core.Entry) *core.Entry {
	if entry == nil || !isLeaf(entry) && !isFolder(entry) {
		return nil
	}
	if isLeaf(entry) || len(entry.Contents) == 0 {
		return entry
	}
	result := &core.Entry{Kind: entry.Kind, Contents: make(map[string]*core.Entry, len(entry.Contents))}
	for name, child := range entry.Contents {
		if child = syncedPart(child); child != nil {
			result.Contents[name] = child
		}
	}
	return result
}

// hasOnlyDeletions reports whether a folder has no new or changed files that would be synced.
func hasOnlyDeletions(ancestor, entry *core.Entry) bool {
	return !slices.ContainsFunc(core.Diff(ancestor, syncedPart(entry)), func(change *core.Change) bool {
		return change.New != nil
	})
}

// prune deletes the synced files in a folder, and keeps folders that contain others.
func prune(name string, entry *core.Entry) []*core.Change {
	if entry.Equal(syncedPart(entry), true) {
		return []*core.Change{{Path: name, Old: entry}}
	}
	var changes []*core.Change
	for child, inside := range entry.Contents {
		if isLeaf(inside) || isFolder(inside) {
			changes = append(changes, prune(tree.Join(name, child), inside)...)
		}
	}
	return changes
}

// countLosses counts the files that changes would delete, without those that are moved.
func countLosses(changes []*core.Change) int {
	made := map[string]int{}
	gone := map[string]string{}
	for _, change := range changes {
		tree.Walk(change.Path, change.Old, func(name string, entry *core.Entry) {
			if entry.Kind == core.EntryKind_File {
				gone[name] = string(entry.Digest)
			}
		})
	}
	for _, change := range changes {
		tree.Walk(change.Path, change.New, func(name string, entry *core.Entry) {
			if entry.Kind != core.EntryKind_File {
				return
			}
			if _, replaced := gone[name]; replaced {
				delete(gone, name)
			} else {
				made[string(entry.Digest)]++
			}
		})
	}
	lost := 0
	for _, digest := range gone {
		if made[digest] > 0 {
			made[digest]--
		} else {
			lost++
		}
	}
	return lost
}

// areTooMany reports whether deletions are so many that they are probably a mistake.
func areTooMany(deletions, files int) bool {
	return deletions > minGuardedDeletions && deletions*100 > maxDeletedPercent*files || deletions > fewFiles && deletions >= files
}

// countEntries counts the entries that changes have created, changed or deleted.
func countEntries(changes []*core.Change, results []*core.Entry) int {
	count := 0
	for i, change := range changes {
		if !results[i].Equal(change.Old, true) {
			count += max(1, int(max(change.Old.Count(), results[i].Count())))
		}
	}
	return count
}
