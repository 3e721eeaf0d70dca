package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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

// A folder is synced over one link after another.
type folder struct {
	number   int
	config   FolderConfig
	state    string
	events   *Events
	problems problems
	local    *tree.Tree
	// excepts is when an ignored folder may hold what is not ignored.
	excepts bool

	base      *base
	intent    *intent
	saved     time.Time
	halted    bool
	conflicts map[conflict]bool
	refused   map[refusal]string
	hurry     int
	flushes   chan chan struct{}
}

type refusal struct {
	side, path string
	mode       uint32
}

func newFolder(number int, config FolderConfig, state string, events *Events) (*folder, error) {
	if err := os.MkdirAll(config.Local, 0o777); err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(config.Local)
	if err != nil {
		return nil, err
	}
	// Staged beside the state and not in the folder: editors, file watchers and version control would see it there. Where
	// that is another filesystem, the engine copies beside the file first and renames then.
	staging := filepath.Join(state, "staging", nameFor("folder", config))
	local, err := tree.NewTree(root, config.Ignores, staging, loadCache(state, config))
	if err != nil {
		return nil, err
	}
	excepts := slices.ContainsFunc(config.Ignores, func(pattern string) bool {
		return strings.HasPrefix(strings.TrimSpace(pattern), "!")
	})
	return &folder{
		excepts: excepts, number: number, config: config, state: state, events: events, local: local,
		problems: problems{events: events, folder: number}, flushes: make(chan chan struct{}),
		conflicts: map[conflict]bool{}, refused: map[refusal]string{},
	}, nil
}

func (f *folder) close() {
	_ = saveCache(f.state, f.config, f.local.Cache())
	f.local.Close()
}

// run syncs until the link is lost. Ready is called when both sides have been the same once, or can't be.
func (f *folder) run(ctx context.Context, link *wire.Link, welcome wire.Welcome, ready func()) error {
	settled := sync.OnceFunc(ready)
	defer settled()
	stream, err := open(ctx, link, "tree", wire.Folder{Root: f.config.Remote, Ignores: f.config.Ignores})
	if err != nil {
		return err
	}
	var reply wire.Attached
	if err := wire.Receive(stream, &reply); err != nil {
		stream.Close()
		return err
	}
	if reply.Error != "" {
		stream.Close()
		f.problems.tell("problem", problem{"container", "", reply.Error})
		settled()
		return f.idle(ctx, link)
	}
	remote := tree.NewRemote(stream)
	defer remote.Close()
	if f.base == nil || f.base.head.Volume != welcome.Volume {
		f.base = loadBase(f.state, f.config, welcome.Volume)
		f.intent = loadIntent(f.state, f.config, welcome.Volume)
	}
	c := &cycle{folder: f, remote: remote, welcome: welcome, begun: true}
	full := true
	var flushed chan struct{}
	for !f.halted {
		wait, err := c.turn(ctx, full)
		if err != nil {
			return err
		}
		if wait == verifying {
			settled()
			if flushed != nil {
				close(flushed)
				flushed = nil
			}
		}
		timer := time.NewTimer(wait)
		full = false
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-link.Closed():
			timer.Stop()
			return link.Why()
		case <-f.local.Changed():
		case <-remote.Changed():
		case flushed = <-f.flushes:
			full = true
		case <-timer.C:
			full = wait == verifying
		}
		timer.Stop()
	}
	settled()
	if flushed != nil {
		close(flushed)
	}
	return f.idle(ctx, link)
}

// idle is what a folder does that is not synced.
func (f *folder) idle(ctx context.Context, link *wire.Link) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-link.Closed():
			return link.Why()
		case flushed := <-f.flushes:
			close(flushed)
		}
	}
}

// flush waits for a cycle that has seen everything.
func (f *folder) flush(ctx context.Context) {
	done := make(chan struct{})
	select {
	case f.flushes <- done:
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func open(ctx context.Context, link *wire.Link, kind string, body any) (wire.Conn, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	stream, err := link.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	if err := wire.Send(stream, wire.Open{Kind: kind, Body: raw}); err != nil {
		stream.Close()
		return nil, err
	}
	return stream, nil
}

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

type done struct {
	first       bool
	here, there int
	other       bool
}

func (d *done) any() bool { return d.first || d.here > 0 || d.there > 0 || d.other }

func (c *cycle) once(ctx context.Context, full bool) (again bool, result *done, err error) {
	here, there, err := c.scan(ctx, full)
	if err != nil {
		return true, nil, err
	}
	if here == c.settled.here && there == c.settled.there {
		return false, &done{}, nil
	}
	c.settled = views{}
	for side, view := range map[string]*tree.View{"local": here, "container": there} {
		for _, one := range view.Content.Problems() {
			c.problem(side, one.Path, errors.New(one.Error))
		}
	}
	if c.intent != nil && c.base != nil {
		content := honored(c.base.content, c.intent.there, there.Content)
		c.base = &base{head: c.base.head, content: honored(content, c.intent.here, here.Content)}
		c.intent = nil
	}
	first := c.base == nil
	if first && here.Content == nil {
		return true, nil, os.MkdirAll(c.config.Local, 0o777)
	}
	var ancestor *core.Entry
	if !first {
		ancestor = c.base.content
	}
	if !first && isFolder(ancestor) && (!isFolder(here.Content) || !isFolder(there.Content)) {
		c.guard(int(ancestor.Count()), int(here.Files))
		return false, nil, nil
	}
	ours, theirs := here.Content, there.Content
	if c.excepts {
		ours, theirs, _, _ = core.ReifyPhantomDirectories(ancestor, ours, theirs)
	}
	made := makePlan(ancestor, ours, theirs, first && c.welcome.Fresh, c.config.OneWay, time.Now())
	deletions := losses(made.here)
	if deletions > manyDeletions && deletions != c.losing && c.hurry < mostHurry {
		// It may still be going on, and in the end be too many.
		c.losing = deletions
		return true, nil, nil
	}
	c.losing = 0
	if tooMany(deletions, int(here.Files)) {
		c.guard(deletions, int(here.Files))
		return false, nil, nil
	}
	if again, err = c.keep(made); err != nil {
		return true, nil, err
	}
	c.tellConflicts(made.conflicts)
	changed := len(made.base) > 0
	if !first && len(made.there)+len(made.here) > 0 {
		c.intent = &intent{here: made.here, there: made.there}
		if err := c.intent.save(c.state, c.config, c.welcome.Volume); err != nil {
			return true, nil, err
		}
	}
	outward, err := c.carry(ctx, c.local, c.remote, made.there, made.copies, first, here)
	if err != nil {
		return true, nil, err
	}
	inward, err := c.carry(ctx, c.remote, c.local, made.here, nil, false, there)
	if err != nil {
		return true, nil, err
	}
	for _, problem := range outward.Problems {
		c.problem("container", problem.Path, errors.New(problem.Error))
	}
	for _, problem := range inward.Problems {
		c.problem("local", problem.Path, errors.New(problem.Error))
	}
	agreed := made.base
	for i, change := range made.there {
		agreed = append(agreed, &core.Change{Path: change.Path, New: outward.Results[i+len(made.copies)]})
	}
	for i, change := range made.here {
		agreed = append(agreed, &core.Change{Path: change.Path, New: inward.Results[i]})
	}
	content, err := core.Apply(ancestor, agreed)
	if err != nil {
		return true, nil, fmt.Errorf("the base does not fit: %w", err)
	}
	next := &base{content: content, head: baseHead{
		Volume: c.welcome.Volume, Remote: c.config.Remote, Local: c.config.Local,
	}}
	moded, err := c.setModes(next, here, there, made, outward, inward)
	if err != nil {
		return true, nil, err
	}
	changed = changed || len(agreed) > 0 || moded
	if !changed && !again && len(c.found) == 0 {
		c.settled = views{here, there}
	}
	c.base = next
	if changed || first {
		if err := next.save(c.state, c.config); err != nil {
			return true, nil, err
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
	again = again || outward.Missing || inward.Missing || len(outward.Problems)+len(inward.Problems) > 0 && c.hurry < 2
	return again, &done{first: first, here: size(made.here), there: size(made.there), other: moded}, nil
}

func (c *cycle) scan(ctx context.Context, full bool) (here, there *tree.View, err error) {
	var both sync.WaitGroup
	var hereFailed, thereFailed error
	both.Go(func() { here, hereFailed = c.local.Scan(ctx, full) })
	both.Go(func() { there, thereFailed = c.remote.Scan(ctx, full) })
	both.Wait()
	if errors.Is(thereFailed, tree.ErrLost) {
		return nil, nil, thereFailed
	}
	if hereFailed != nil {
		return nil, nil, sideError{"local", hereFailed}
	}
	if thereFailed != nil {
		return nil, nil, sideError{"container", thereFailed}
	}
	return here, there, nil
}

// A sideError says where something has failed that may work the next time.
type sideError struct {
	side string
	error
}

func (s sideError) Unwrap() error { return s.error }

func (c *cycle) guard(deletions, of int) {
	c.halted = true
	c.events.Tell("guard", Event{"folder": c.number, "deletions": deletions, "of": of})
}

func (c *cycle) tellConflicts(now []conflict) {
	present := map[conflict]bool{}
	for _, one := range now {
		present[one] = true
		if !c.conflicts[one] {
			c.events.Tell("conflict", Event{"folder": c.number, "path": one.path, "kept": one.kept})
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

// setModes carries the permissions that the engine does not. Transitions have left files with the least of them.
func (c *cycle) setModes(next *base, here, there *tree.View, made *plan, outward, inward *tree.Outcome) (bool, error) {
	before := map[string]uint32{}
	if c.base != nil {
		before = c.base.head.Modes
	}
	newThere, newHere := map[string]bool{}, map[string]bool{}
	mark := func(to map[string]bool, changes []*core.Change, results []*core.Entry) {
		for i, change := range changes {
			if !results[i].Equal(change.Old, true) {
				tree.Walk(change.Path, results[i], func(path string, _ *core.Entry) { to[path] = true })
			}
		}
	}
	mark(newThere, made.there, outward.Results[min(len(made.copies), len(outward.Results)):])
	mark(newHere, made.here, inward.Results)
	modes := map[string]uint32{}
	forHere, forThere := map[string]uint32{}, map[string]uint32{}
	tree.Walk("", next.content, func(path string, entry *core.Entry) {
		if path == "" || !isFolder(entry) && entry.Kind != core.EntryKind_File {
			return
		}
		ours, hereHas := here.Modes[path]
		theirs, thereHas := there.Modes[path]
		agreed, known := before[path]
		wanted := ours
		switch {
		case !hereHas && !thereHas:
			return
		case !hereHas, thereHas && known && ours == agreed && !c.config.OneWay:
			wanted = theirs
		}
		modes[path] = wanted
		if (newHere[path] || hereHas && ours != wanted) && c.may("local", path, wanted) {
			forHere[path] = wanted
		}
		if (newThere[path] || thereHas && theirs != wanted) && c.may("container", path, wanted) {
			forThere[path] = wanted
		}
	})
	for _, one := range made.copies {
		if mode, has := there.Modes[one.winner.Path]; has && one.entry.Kind == core.EntryKind_File {
			forThere[one.to] = mode
		}
	}
	next.head.Modes = modes
	changed := !maps.Equal(modes, before)
	for _, to := range []struct {
		name  string
		side  tree.Side
		modes map[string]uint32
	}{{"local", c.local, forHere}, {"container", c.remote, forThere}} {
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
		if modes[one.path] != one.mode {
			delete(c.refused, one)
			continue
		}
		c.found = append(c.found, problem{one.side, one.path, "can't set its permissions: " + why})
	}
	return changed, nil
}

// may tells whether setting a mode has not been refused before.
func (c *cycle) may(side, path string, mode uint32) bool {
	_, refused := c.refused[refusal{side, path, mode}]
	return !refused
}
