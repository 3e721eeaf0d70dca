package tree

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/core/ignore"
)

// Where few paths have changed, a scan costs as much as the folders with them hold, and not as much as the whole tree: the
// engine, which walks everything that it has in memory, gets a tree in which all other folders are empty.

// maxNarrow is how many paths may have changed for a narrow scan.
const maxNarrow = 200

var lastView atomic.Uint64

// newView returns a view with a number that no other view has.
func newView(content *core.Entry, modes Modes, files, bytes uint64) *View {
	return &View{Content: content, Modes: modes, Files: files, Bytes: bytes, Number: lastView.Add(1)}
}

// unread stands for a folder that is not read. The engine reads folders without contents in any case.
var unread = &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{"-": {Kind: core.EntryKind_Untracked}}}

// canBeNarrow reports whether only the recheck paths need to be read.
func (t *Tree) canBeNarrow() bool {
	return !t.full && t.root != nil && t.view != nil && t.snapshot != nil && len(t.recheck) <= maxNarrow &&
		t.snapshot.Content.GetKind() == core.EntryKind_Directory
}

// A narrowed is the part of a tree that a narrow scan reads.
type narrowed struct {
	content *core.Entry
	cache   *core.Cache
	ignores ignore.IgnoreCache
	// folders are those that are read, by path, as they were.
	folders map[string]*core.Entry
}

// narrow returns the input with which the engine reads the folders of the recheck paths.
func (t *Tree) narrow() *narrowed {
	dirty := map[string]bool{"": true}
	for name := range t.recheck {
		for ; !dirty[name]; name = parentPath(name) {
			dirty[name] = true
		}
	}
	n := &narrowed{
		cache: &core.Cache{Entries: map[string]*core.CacheEntry{}}, ignores: ignore.IgnoreCache{},
		folders: map[string]*core.Entry{},
	}
	n.content = n.add(t, dirty, "", t.snapshot.Content)
	return n
}

func (n *narrowed) add(t *Tree, dirty map[string]bool, name string, folder *core.Entry) *core.Entry {
	n.folders[name] = folder
	result := &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{}}
	for child, entry := range folder.Contents {
		inside := Join(name, child)
		n.remember(t, inside, entry)
		switch {
		case entry.Kind != core.EntryKind_Directory:
			Walk(inside, entry, func(name string, entry *core.Entry) {
				n.remember(t, name, entry)
				if isFolder(entry) {
					n.folders[name] = entry
				}
			})
		case dirty[inside]:
			result.Contents[child] = n.add(t, dirty, inside, entry)
		case len(entry.Contents) == 0:
			result.Contents[child] = entry
		default:
			result.Contents[child] = unread
		}
	}
	return result
}

// remember copies the known digest of a path, and whether it is ignored.
func (n *narrowed) remember(t *Tree, name string, entry *core.Entry) {
	if known := t.cache.Entries[name]; known != nil {
		n.cache.Entries[name] = known
	}
	key := ignore.IgnoreCacheKey{Path: name, Directory: entry.Kind == core.EntryKind_Directory || entry.Kind == core.EntryKind_PhantomDirectory}
	if known, has := t.ignoreCache[key]; has {
		n.ignores[key] = known
	}
}

// restore puts the folders that were not read in their places, in a tree that no one else has yet.
func restore(found, before *core.Entry) {
	for child, entry := range found.GetContents() {
		if entry == unread {
			found.Contents[child] = before.Contents[child]
		} else if before := before.GetContents()[child]; before != nil && before != entry {
			restore(entry, before)
		}
	}
}

// scanNarrow reads the folders of the recheck paths. It returns the digests of the files in them.
func (t *Tree) scanNarrow(ctx context.Context) (*core.Cache, error) {
	n := t.narrow()
	baseline := &core.Snapshot{
		Content: n.content, PreservesExecutability: t.snapshot.PreservesExecutability, DecomposesUnicode: t.snapshot.DecomposesUnicode,
	}
	found, cache, ignored, err := t.scanRoot(ctx, baseline, n.cache, n.ignores)
	if err != nil {
		return nil, err
	}
	if found.Content.GetKind() != core.EntryKind_Directory {
		return nil, errNoFolder
	}
	if t.withoutModes {
		clearExecutable(found.Content)
	}
	restore(found.Content, t.snapshot.Content)
	files, bytes := t.view.Files, t.view.Bytes
	modes, changed := map[string]uint32{}, t.changedModes(n, cache)
	var gone []string
	differences("", t.snapshot.Content, found.Content, func(name string, before, after *core.Entry) {
		changed[name] = true
		Walk(name, before, func(name string, entry *core.Entry) {
			if entry.Kind == core.EntryKind_File {
				files, bytes = files-1, bytes-t.cache.Entries[name].GetSize()
			}
			gone = append(gone, name)
		})
		Walk(name, after, func(name string, entry *core.Entry) {
			if entry.Kind == core.EntryKind_File {
				files, bytes = files+1, bytes+cache.Entries[name].GetSize()
			}
			t.addMode(modes, cache, name, entry)
		})
	})
	for name := range changed {
		t.addMode(modes, cache, name, EntryAt(found.Content, name))
	}
	for _, name := range gone {
		delete(t.cache.Entries, name)
	}
	maps.Copy(t.cache.Entries, cache.Entries)
	maps.Copy(t.ignoreCache, ignored)
	content := checkLinks("", found.Content, t.snapshot.Content, t.view.Content)
	t.snapshot = found
	if len(changed) == 0 {
		return cache, nil
	}
	since := t.view.Number
	t.view = newView(content, t.view.Modes.with(modes, gone), files, bytes)
	t.view.Since, t.view.Changed = since, slices.Sorted(maps.Keys(changed))
	return cache, nil
}

// changedModes returns the paths that were there before and have another mode now, among those that a narrow scan has read.
func (t *Tree) changedModes(n *narrowed, cache *core.Cache) map[string]bool {
	changed := map[string]bool{}
	if t.withoutModes {
		return changed
	}
	for name, entry := range cache.Entries {
		if had, known := t.view.Modes.Get(name); known && had != entry.Mode&0o777 {
			changed[name] = true
		}
	}
	for name := range n.folders {
		if name == "" {
			continue
		}
		status, err := t.root.Stat(name)
		if had, known := t.view.Modes.Get(name); err == nil && status.Mode.IsDir() && (!known || had != uint32(status.Mode.Perm())) {
			changed[name] = true
		}
	}
	return changed
}

// addMode adds the mode of a file or folder that was read.
func (t *Tree) addMode(modes map[string]uint32, cache *core.Cache, name string, entry *core.Entry) {
	switch {
	case t.withoutModes || entry == nil || name == "":
	case isFolder(entry):
		if status, err := t.root.Stat(name); err == nil && status.Mode.IsDir() {
			modes[name] = uint32(status.Mode.Perm())
		}
	case cache.Entries[name] != nil:
		modes[name] = cache.Entries[name].Mode & 0o777
	}
}

// differences calls visit for each entry that differs itself, and not for its contents. Entries that both trees share are
// not walked.
func differences(name string, before, after *core.Entry, visit func(name string, before, after *core.Entry)) {
	if before == after {
		return
	}
	if !after.Equal(before, false) {
		visit(name, before, after)
		return
	}
	for child, entry := range after.GetContents() {
		differences(Join(name, child), before.GetContents()[child], entry, visit)
	}
	for child, entry := range before.GetContents() {
		if after.GetContents()[child] == nil {
			visit(Join(name, child), entry, nil)
		}
	}
}

// EntryAt returns the entry at a path, or nil.
func EntryAt(content *core.Entry, name string) *core.Entry {
	for name != "" && content != nil {
		var part string
		part, name, _ = strings.Cut(name, "/")
		content = content.Contents[part]
	}
	return content
}

// Apply returns a tree with changes, which shares everything else with the tree before.
func Apply(content *core.Entry, changes []*core.Change) (*core.Entry, error) {
	if len(changes) > maxNarrow {
		return core.Apply(content, changes)
	}
	a := applied{}
	for _, change := range changes {
		var err error
		if content, err = a.apply(content, change.Path, change.New); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// applied are the folders that were copied for a change: each is copied once, however many changes are in it.
type applied map[*core.Entry]bool

func (a applied) apply(content *core.Entry, name string, wanted *core.Entry) (*core.Entry, error) {
	if name == "" {
		return wanted, nil
	}
	if content == nil || content.Kind != core.EntryKind_Directory && content.Kind != core.EntryKind_PhantomDirectory {
		return nil, errNoParent
	}
	part, rest, _ := strings.Cut(name, "/")
	inside, err := a.apply(content.Contents[part], rest, wanted)
	if err != nil {
		return nil, err
	}
	if !a[content] {
		copied := &core.Entry{Kind: content.Kind, Contents: make(map[string]*core.Entry, len(content.Contents)+1)}
		maps.Copy(copied.Contents, content.Contents)
		a[copied] = true
		content = copied
	}
	if inside == nil {
		delete(content.Contents, part)
	} else {
		content.Contents[part] = inside
	}
	return content, nil
}

// compare fills in the modes that differ between two views, and returns the changes of contents.
func (a *scanAnswer) compare(before, after *View) []*core.Change {
	if after.Since == 0 || after.Since != before.Number {
		a.compareModes(before.Modes, after.Modes, after.Modes.paths(), before.Modes.paths())
		return core.Diff(before.Content, after.Content)
	}
	var changes []*core.Change
	for _, name := range after.Changed {
		old, now := EntryAt(before.Content, name), EntryAt(after.Content, name)
		if !now.Equal(old, true) {
			changes = append(changes, &core.Change{Path: name, Old: old, New: now})
		}
		a.compareModes(before.Modes, after.Modes, pathsIn(name, now), pathsIn(name, old))
	}
	return changes
}

func (a *scanAnswer) compareModes(before, after Modes, now, old iter.Seq[string]) {
	for name := range now {
		mode, has := after.Get(name)
		if had, known := before.Get(name); has && (!known || had != mode) {
			a.Modes[name] = mode
		}
	}
	for name := range old {
		_, had := before.Get(name)
		if _, has := after.Get(name); had && !has {
			a.Gone = append(a.Gone, name)
		}
	}
}

// pathsIn yields the paths of an entry and of everything in it.
func pathsIn(name string, entry *core.Entry) iter.Seq[string] {
	return func(yield func(string) bool) {
		stopped := false
		Walk(name, entry, func(name string, _ *core.Entry) { stopped = stopped || !yield(name) })
	}
}

// paths returns those that an answer changes, or nil if they are many.
func (a *scanAnswer) paths(changes []*core.Change) []string {
	if len(a.Modes)+len(a.Gone)+len(changes) > maxNarrow {
		return nil
	}
	names := slices.Concat(slices.Collect(maps.Keys(a.Modes)), a.Gone)
	for _, change := range changes {
		names = append(names, change.Path)
	}
	return names
}
