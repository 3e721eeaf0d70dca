package machine

import (
	"maps"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/tree"
)

// A modePlan holds the modes to set in the base, those that go from it, and those to set on each side.
type modePlan struct {
	set         map[string]uint32
	gone        []string
	here, there map[string]uint32
	// tried are those that are to be set, or have been refused before.
	tried map[refusal]bool
}

func (m modePlan) isChange() bool { return len(m.set)+len(m.gone) > 0 }

// setModes sets permissions, which the engine does not sync: transitions create files with the fewest.
func (c *cycle) setModes(next *base, wanted modePlan, did outcomes) error {
	for path, mode := range did.modes {
		if why, failed := did.there.Refused[path]; failed {
			c.refused[refusal{"container", path, mode}] = why
		}
		if wanted.there[path] == mode {
			delete(wanted.there, path)
		}
	}
	if err := c.intendModes(modeIntent{Here: wanted.here, There: wanted.there}); err != nil {
		return err
	}
	for _, to := range []struct {
		name  string
		side  tree.Side
		modes map[string]uint32
	}{{"local", c.local, wanted.here}, {"container", c.remote, wanted.there}} {
		if len(to.modes) == 0 {
			continue
		}
		refused, err := to.side.SetModes(to.modes)
		if err != nil {
			return err
		}
		for path, why := range refused {
			c.refused[refusal{to.name, path, to.modes[path]}] = why
		}
	}
	// The map is the base's before: it is changed only where nothing can fail any more.
	if next.head.Modes = c.modesOfBase(); next.head.Modes == nil {
		next.head.Modes = map[string]uint32{}
	}
	for attempt := range c.refused {
		if wanted.tried[attempt] {
			// The side has not got it: it is not the mode of both.
			delete(wanted.set, attempt.path)
		}
	}
	for _, path := range wanted.gone {
		delete(next.head.Modes, path)
	}
	maps.Copy(next.head.Modes, wanted.set)
	for attempt, why := range c.refused {
		if !wanted.tried[attempt] {
			delete(c.refused, attempt)
			continue
		}
		c.seen = append(c.seen, problem{attempt.side, attempt.path, "can't set its permissions: " + why})
	}
	return nil
}

func (c *cycle) modesOfBase() map[string]uint32 {
	if c.base == nil {
		return nil
	}
	return c.base.head.Modes
}

// modeWithoutModes is the mode in the container of a new file from a file system without modes: a script must run, as it
// does with Docker on Windows.
const modeWithoutModes = 0o755

// newModeHere is the mode here of a new file from a container's file system without modes, and with the permission to enter
// that of a folder.
const newModeHere = 0o644

// isNew is on which sides a cycle has made an entry.
type isNew struct{ here, there bool }

// chooseMode decides by the modes of the base: the side whose mode differs has changed it. Without a base, this machine's
// mode wins.
func (c *cycle) chooseMode(path string, entry *core.Entry, before map[string]uint32, seen views, made isNew) (mode uint32, known bool) {
	if path == "" || !isFolder(entry) && entry.Kind != core.EntryKind_File {
		return 0, false
	}
	ours, hereHas := modeOfKind(seen.here, path, entry)
	theirs, thereHas := modeOfKind(seen.there, path, entry)
	agreed, had := before[path]
	switch {
	case !c.remote.HasModes() && c.local.HasModes() && (made.here && !hereHas || c.half.here[path]):
		switch {
		case had:
			return agreed, true
		case isFolder(entry):
			return newModeHere | 0o111, true
		}
		return newModeHere, true
	case hereHas && c.half.there[path]:
		return ours, true
	case thereHas && c.half.here[path] && !c.config.OneWay:
		return theirs, true
	case !hereHas && !thereHas && (isFolder(entry) || made.there && !c.local.HasModes()):
		// A folder that moved while it was read has no mode yet: a new one must not stay with that of its creation.
		return modeWithoutModes, true
	case !hereHas && !thereHas:
		return 0, false
	case !hereHas, thereHas && had && ours == agreed && !c.config.OneWay:
		return theirs, true
	}
	return ours, true
}

// alignExecutable returns the changes of the base by which its files are as executable as their modes say: they would seem
// to be changed on the side that has got its mode from the other one.
func alignExecutable(content *core.Entry, modes map[string]uint32) (changes []*core.Change) {
	tree.Walk("", content, func(path string, entry *core.Entry) {
		mode, has := modes[path]
		if executable := mode&0o111 != 0; has && entry.Kind == core.EntryKind_File && entry.Executable != executable {
			changes = append(changes, &core.Change{Path: path, New: &core.Entry{Kind: entry.Kind, Digest: entry.Digest, Executable: executable}})
		}
	})
	return changes
}

// modeOfKind returns the mode of a path in a view, unless a folder is there instead of a file, or a file instead of a folder.
func modeOfKind(view *tree.View, path string, entry *core.Entry) (mode uint32, has bool) {
	mode, has = view.Modes.Get(path)
	if has && (tree.EntryAt(view.Content, path).GetKind() == core.EntryKind_File) != (entry.Kind == core.EntryKind_File) {
		return 0, false
	}
	return mode, has
}

// planModes chooses the modes of the entries that a cycle has compared, before and after it, and finds those to set on each
// side.
func (c *cycle) planModes(before, after *core.Entry, seen views, made *plan, did outcomes) modePlan {
	newHere := changedPaths(made.here, did.here.Results)
	newThere := changedPaths(made.there, did.there.Results[min(len(made.copies), len(did.there.Results)):])
	m := modePlan{set: map[string]uint32{}, here: map[string]uint32{}, there: map[string]uint32{}, tried: map[refusal]bool{}}
	known := c.modesOfBase()
	has := map[string]bool{}
	tree.Walk("", after, func(path string, entry *core.Entry) {
		wanted, chosen := c.chooseMode(path, entry, known, seen, isNew{newHere[path], newThere[path]})
		if !chosen {
			return
		}
		ours, hereHas := seen.here.Modes.Get(path)
		theirs, thereHas := seen.there.Modes.Get(path)
		has[path] = true
		if had, known := known[path]; !known || had != wanted {
			m.set[path] = wanted
		}
		if newHere[path] || hereHas && ours != wanted {
			m.tried[refusal{"local", path, wanted}] = true
			if c.maySetMode("local", path, wanted) {
				m.here[path] = wanted
			}
		}
		if newThere[path] || thereHas && theirs != wanted {
			m.tried[refusal{"container", path, wanted}] = true
			if c.maySetMode("container", path, wanted) {
				m.there[path] = wanted
			}
		}
	})
	tree.Walk("", before, func(path string, _ *core.Entry) {
		if _, had := known[path]; had && !has[path] {
			m.gone = append(m.gone, path)
		}
	})
	for _, loser := range made.copies {
		if mode, has := seen.there.Modes.Get(loser.winner.Path); has && loser.entry.Kind == core.EntryKind_File {
			m.there[loser.to] = mode
		}
	}
	return m
}

// changedPaths returns the paths that changes have really created or written.
func changedPaths(changes []*core.Change, results []*core.Entry) map[string]bool {
	paths := map[string]bool{}
	for i, change := range changes {
		if !results[i].Equal(change.Old, true) {
			tree.Walk(change.Path, results[i], func(path string, _ *core.Entry) { paths[path] = true })
		}
	}
	return paths
}

// maySetMode reports whether setting a mode has not failed before.
func (c *cycle) maySetMode(side, path string, mode uint32) bool {
	_, refused := c.refused[refusal{side, path, mode}]
	return !refused
}
