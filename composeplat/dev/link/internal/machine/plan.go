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
	guardFiles   = 50
	guardPercent = 30
	// fewFiles is how many may all be deleted together.
	fewFiles = 5
)

// A plan is what one cycle is going to do: to here, to the container, and to the base.
type plan struct {
	here, there []*core.Change
	base        []*core.Change
	copies      []copied
	conflicts   []conflict
	// replaced is what loses without a shared history: to be kept outside the folder.
	replaced []copied
}

// A copied entry is the container's loser of a conflict, to be kept beside the winner.
type copied struct {
	winner *core.Change
	to     string
	entry  *core.Entry
}

type conflict struct{ path, kept string }

// What becomes of the container's entry where this machine's wins.
type losing int

const (
	keptBeside losing = iota
	keptElsewhere
	overwritten
)

// makePlan decides by the base, and where that can't decide: local wins, and the loser is kept, if it is worth it.
func makePlan(ancestor, here, there *core.Entry, losers losing, oneWay bool, now time.Time) *plan {
	p := &plan{}
	var undecided []*core.Conflict
	mode := core.SynchronizationMode_SynchronizationModeTwoWaySafe
	if oneWay {
		mode = core.SynchronizationMode_SynchronizationModeOneWayReplica
	}
	p.base, p.here, p.there, undecided = core.Reconcile(ancestor, here, there, mode)
	for _, one := range undecided {
		if oneWay {
			p.conflicts = append(p.conflicts, conflict{one.Root, ""})
			continue
		}
		p.settle(one.Root, at(ancestor, one.Root), at(here, one.Root), at(there, one.Root), here, there, losers, now)
	}
	return p
}

func (p *plan) settle(root string, ancestor, ours, theirs, here, there *core.Entry, losers losing, now time.Time) {
	switch {
	case isLeaf(ours) && isLeaf(theirs):
		change := &core.Change{Path: root, Old: theirs, New: ours}
		switch {
		case tree.Same(ours, theirs):
		case losers == keptElsewhere:
			p.replaced = append(p.replaced, copied{change, root, theirs})
		case losers == keptBeside:
			name := p.freeName(root, here, there, now)
			p.copies = append(p.copies, copied{change, name, theirs})
			p.conflicts = append(p.conflicts, conflict{root, name})
		}
		p.there = append(p.there, change)
	case ours == nil && isFolder(theirs) && onlyLost(ancestor, theirs):
		p.there = append(p.there, prune(root, theirs)...)
	case theirs == nil && isFolder(ours) && onlyLost(ancestor, ours):
		p.here = append(p.here, prune(root, ours)...)
	default:
		p.conflicts = append(p.conflicts, conflict{root, ""})
	}
}

func isLeaf(entry *core.Entry) bool {
	return entry != nil && (entry.Kind == core.EntryKind_File || entry.Kind == core.EntryKind_SymbolicLink)
}

func isFolder(entry *core.Entry) bool {
	return entry != nil && entry.Kind == core.EntryKind_Directory
}

func (p *plan) freeName(root string, here, there *core.Entry, now time.Time) string {
	name := single.ConflictName(root, now)
	taken := func(candidate string) bool {
		return at(here, candidate) != nil || at(there, candidate) != nil ||
			slices.ContainsFunc(p.copies, func(c copied) bool { return c.to == candidate })
	}
	candidate := name
	for number := 2; taken(candidate); number++ {
		candidate = fmt.Sprintf("%s-%d", name, number)
	}
	return candidate
}

// at finds the entry at a path.
func at(entry *core.Entry, name string) *core.Entry {
	if name == "" || entry == nil {
		return entry
	}
	if folder := path.Dir(name); folder != "." {
		entry = at(entry, folder)
	}
	if entry == nil {
		return nil
	}
	return entry.Contents[path.Base(name)]
}

// synced is the part of an entry that is synced: without what is ignored or can't be read.
func synced(entry *core.Entry) *core.Entry {
	if entry == nil || !isLeaf(entry) && !isFolder(entry) {
		return nil
	}
	if isLeaf(entry) || len(entry.Contents) == 0 {
		return entry
	}
	result := &core.Entry{Kind: entry.Kind, Contents: make(map[string]*core.Entry, len(entry.Contents))}
	for name, child := range entry.Contents {
		if child = synced(child); child != nil {
			result.Contents[name] = child
		}
	}
	return result
}

// onlyLost tells whether a folder has nothing new that would be synced.
func onlyLost(ancestor, entry *core.Entry) bool {
	return !slices.ContainsFunc(core.Diff(ancestor, synced(entry)), func(change *core.Change) bool {
		return change.New != nil
	})
}

// prune deletes what is synced in a folder, and leaves the folders of what is not.
func prune(name string, entry *core.Entry) []*core.Change {
	if entry.Equal(synced(entry), true) {
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

// losses counts the files that changes would delete, moved ones left out.
func losses(changes []*core.Change) int {
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

// tooMany tells whether so many deletions are rather a mishap than a wish.
func tooMany(deletions, files int) bool {
	return deletions > guardFiles && deletions*100 > guardPercent*files || deletions > fewFiles && deletions >= files
}

// size counts the entries that a change makes, changes or deletes.
func size(changes []*core.Change) int {
	count := 0
	for _, change := range changes {
		count += max(1, int(max(change.Old.Count(), change.New.Count())))
	}
	return count
}
