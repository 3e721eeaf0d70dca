package machine

import (
	"maps"
	"slices"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/tree"
)

// An intent holds the changes that a cycle is about to make. If the cycle is interrupted, the next one compares it with both
// sides: without it, changes that were made already would look like changes of the other side, and so like conflicts.
type intent struct {
	here, there []*core.Change
	modes       []modeIntent
}

// A modeIntent holds modes that are about to be set on both sides.
type modeIntent struct {
	Here  map[string]uint32 `json:"here,omitempty"`
	There map[string]uint32 `json:"there,omitempty"`
}

func (m modeIntent) isAny() bool { return len(m.Here)+len(m.There) > 0 }

// and returns an intent with the changes of a plan and modes after those of one that was interrupted before, if there is one.
func (i *intent) and(made *plan, modes modeIntent) *intent {
	if i == nil {
		i = &intent{}
	}
	next := &intent{here: slices.Concat(i.here, made.here), there: slices.Concat(i.there, made.there), modes: i.modes}
	return next.andModes(modes)
}

func (i *intent) andModes(modes modeIntent) *intent {
	if !modes.isAny() {
		return i
	}
	return &intent{here: i.here, there: i.there, modes: append(slices.Clip(i.modes), modes)}
}

// intendModes records the modes that a cycle is about to set. Without a base, those of this machine win in any case.
func (c *cycle) intendModes(modes modeIntent) error {
	if c.base == nil || !modes.isAny() {
		return nil
	}
	if c.intent == nil {
		c.intent = c.recovered.and(&plan{}, modes)
	} else {
		c.intent = c.intent.andModes(modes)
	}
	return c.intent.save(c.state, c.config, c.welcome.Volume)
}

// knownModes are the modes that change the base's own: others are the side's that has them, should the cycle be interrupted.
func knownModes(modes, before map[string]uint32) map[string]uint32 {
	known := map[string]uint32{}
	for path, mode := range modes {
		if agreed, had := before[path]; had && agreed != mode {
			known[path] = mode
		}
	}
	return known
}

// modesDone returns the modes of a base with those of an intent that a side has already.
func (i *intent) modesDone(of *base, seen views) map[string]uint32 {
	modes := maps.Clone(of.head.Modes)
	for _, set := range i.modes {
		for _, side := range []struct {
			set map[string]uint32
			now *tree.View
		}{{set.There, seen.there}, {set.Here, seen.here}} {
			for path, mode := range side.set {
				if now, has := side.now.Modes.Get(path); has && now == mode && findEntry(of.content, path) != nil {
					modes[path] = mode
				}
			}
		}
	}
	return modes
}

// half are the paths that an interrupted cycle has created or written, and that still have the mode with which that is done:
// it is not one that anybody has chosen.
type half struct{ here, there map[string]bool }

func withoutMode(changes []*core.Change, now *tree.View) map[string]bool {
	found := map[string]bool{}
	for _, change := range changes {
		tree.Walk(change.Path, change.New, func(path string, wanted *core.Entry) {
			mode, has := now.Modes.Get(path)
			if has && mode&^0o100 == 0o600 && wanted.Equal(findEntry(now.Content, path), false) {
				found[path] = true
			}
		})
	}
	return found
}

// recover compares an interrupted intent with both sides.
func (c *cycle) recover(seen views) {
	c.half = half{withoutMode(c.intent.here, seen.here), withoutMode(c.intent.there, seen.there)}
	if c.base != nil {
		content := applyDone(c.base.content, c.intent.there, seen.there.Content)
		c.base = &base{head: c.base.head, content: applyDone(content, c.intent.here, seen.here.Content)}
		c.base.head.ID, c.base.head.Modes = "", c.intent.modesDone(c.base, seen)
	} else if isFolder(seen.here.Content) && isFolder(seen.there.Content) {
		content := applyDone(withParents(slices.Concat(c.intent.there, c.intent.here), seen), c.intent.there, seen.there.Content)
		c.partial = applyDone(content, c.intent.here, seen.here.Content)
	}
	c.intent, c.recovered = nil, c.intent
}

// withParents is the start of a base: the folders around changes that both sides have.
func withParents(changes []*core.Change, seen views) *core.Entry {
	root := &core.Entry{Kind: core.EntryKind_Directory}
	for _, change := range changes {
		for at := range len(change.Path) {
			folder := change.Path[:at]
			if change.Path[at] == '/' && findEntry(root, folder) == nil && isFolder(findEntry(seen.here.Content, folder)) &&
				isFolder(findEntry(seen.there.Content, folder)) {
				root = applyChange(root, folder, &core.Entry{Kind: core.EntryKind_Directory})
			}
		}
	}
	return root
}

type intentHead struct {
	Volume string   `json:"volume"`
	Paths  []string `json:"paths"`
	Bytes  []int    `json:"bytes"`
	// Split is how many of them, the first ones, are changes on this machine.
	Split int `json:"split"`
	// Modes are missing in an intent of an earlier version.
	Modes []modeIntent `json:"modes,omitempty"`
}

func (i *intent) save(state string, folder FolderConfig, volume string) error {
	head := intentHead{Volume: volume, Split: len(i.here), Modes: i.modes}
	paths, lengths, entries, err := packChanges(slices.Concat(i.here, i.there))
	if err != nil {
		return err
	}
	head.Paths, head.Bytes = paths, lengths
	return newRecord("intent", state, folder).Save(head, entries)
}

func dropIntent(state string, folder FolderConfig) { newRecord("intent", state, folder).Drop() }

// loadIntent returns nil if there is none, or if it is damaged or of another volume.
func loadIntent(state string, folder FolderConfig, volume string) *intent {
	var head intentHead
	rest, has := newRecord("intent", state, folder).Load(&head)
	if !has || head.Volume != volume || head.Split < 0 || head.Split > len(head.Paths) {
		return nil
	}
	changes, ok := unpackChanges(head.Paths, head.Bytes, rest)
	if !ok {
		return nil
	}
	return &intent{here: changes[:head.Split], there: changes[head.Split:], modes: head.Modes}
}

// applyDone returns the base with those changes of an intent that a side has already.
func applyDone(ancestor *core.Entry, changes []*core.Change, now *core.Entry) *core.Entry {
	for _, change := range changes {
		ancestor = applyDoneAt(ancestor, change.Path, change.New, findEntry(now, change.Path))
	}
	return ancestor
}

func applyDoneAt(ancestor *core.Entry, path string, wanted, now *core.Entry) *core.Entry {
	known := findEntry(ancestor, path)
	switch {
	case wanted == nil && now == nil && known != nil, isLeaf(wanted) && wanted.Equal(now, false):
		return applyChange(ancestor, path, wanted)
	case !isFolder(wanted) || !isFolder(now):
		return ancestor
	}
	if !isFolder(known) {
		ancestor = applyChange(ancestor, path, &core.Entry{Kind: core.EntryKind_Directory})
	}
	for name, child := range wanted.Contents {
		ancestor = applyDoneAt(ancestor, tree.Join(path, name), child, now.Contents[name])
	}
	return ancestor
}

func applyChange(ancestor *core.Entry, path string, entry *core.Entry) *core.Entry {
	result, err := core.Apply(ancestor, []*core.Change{{Path: path, New: entry}})
	if err != nil {
		return ancestor
	}
	return result
}
