package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"

	"composeplat/link/internal/tree"
	"composeplat/link/internal/wire"
)

const (
	verifying = 60 * time.Second
	soon      = 50 * time.Millisecond
	later     = 500 * time.Millisecond
	progress  = 250 * time.Millisecond
	saving    = 60 * time.Second

	mostHurry     = 20
	manyDeletions = 10
)

// A cycle compares both sides and makes them the same.
type cycle struct {
	*folder
	remote  tree.Side
	welcome wire.Welcome
	begun   bool
	found   []problem
	losing  int
	// settled is what was found when there was nothing to do.
	settled views
}

type views struct{ here, there *tree.View }

type outcomes struct{ here, there *tree.Outcome }

// turn does one cycle and says when to come again if nothing happens.
func (c *cycle) turn(ctx context.Context, full bool) (time.Duration, error) {
	began := time.Now()
	c.found = nil
	again, done, err := c.once(ctx, full)
	if errors.Is(err, tree.ErrLost) || ctx.Err() != nil {
		return 0, errors.Join(err, ctx.Err())
	}
	if failure := (sideError{}); errors.As(err, &failure) {
		c.problem(failure.side, "", failure.error)
	} else if err != nil {
		c.problem("local", "", err)
	}
	for side, watched := range map[string]tree.Side{"local": c.local, "container": c.remote} {
		if why := watched.Trouble(); why != "" {
			c.found = append(c.found, problem{side, "", why})
		}
	}
	young := c.problems.observe(c.found)
	if done != nil && (c.begun || done.any()) {
		c.events.Tell("synced", Event{
			"folder": c.number, "first": done.first, "seconds": time.Since(began).Seconds(),
			"to_container": done.there, "to_local": done.here,
		})
		c.begun = false
	}
	switch {
	case err != nil:
		return later, nil
	case again && c.hurry < mostHurry:
		c.hurry++
		return soon, nil
	case again || young:
		return later, nil
	}
	c.hurry = 0
	return verifying, nil
}

func (c *cycle) problem(side, path string, err error) {
	c.found = append(c.found, problem{side, path, err.Error()})
}

// maxProblems is how many problems of one side are told: a container can make as many as it likes.
const maxProblems = 200

func (c *cycle) problemsOf(side string, content *core.Entry) {
	all := content.Problems()
	slices.SortFunc(all, func(one, other *core.Problem) int { return strings.Compare(one.Path, other.Path) })
	for _, one := range all[:min(len(all), maxProblems)] {
		c.problem(side, one.Path, errors.New(one.Error))
	}
	if len(all) > maxProblems {
		c.problem(side, "", fmt.Errorf("%d more files and links can't be synced", len(all)-maxProblems))
	}
}

type done struct {
	first       bool
	here, there int
	other       bool
}

func (d *done) any() bool { return d.first || d.here > 0 || d.there > 0 || d.other }

// once is a whole cycle: look, decide, carry, and note what is agreed now.
func (c *cycle) once(ctx context.Context, full bool) (again bool, result *done, err error) {
	seen, err := c.scan(ctx, full)
	if err != nil {
		return true, nil, err
	}
	if seen == c.settled {
		return false, &done{}, nil
	}
	c.settled = views{}
	for side, view := range map[string]*tree.View{"local": seen.here, "container": seen.there} {
		c.problemsOf(side, view.Content)
	}
	if c.intent != nil && c.base != nil {
		content := honored(c.base.content, c.intent.there, seen.there.Content)
		c.base = &base{head: c.base.head, content: honored(content, c.intent.here, seen.here.Content)}
		c.intent = nil
	}
	first := c.base == nil
	if first && seen.here.Content == nil {
		return true, nil, c.place.Make(0o777)
	}
	made, again := c.decide(seen)
	if made == nil {
		return again, nil, nil
	}
	if again, err = c.keep(made); err != nil {
		return true, nil, err
	}
	left, err := c.rescue(made)
	if err != nil {
		return true, nil, err
	}
	again = again || left
	c.tellConflicts(made.conflicts)
	if !first && len(made.there)+len(made.here) > 0 {
		c.intent = &intent{here: made.here, there: made.there}
		if err := c.intent.save(c.state, c.config, c.welcome.Volume); err != nil {
			return true, nil, err
		}
	}
	did, err := c.carryOut(ctx, made, seen)
	if err != nil {
		return true, nil, err
	}
	next, changed, err := c.agreed(made, did)
	if err != nil {
		return true, nil, err
	}
	moded, err := c.setModes(next, seen, made, did)
	if err != nil {
		return true, nil, err
	}
	changed = changed || moded
	if !changed && !again && len(c.found) == 0 {
		c.settled = seen
	}
	if err := c.note(next, changed || first); err != nil {
		return true, nil, err
	}
	problems := len(did.there.Problems) + len(did.here.Problems)
	again = again || did.there.Missing || did.here.Missing || problems > 0 && c.hurry < 2
	return again, &done{first: first, here: size(made.here), there: size(made.there), other: moded}, nil
}

// ancestor is what the base holds, or nothing in a first sync.
func (c *cycle) ancestor() *core.Entry {
	if c.base == nil {
		return nil
	}
	return c.base.content
}

// decide makes the plan of a cycle. There is none where too much would be deleted, or may yet be: then look again, or halt.
func (c *cycle) decide(seen views) (made *plan, again bool) {
	first, ancestor := c.base == nil, c.ancestor()
	ours, theirs := seen.here.Content, seen.there.Content
	if !first && isFolder(ancestor) && (!isFolder(ours) || !isFolder(theirs)) {
		c.guard(int(ancestor.Count()), int(seen.here.Files))
		return nil, false
	}
	if c.excepts {
		ours, theirs, _, _ = core.ReifyPhantomDirectories(ancestor, ours, theirs)
	}
	made = makePlan(ancestor, ours, theirs, c.losers(first), c.config.OneWay, time.Now())
	deletions := losses(made.here)
	if deletions > manyDeletions && deletions != c.losing && c.hurry < mostHurry {
		// It may still be going on, and in the end be too many.
		c.losing = deletions
		return nil, true
	}
	c.losing = 0
	if tooMany(deletions, int(seen.here.Files)) {
		c.guard(deletions, int(seen.here.Files))
		return nil, false
	}
	return made, false
}

// losers says what becomes of the container's files that lose. Without a history that both share, they are whatever an
// earlier session has left, and are not put among the files of this machine.
func (c *cycle) losers(first bool) losing {
	switch {
	case !first:
		return keptBeside
	case c.welcome.Fresh:
		return overwritten
	}
	return keptElsewhere
}

// carryOut does on both sides what is planned, and notes what could not be done.
func (c *cycle) carryOut(ctx context.Context, made *plan, seen views) (did outcomes, err error) {
	if did.there, err = c.carry(ctx, c.local, c.remote, made.there, made.copies, c.base == nil, seen.here); err != nil {
		return did, err
	}
	if did.here, err = c.carry(ctx, c.remote, c.local, made.here, nil, false, seen.there); err != nil {
		return did, err
	}
	for _, problem := range did.there.Problems {
		c.problem("container", problem.Path, errors.New(problem.Error))
	}
	for _, problem := range did.here.Problems {
		c.problem("local", problem.Path, errors.New(problem.Error))
	}
	return did, nil
}

// agreed is the next base, still without modes, and whether anything in it is new.
func (c *cycle) agreed(made *plan, did outcomes) (next *base, changed bool, err error) {
	changes := made.base
	for i, change := range made.there {
		changes = append(changes, &core.Change{Path: change.Path, New: did.there.Results[i+len(made.copies)]})
	}
	for i, change := range made.here {
		changes = append(changes, &core.Change{Path: change.Path, New: did.here.Results[i]})
	}
	content, err := core.Apply(c.ancestor(), changes)
	if err != nil {
		return nil, false, fmt.Errorf("the base does not fit: %w", err)
	}
	head := baseHead{Volume: c.welcome.Volume, Remote: c.config.Remote, Local: c.config.Local}
	return &base{content: content, head: head}, len(changes) > 0, nil
}

// note makes next the base: what was intended is then done, and the intent of no more use.
func (c *cycle) note(next *base, changed bool) error {
	c.base = next
	if changed {
		if err := next.save(c.state, c.config); err != nil {
			return err
		}
	}
	if c.intent != nil {
		dropIntent(c.state, c.config)
		c.intent = nil
	}
	if time.Since(c.saved) > saving {
		c.saved = time.Now()
		_ = saveCache(c.state, c.config, c.local.Cache())
	}
	return nil
}

func (c *cycle) scan(ctx context.Context, full bool) (seen views, err error) {
	var both sync.WaitGroup
	var hereFailed, thereFailed error
	both.Go(func() { seen.here, hereFailed = c.local.Scan(ctx, full) })
	both.Go(func() { seen.there, thereFailed = c.remote.Scan(ctx, full) })
	both.Wait()
	switch {
	case errors.Is(thereFailed, tree.ErrLost):
		return views{}, thereFailed
	case hereFailed != nil:
		return views{}, sideError{"local", hereFailed}
	case thereFailed != nil:
		return views{}, sideError{"container", thereFailed}
	}
	return seen, nil
}

// A sideError says where something has failed that may work the next time.
type sideError struct {
	side string
	error
}

func (s sideError) Unwrap() error { return s.error }

func (c *cycle) guard(deletions, of int) {
	c.halted = true
	c.events.Tell("sync-stopped", Event{"folder": c.number, "deletions": deletions, "total": of})
}

func (c *cycle) tellConflicts(now []conflict) {
	present := map[conflict]bool{}
	for _, one := range now {
		present[one] = true
		if !c.conflicts[one] {
			c.events.Tell("conflict", Event{"folder": c.number, "path": one.path, "kept_as": one.kept})
		}
	}
	c.conflicts = present
}

// keep prepares the copies of what loses. What can't be copied any more is left for the next cycle.
func (c *cycle) keep(made *plan) (again bool, err error) {
	var paths []string
	var digests [][]byte
	for _, one := range made.copies {
		if one.entry.Kind == core.EntryKind_File {
			paths, digests = append(paths, one.to), append(digests, one.entry.Digest)
		}
	}
	if len(paths) == 0 {
		return false, nil
	}
	had, err := c.remote.Keep(paths, digests)
	if err != nil {
		return true, err
	}
	missing := map[string]bool{}
	for i, path := range paths {
		missing[path] = !had[i]
	}
	var copies []copied
	for _, one := range made.copies {
		if !missing[one.to] {
			copies = append(copies, one)
			continue
		}
		again = true
		made.there = without(made.there, one.winner)
		for i, told := range made.conflicts {
			if told.kept == one.to {
				made.conflicts = append(made.conflicts[:i:i], made.conflicts[i+1:]...)
				break
			}
		}
	}
	made.copies = copies
	return again, nil
}

func without(changes []*core.Change, left *core.Change) []*core.Change {
	var result []*core.Change
	for _, change := range changes {
		if change != left {
			result = append(result, change)
		}
	}
	return result
}

// carry makes changes on one side with contents of the other. The copies' outcomes come first.
func (c *cycle) carry(ctx context.Context, from, to tree.Side, changes []*core.Change, copies []copied, first bool,
	source *tree.View,
) (*tree.Outcome, error) {
	if len(changes)+len(copies) == 0 {
		return &tree.Outcome{}, nil
	}
	if paths, digests := core.TransitionDependencies(changes); len(paths) > 0 {
		needed, signatures, receiver, err := to.Stage(paths, digests)
		if err != nil {
			return nil, err
		}
		if len(needed) > 0 {
			if first {
				receiver = c.watched(receiver, needed, signatures, source)
			}
			if err := from.Supply(needed, signatures, rsync.NewPreemptableReceiver(ctx, receiver)); err != nil {
				return nil, errors.Join(tree.ErrLost, err)
			}
		}
	}
	all := make([]*core.Change, 0, len(copies)+len(changes))
	for _, one := range copies {
		all = append(all, &core.Change{Path: one.to, New: one.entry})
	}
	return to.Transition(ctx, append(all, changes...))
}

// watched tells how far a first sync is.
func (c *cycle) watched(receiver rsync.Receiver, needed []string, signatures []*rsync.Signature, source *tree.View) rsync.Receiver {
	var last time.Time
	return rsync.NewMonitoringReceiver(receiver, needed, signatures, func(state *rsync.ReceiverState) error {
		if state != nil && time.Since(last) >= progress {
			last = time.Now()
			c.events.Tell("syncing", Event{
				"folder": c.number, "files": len(needed), "bytes": source.Bytes, "done": state.ReceivedFiles,
			})
		}
		return nil
	})
}

// A modePlan is which modes there are to be, and which of them are to be set at each side.
type modePlan struct{ agreed, here, there map[string]uint32 }

// setModes carries the permissions that the engine does not. Transitions have left files with the least of them.
func (c *cycle) setModes(next *base, seen views, made *plan, did outcomes) (changed bool, err error) {
	before := map[string]uint32{}
	if c.base != nil {
		before = c.base.head.Modes
	}
	wanted := c.wantModes(before, next.content, seen, made, did)
	next.head.Modes = wanted.agreed
	changed = !maps.Equal(wanted.agreed, before)
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
	for one, why := range c.refused {
		if wanted.agreed[one.path] != one.mode {
			delete(c.refused, one)
			continue
		}
		c.found = append(c.found, problem{one.side, one.path, "can't set its permissions: " + why})
	}
	return changed, nil
}

// wantModes decides by the modes of the base: the side that has another one has changed it, and where that can't be told,
// it is the one here.
func (c *cycle) wantModes(before map[string]uint32, content *core.Entry, seen views, made *plan, did outcomes) modePlan {
	newHere := renewed(made.here, did.here.Results)
	newThere := renewed(made.there, did.there.Results[min(len(made.copies), len(did.there.Results)):])
	m := modePlan{map[string]uint32{}, map[string]uint32{}, map[string]uint32{}}
	tree.Walk("", content, func(path string, entry *core.Entry) {
		if path == "" || !isFolder(entry) && entry.Kind != core.EntryKind_File {
			return
		}
		ours, hereHas := seen.here.Modes[path]
		theirs, thereHas := seen.there.Modes[path]
		agreed, known := before[path]
		wanted := ours
		switch {
		case !hereHas && !thereHas:
			return
		case !hereHas, thereHas && known && ours == agreed && !c.config.OneWay:
			wanted = theirs
		}
		m.agreed[path] = wanted
		if (newHere[path] || hereHas && ours != wanted) && c.may("local", path, wanted) {
			m.here[path] = wanted
		}
		if (newThere[path] || thereHas && theirs != wanted) && c.may("container", path, wanted) {
			m.there[path] = wanted
		}
	})
	for _, one := range made.copies {
		if mode, has := seen.there.Modes[one.winner.Path]; has && one.entry.Kind == core.EntryKind_File {
			m.there[one.to] = mode
		}
	}
	return m
}

// renewed are the paths that changes have really made or written.
func renewed(changes []*core.Change, results []*core.Entry) map[string]bool {
	paths := map[string]bool{}
	for i, change := range changes {
		if !results[i].Equal(change.Old, true) {
			tree.Walk(change.Path, results[i], func(path string, _ *core.Entry) { paths[path] = true })
		}
	}
	return paths
}

// may tells whether setting a mode has not been refused before.
func (c *cycle) may(side, path string, mode uint32) bool {
	_, refused := c.refused[refusal{side, path, mode}]
	return !refused
}
