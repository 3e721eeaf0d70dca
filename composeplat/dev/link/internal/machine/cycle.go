package machine

import (
	"cmp"
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

// verifyInterval is when a folder is read as a whole again.
var verifyInterval = 60 * time.Second

const (
	shortDelay       = 50 * time.Millisecond
	longDelay        = 500 * time.Millisecond
	progressInterval = 250 * time.Millisecond
	saveInterval     = 60 * time.Second

	maxQuickCycles = 20
	manyDeletions  = 10
)

// A cycle compares both sides of a folder and makes them equal.
type cycle struct {
	*folder
	remote           tree.Side
	welcome          wire.Welcome
	isFirstCycle     bool
	seen             []problem
	pendingDeletions int
	// settled are the views of the last cycle that had nothing to do.
	settled views
	// calm is nil if the last cycle left something to do.
	calm *calm
	// contents may be nil.
	contents *contents
}

type views struct{ here, there *tree.View }

type outcomes struct {
	here, there *tree.Outcome
	// modes are those that the container has set, or refused to set, with its changes.
	modes map[string]uint32
}

// run does one cycle and returns when to run the next one if nothing changes.
func (c *cycle) run(ctx context.Context, full bool) (time.Duration, error) {
	began := time.Now()
	c.seen = nil
	again, done, err := c.syncOnce(ctx, full)
	if errors.Is(err, tree.ErrLost) || ctx.Err() != nil {
		return 0, errors.Join(err, ctx.Err())
	}
	if failure := (sideError{}); errors.As(err, &failure) {
		c.addProblem(failure.side, "", failure.error)
	} else if err != nil {
		c.addProblem("local", "", err)
	}
	for side, watched := range map[string]tree.Side{"local": c.local, "container": c.remote} {
		if why := watched.WatchError(); why != "" {
			c.seen = append(c.seen, problem{side, "", why})
		}
	}
	pending := c.problems.observe(limitProblems(c.seen)) || c.hasNewConflict()
	waits := c.contents.isPending()
	if done != nil && (c.isFirstCycle && !waits || done.isAny()) {
		c.events.Emit("synced", Event{
			"folder": c.number, "first": done.first, "seconds": time.Since(began).Seconds(),
			"to_container": done.there, "to_local": done.here,
		})
		c.isFirstCycle = false
	}
	switch {
	case err != nil:
		return longDelay, nil
	case again && c.quickCycles < maxQuickCycles:
		c.quickCycles++
		return shortDelay, nil
	case again || pending:
		return longDelay, nil
	}
	c.quickCycles = 0
	if waits {
		return contentsInterval, nil
	}
	return verifyInterval, nil
}

func (c *cycle) addProblem(side, path string, err error) {
	c.seen = append(c.seen, problem{side, path, err.Error()})
}

// maxProblems is how many problems of a side are reported: a container can create any number of them.
const maxProblems = 200

func (c *cycle) addProblems(side string, content *core.Entry) {
	for _, found := range content.Problems() {
		c.addProblem(side, found.Path, errors.New(found.Error))
	}
}

// limitProblems returns the first problems of each side, and how many more there are.
func limitProblems(all []problem) []problem {
	slices.SortFunc(all, func(left, right problem) int {
		return cmp.Or(strings.Compare(left.side, right.side), strings.Compare(left.path, right.path), strings.Compare(left.why, right.why))
	})
	few, more := limit(all, func(found problem) string { return found.side })
	for side, count := range more {
		few = append(few, problem{side, "", fmt.Sprintf("%d more files and links can't be synced", count)})
	}
	return few
}

// limit returns the first maxProblems of each group, and how many more there are of groups with more.
func limit[Found any, Group comparable](all []Found, group func(Found) Group) (few []Found, more map[Group]int) {
	count := map[Group]int{}
	for _, found := range all {
		if count[group(found)]++; count[group(found)] <= maxProblems {
			few = append(few, found)
		}
	}
	for of := range count {
		count[of] -= maxProblems
	}
	maps.DeleteFunc(count, func(_ Group, left int) bool { return left <= 0 })
	return few, count
}

type done struct {
	first       bool
	here, there int
	other       bool
}

func (d *done) isAny() bool { return d.first || d.here > 0 || d.there > 0 || d.other }

// syncOnce is a whole cycle: scan, decide, transfer, and save the new base.
func (c *cycle) syncOnce(ctx context.Context, full bool) (again bool, result *done, err error) {
	seen, err := c.scan(ctx, full)
	if err != nil {
		return true, nil, err
	}
	if seen == c.settled {
		return false, &done{}, nil
	}
	part := c.scopeOf(seen)
	c.settled, c.calm = views{}, nil
	if c.intent != nil {
		c.recover(seen)
	}
	compared := part.cut(trees{c.ancestor(), seen.here.Content, seen.there.Content})
	for side, content := range map[string]*core.Entry{"local": compared.here, "container": compared.there} {
		c.addProblems(side, content)
	}
	first := c.base == nil
	if first && seen.here.Content == nil {
		return true, nil, c.place.Make(0o777)
	}
	made, again := c.decide(compared, int(seen.here.Files))
	if made == nil {
		return again, nil, nil
	}
	if !part.whole && len(made.conflicts) > 0 {
		// The names of copies must be free in the whole folder.
		c.seen = nil
		return c.syncOnce(ctx, full)
	}
	large := c.leaveOutLarge(made, seen)
	if again, err = c.stageCopies(made); err != nil {
		return true, nil, err
	}
	left, err := c.saveReplaced(made)
	if err != nil {
		return true, nil, err
	}
	again = again || left
	c.emitConflicts(made.conflicts)
	with := c.additions(made, seen)
	if len(made.there)+len(made.here) > 0 {
		c.intent = c.recovered.and(made, modeIntent{There: knownModes(with.Modes, c.modesOfBase())})
		if err := c.intent.save(c.state, c.config, c.welcome.Volume); err != nil {
			return true, nil, err
		}
	}
	did, err := c.execute(ctx, made, seen, with)
	if err != nil {
		return true, nil, err
	}
	c.contents.used(made.there, true)
	c.contents.used(made.here, false)
	changes := baseChanges(made, did)
	next, err := c.nextBase(changes)
	if err != nil {
		return true, nil, err
	}
	after, err := tree.Apply(compared.base, changes)
	if err != nil {
		return true, nil, err
	}
	modes := c.planModes(compared.base, after, seen, made, did)
	if err := c.setModes(next, modes, did); err != nil {
		return true, nil, err
	}
	moded := modes.isChange()
	if aligned := alignExecutable(after, next.head.Modes); len(aligned) > 0 {
		if next.content, err = tree.Apply(next.content, aligned); err != nil {
			return true, nil, err
		}
		changes = append(changes, aligned...)
	}
	changed := len(changes) > 0 || moded
	if err := c.saveBase(next, changes, modes); err != nil {
		return true, nil, err
	}
	problems := len(did.there.Problems) + len(did.here.Problems)
	again = again || did.there.Missing || did.here.Missing || problems > 0 && c.quickCycles < 2
	if !again && len(c.seen)+len(c.conflicts) == 0 {
		c.calm = calmAfter(seen, changes, modes)
		c.calm.changed = append(c.calm.changed, large...)
		if !changed && len(large) == 0 {
			c.settled = seen
		}
	}
	result = &done{first: first, here: countEntries(made.here, did.here.Results), other: moded}
	result.there = countEntries(made.there, did.there.Results[min(len(made.copies), len(did.there.Results)):])
	return again, result, nil
}

// ancestor is the content of the base. In a first sync, it has the files that an interrupted one has brought to both sides.
func (c *cycle) ancestor() *core.Entry {
	if c.base == nil {
		return c.partial
	}
	return c.base.content
}

// errMissing means that the folder here was deleted or moved away. Nothing is deleted in the container for that.
var errMissing = errors.New("the folder does not exist: it is synced again once it does")

// decide returns the plan of a cycle, or nil if the folder here is missing or too many of its files would be deleted: then the
// cycle runs again, or the sync halts.
func (c *cycle) decide(compared trees, files int) (made *plan, again bool) {
	first, ancestor, ours, theirs := c.base == nil, compared.base, compared.here, compared.there
	switch {
	case first || !isFolder(ancestor):
	case !isFolder(ours):
		// A build may delete its folder and make it again.
		c.addProblem("local", "", errMissing)
		return nil, true
	case !isFolder(theirs):
		c.halt(int(ancestor.Count()), files)
		return nil, false
	}
	if c.hasExceptions {
		ours, theirs, _, _ = core.ReifyPhantomDirectories(ancestor, ours, theirs)
	}
	if !c.local.HasModes() {
		ours = core.PropagateExecutability(ancestor, theirs, ours)
	}
	if !c.remote.HasModes() {
		theirs = core.PropagateExecutability(ancestor, ours, theirs)
	}
	made = makePlan(ancestor, ours, theirs, c.chooseLoserPolicy(first), c.config.OneWay, time.Now())
	if !c.local.HasModes() && c.remote.HasModes() {
		made.makeExecutable(theirs)
	}
	deletions := countLosses(made.here)
	if deletions > manyDeletions && deletions != c.pendingDeletions && c.quickCycles < maxQuickCycles {
		// The deletions may not be complete, and be too many in the end.
		c.pendingDeletions = deletions
		return nil, true
	}
	c.pendingDeletions = 0
	if areTooMany(deletions, files) {
		c.halt(deletions, files)
		return nil, false
	}
	return made, false
}

// chooseLoserPolicy returns what happens to the container's file in a conflict. Without a shared base, the container has
// the files of an earlier session, which are not put among the files of this machine.
func (c *cycle) chooseLoserPolicy(first bool) loserPolicy {
	switch {
	case !first:
		return keptBeside
	case c.welcome.Fresh:
		return overwritten
	}
	return keptElsewhere
}

// execute makes the planned changes on both sides, and records problems.
func (c *cycle) execute(ctx context.Context, made *plan, seen views, with tree.Additions) (did outcomes, err error) {
	if did.there, err = c.transfer(ctx, c.local, c.remote, made.there, made.copies, with, seen.here); err != nil {
		return did, err
	}
	if len(made.there) > 0 {
		did.modes = tree.ModesOfMade(with.Modes, made.there, did.there.Results[len(made.copies):])
	}
	if did.here, err = c.transfer(ctx, c.remote, c.local, made.here, nil, tree.Additions{}, seen.there); err != nil {
		return did, err
	}
	for _, problem := range did.there.Problems {
		c.addProblem("container", problem.Path, errors.New(problem.Error))
	}
	for _, problem := range did.here.Problems {
		c.addProblem("local", problem.Path, errors.New(problem.Error))
	}
	return did, nil
}

// baseChanges are the changes of the base after a cycle.
func baseChanges(made *plan, did outcomes) []*core.Change {
	changes := made.base
	add := func(change *core.Change, result *core.Entry) {
		// Where nothing was done, both sides still differ from the base as before.
		if result.Equal(change.New, true) || !result.Equal(change.Old, true) {
			changes = append(changes, &core.Change{Path: change.Path, New: result})
		}
	}
	for i, change := range made.there {
		add(change, did.there.Results[i+len(made.copies)])
	}
	for i, change := range made.here {
		add(change, did.here.Results[i])
	}
	return changes
}

// nextBase returns the next base, still without modes.
func (c *cycle) nextBase(changes []*core.Change) (*base, error) {
	content, err := tree.Apply(c.ancestor(), changes)
	if err != nil {
		return nil, fmt.Errorf("the base does not fit: %w", err)
	}
	head := baseHead{Volume: c.welcome.Volume, Remote: c.config.Remote, Local: c.config.Local}
	return &base{content: content, head: head}, nil
}

// saveBase makes next the base, which the changes and modes have led to, and removes the intent, which is done then.
func (c *cycle) saveBase(next *base, changes []*core.Change, modes modePlan) error {
	before := c.base
	c.base = next
	if before == nil || before.head.ID == "" || len(changes) > 0 || modes.isChange() {
		if err := next.saveAfter(before, changes, modes, c.state, c.config); err != nil {
			// The next base is saved as a whole.
			next.head.ID = ""
			return err
		}
	} else {
		next.head.ID, next.journal = before.head.ID, before.journal
	}
	if c.intent != nil || c.recovered != nil {
		dropIntent(c.state, c.config)
		c.intent, c.recovered, c.partial, c.half = nil, nil, nil, half{}
	}
	if time.Since(c.saved) > saveInterval {
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

// A sideError is a failure of one side that may succeed the next time.
type sideError struct {
	side string
	error
}

func (s sideError) Unwrap() error { return s.error }

func (c *cycle) halt(deletions, of int) {
	c.halted = true
	if c.contents != nil {
		c.contents.wanted = nil
	}
	c.events.Emit("sync-stopped", Event{"folder": c.number, "deletions": deletions, "total": of})
}

// emitConflicts reports each conflict once. One without a copy is often gone after the next scan, as that with a file that
// was removed while it was read.
func (c *cycle) emitConflicts(now []conflict) {
	present := map[conflict]*problemState{}
	for _, found := range limitConflicts(now) {
		known := c.conflicts[found]
		if known == nil {
			known = &problemState{since: time.Now()}
		}
		present[found] = known
		if !known.emitted && (found.kept != "" || time.Since(known.since) >= minProblemAge) {
			known.emitted = true
			event := Event{"folder": c.number, "path": found.path, "kept_as": found.kept}
			if found.more > 0 {
				event["more"] = found.more
			}
			c.events.Emit("conflict", event)
		}
	}
	c.conflicts = present
}

// limitConflicts returns the first conflicts with copies and the first without, and how many more there are: a container can
// create any number of them.
func limitConflicts(all []conflict) []conflict {
	slices.SortFunc(all, func(left, right conflict) int { return strings.Compare(left.path, right.path) })
	few, more := limit(all, func(found conflict) bool { return found.kept != "" })
	for hasCopy, count := range more {
		rest := conflict{more: count}
		if hasCopy {
			rest.kept = "*.conflict-*"
		}
		few = append(few, rest)
	}
	return few
}

// hasNewConflict reports whether a conflict waits to be reported.
func (c *cycle) hasNewConflict() bool {
	for _, known := range c.conflicts {
		if !known.emitted {
			return true
		}
	}
	return false
}

// stageCopies prepares the copies of conflicting files. A file that has changed meanwhile is left for the next cycle.
func (c *cycle) stageCopies(made *plan) (again bool, err error) {
	var paths []string
	var digests [][]byte
	for _, loser := range made.copies {
		if loser.entry.Kind == core.EntryKind_File {
			paths, digests = append(paths, loser.to), append(digests, loser.entry.Digest)
		}
	}
	if len(paths) == 0 {
		return false, nil
	}
	had, err := c.remote.StageCopies(paths, digests)
	if err != nil {
		return true, err
	}
	missing := map[string]bool{}
	for i, path := range paths {
		missing[path] = !had[i]
	}
	var copies []conflictCopy
	for _, loser := range made.copies {
		if !missing[loser.to] {
			copies = append(copies, loser)
			continue
		}
		again = true
		made.there = removeChange(made.there, loser.winner)
		made.dropConflict(loser)
	}
	made.copies = copies
	return again, nil
}

// dropConflict removes the conflict of which a file would be a copy.
func (p *plan) dropConflict(loser conflictCopy) {
	p.conflicts = slices.DeleteFunc(p.conflicts, func(c conflict) bool { return c.kept == loser.to })
}

func removeChange(changes []*core.Change, left *core.Change) []*core.Change {
	var result []*core.Change
	for _, change := range changes {
		if change != left {
			result = append(result, change)
		}
	}
	return result
}

// transfer makes changes on one side with contents of the other side. The results of copies come first.
func (c *cycle) transfer(ctx context.Context, from, to tree.Side, changes []*core.Change, copies []conflictCopy,
	with tree.Additions, source *tree.View,
) (*tree.Outcome, error) {
	if len(changes)+len(copies) == 0 {
		return &tree.Outcome{}, nil
	}
	if paths, digests := core.TransitionDependencies(changes); len(paths) > 0 && with.Contents == nil {
		needed, signatures, receiver, err := to.Stage(paths, digests)
		if err != nil {
			return nil, err
		}
		if len(needed) > 0 {
			if c.base == nil && to == c.remote {
				receiver = c.reportProgress(receiver, needed, signatures, source)
			}
			if err := from.Supply(needed, signatures, rsync.NewPreemptableReceiver(ctx, receiver)); err != nil {
				return nil, errors.Join(tree.ErrLost, err)
			}
		}
	}
	all := make([]*core.Change, 0, len(copies)+len(changes))
	with.After = map[string]string{}
	for _, loser := range copies {
		with.After[loser.winner.Path] = loser.to
		all = append(all, &core.Change{Path: loser.to, New: loser.entry})
	}
	return to.Transition(ctx, append(all, changes...), with)
}

// additions are the contents and modes that go to the container with the changes.
func (c *cycle) additions(made *plan, seen views) tree.Additions {
	paths, _ := core.TransitionDependencies(made.there)
	with := tree.Additions{Modes: map[string]uint32{}}
	if len(paths) > 0 {
		with.Contents = c.local.ReadSmall(paths)
	}
	for _, loser := range made.copies {
		if mode, has := seen.there.Modes.Get(loser.winner.Path); has && loser.entry.Kind == core.EntryKind_File {
			with.Modes[loser.to] = mode
		}
	}
	before := c.modesOfBase()
	for _, change := range made.there {
		tree.Walk(change.Path, change.New, func(path string, entry *core.Entry) {
			wanted, known := c.chooseMode(path, entry, before, seen, isNew{there: true})
			if known && c.maySetMode("container", path, wanted) {
				with.Modes[path] = wanted
			}
		})
	}
	return with
}

// reportProgress reports the progress of a first sync.
func (c *cycle) reportProgress(receiver rsync.Receiver, needed []string, signatures []*rsync.Signature, source *tree.View) rsync.Receiver {
	var last time.Time
	return rsync.NewMonitoringReceiver(receiver, needed, signatures, func(state *rsync.ReceiverState) error {
		if state != nil && time.Since(last) >= progressInterval {
			last = time.Now()
			c.events.Emit("syncing", Event{
				"folder": c.number, "files": len(needed), "bytes": source.Bytes, "done": state.ReceivedFiles,
				"sent": state.TotalReceivedSize,
			})
		}
		return nil
	})
}
