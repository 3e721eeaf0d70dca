package machine

import (
	"maps"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/tree"
)

// A modePlan holds the modes that both sides should have, and which of them to set on each side.
type modePlan struct{ agreed, here, there map[string]uint32 }

// setModes sets permissions, which the engine does not sync: transitions create files with the fewest.
func (c *cycle) setModes(next *base, seen views, made *plan, did outcomes) (changed bool, err error) {
	before := c.modesOfBase()
	wanted := c.planModes(before, next.content, seen, made, did)
	next.head.Modes = wanted.agreed
	changed = !maps.Equal(wanted.agreed, before)
	for path, mode := range did.modes {
		if why, failed := did.there.Refused[path]; failed {
			c.refused[refusal{"container", path, mode}] = why
		}
		if wanted.there[path] == mode {
			delete(wanted.there, path)
		}
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
			return changed, err
		}
		for path, why := range refused {
			c.refused[refusal{to.name, path, to.modes[path]}] = why
		}
	}
	for attempt, why := range c.refused {
		if wanted.agreed[attempt.path] != attempt.mode {
			delete(c.refused, attempt)
			continue
		}
		c.seen = append(c.seen, problem{attempt.side, attempt.path, "can't set its permissions: " + why})
	}
	return changed, nil
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

// chooseMode decides by the modes of the base: the side whose mode differs has changed it. Without a base, this machine's
// mode wins.
func (c *cycle) chooseMode(path string, entry *core.Entry, before map[string]uint32, seen views, isNewThere bool) (mode uint32, known bool) {
	if path == "" || !isFolder(entry) && entry.Kind != core.EntryKind_File {
		return 0, false
	}
	ours, hereHas := seen.here.Modes[path]
	theirs, thereHas := seen.there.Modes[path]
	agreed, had := before[path]
	switch {
	case !hereHas && !thereHas && isNewThere && !c.local.HasModes():
		return modeWithoutModes, true
	case !hereHas && !thereHas:
		return 0, false
	case !hereHas, thereHas && had && ours == agreed && !c.config.OneWay:
		return theirs, true
	}
	return ours, true
}

// planModes chooses all modes, and finds those to set on each side.
func (c *cycle) planModes(before map[string]uint32, content *core.Entry, seen views, made *plan, did outcomes) modePlan {
	newHere := changedPaths(made.here, did.here.Results)
	newThere := changedPaths(made.there, did.there.Results[min(len(made.copies), len(did.there.Results)):])
	m := modePlan{map[string]uint32{}, map[string]uint32{}, map[string]uint32{}}
	tree.Walk("", content, func(path string, entry *core.Entry) {
		wanted, known := c.chooseMode(path, entry, before, seen, newThere[path])
		if !known {
			return
		}
		ours, hereHas := seen.here.Modes[path]
		theirs, thereHas := seen.there.Modes[path]
		m.agreed[path] = wanted
		if (newHere[path] || hereHas && ours != wanted) && c.maySetMode("local", path, wanted) {
			m.here[path] = wanted
		}
		if (newThere[path] || thereHas && theirs != wanted) && c.maySetMode("container", path, wanted) {
			m.there[path] = wanted
		}
	})
	for _, loser := range made.copies {
		if mode, has := seen.there.Modes[loser.winner.Path]; has && loser.entry.Kind == core.EntryKind_File {
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
