package machine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/tree"
)

// The contents of large files are sent between the cycles of a folder, in pieces that take a moment each. A cycle leaves out
// the files whose contents are still on their way, and takes them when they are staged: a save of a small file overtakes them.

const (
	minPiece = 64 << 10
	// A piece that takes less than minPieceTime more than the fastest makes the next ones larger, and after more than
	// maxPieceTime, they are smaller.
	minPieceTime = 50 * time.Millisecond
	maxPieceTime = 150 * time.Millisecond
	// maxAttempts is how often contents are sent between cycles. After that, they are sent in a cycle, which reports problems.
	maxAttempts = 3
	// maxBegun is how many contents are sent at the same time: a smaller file overtakes a larger one.
	maxBegun = 8
	// contentsInterval is when the next cycle is if nothing changes while contents are on their way.
	contentsInterval = 10 * time.Second
)

// A contentKey is contents on their way to a side.
type contentKey struct {
	toContainer bool
	digest      string
}

// A content is a file whose contents have been left out of a cycle.
type content struct {
	contentKey
	path string
	size uint64
}

// contents are those that a folder's cycles have left out. Their methods need the lock, but for run.
type contents struct {
	local, remote tree.Side
	// lock is held by a cycle as a whole, and while a piece is sent.
	lock     sync.Mutex
	wanted   []content
	needed   map[contentKey]bool
	begun    map[contentKey]*sending
	staged   map[contentKey]bool
	attempts map[contentKey]int
	// tried are those that have failed since the last cycle: it finds where the file is now.
	tried map[contentKey]bool
	// piece is the size of the next piece, and fastest how long it takes at least, to there and back.
	piece   int
	fastest time.Duration
	emit    func(kind string, fields Event)
	// isSwept means that the sides have dropped what was staged over an earlier link and is not needed any more.
	isSwept bool
	// wake is for run when something is wanted, and arrived for the folder when something is staged, or can't be.
	wake, arrived chan struct{}
}

func newContents(local, remote tree.Side, emit func(kind string, fields Event)) *contents {
	return &contents{
		local: local, remote: remote, piece: minPiece, emit: emit,
		begun: map[contentKey]*sending{}, staged: map[contentKey]bool{}, attempts: map[contentKey]int{}, tried: map[contentKey]bool{},
		wake: make(chan struct{}, 1), arrived: make(chan struct{}, 1),
	}
}

// start sends what is wanted in the background, until end is called. A lost link is sent to the channel.
func (c *contents) start(ctx context.Context) (lost <-chan error, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	failed := make(chan error, 1)
	var sending sync.WaitGroup
	sending.Go(func() {
		if err := c.run(ctx); err != nil {
			failed <- err
		}
	})
	return failed, func() {
		cancel()
		sending.Wait()
		for key := range c.begun {
			_ = c.local.End([]byte(key.digest))
		}
	}
}

// run sends what is wanted until the context ends or the link is lost.
func (c *contents) run(ctx context.Context) error {
	for ctx.Err() == nil {
		isBusy, err := c.step()
		if err != nil {
			return err
		}
		if isBusy {
			continue
		}
		select {
		case <-ctx.Done():
		case <-c.wake:
		}
	}
	return ctx.Err()
}

// isPending reports whether something is on its way.
func (c *contents) isPending() bool { return c != nil && len(c.wanted) > 0 }

// step begins to send contents or sends a piece. It returns an error only if the link is lost.
func (c *contents) step() (isBusy bool, err error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if err := c.dropUnneeded(); errors.Is(err, tree.ErrLost) {
		return false, err
	}
	next := c.choose()
	if next == nil {
		return false, nil
	}
	isDone, err := c.advance(next)
	if errors.Is(err, tree.ErrLost) {
		return false, err
	}
	if isDone = isDone || err != nil; isDone {
		delete(c.begun, next.contentKey)
		c.tried[next.contentKey] = true
		notify(c.arrived)
	}
	return true, nil
}

func notify(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// choose returns the smallest of the contents that are wanted and not staged.
func (c *contents) choose() (chosen *content) {
	for i := range c.wanted {
		wanted := &c.wanted[i]
		if c.staged[wanted.contentKey] || c.tried[wanted.contentKey] || c.begun[wanted.contentKey] == nil &&
			(c.attempts[wanted.contentKey] >= maxAttempts || len(c.begun) >= maxBegun) {
			continue
		}
		if chosen == nil || wanted.size < chosen.size {
			chosen = wanted
		}
	}
	return chosen
}

// sides returns where contents come from, and where they are sent to.
func (c *contents) sides(key contentKey) (from, to tree.Side) {
	if key.toContainer {
		return c.local, c.remote
	}
	return c.remote, c.local
}

// advance does the next step of contents, and returns whether it was the last one.
func (c *contents) advance(next *content) (isDone bool, err error) {
	from, to := c.sides(next.contentKey)
	digest := []byte(next.digest)
	if c.begun[next.contentKey] == nil {
		c.attempts[next.contentKey]++
		signature, err := to.Receive(next.path, digest)
		if err != nil {
			return true, c.giveUp(next, err)
		}
		c.begun[next.contentKey] = &sending{signature: signature, began: time.Now()}
		if signature == nil {
			c.staged[next.contentKey] = true
			return true, nil
		}
		if err := from.Open(next.path, digest, signature); err != nil {
			return true, errors.Join(err, to.End(digest))
		}
		return false, nil
	}
	began := time.Now()
	piece, err := from.Next(digest, c.piece)
	if err != nil {
		return true, errors.Join(err, to.End(digest))
	}
	if len(piece.Operations) == 0 && !piece.IsLast {
		return false, nil
	}
	isStaged, err := to.Put(digest, piece)
	if err != nil {
		return true, c.giveUp(next, errors.Join(err, from.End(digest)))
	}
	c.adapt(time.Since(began))
	c.report(time.Now(), next, piece, isStaged)
	if isStaged {
		c.staged[next.contentKey] = true
	}
	return piece.IsLast, nil
}

// giveUp leaves contents that can't be written to a cycle, which reports the problem. A file that can't be read is often
// renamed or written at that moment: the next cycle finds it as it is then.
func (c *contents) giveUp(content *content, err error) error {
	c.attempts[content.contentKey] = maxAttempts
	return err
}

// adapt chooses the size of the next piece.
func (c *contents) adapt(took time.Duration) {
	if c.fastest == 0 || took < c.fastest {
		c.fastest = took
	}
	switch more := took - c.fastest; {
	case more < minPieceTime:
		c.piece = min(2*c.piece, tree.MaxPiece)
	case more > maxPieceTime:
		c.piece = max(c.piece/2, minPiece)
	}
}

// want replaces the contents that are wanted, and those that a cycle has found to be needed. It sends nothing: a link that is
// lost here would leave the cycle between an intent and the next one.
func (c *contents) want(wanted []content, needed map[contentKey]bool) {
	c.wanted, c.needed, c.tried = wanted, needed, map[contentKey]bool{}
	for key := range c.attempts {
		if !needed[key] {
			delete(c.attempts, key)
		}
	}
	notify(c.wake)
}

// dropUnneeded drops the contents that no file needs any more.
func (c *contents) dropUnneeded() error {
	if c.needed == nil {
		return nil
	}
	for key := range c.begun {
		if !c.needed[key] {
			from, to := c.sides(key)
			delete(c.begun, key)
			if err := errors.Join(from.End([]byte(key.digest)), to.End([]byte(key.digest))); err != nil {
				return err
			}
		}
	}
	unneeded := map[bool]bool{true: !c.isSwept, false: !c.isSwept}
	for key := range c.staged {
		if !c.needed[key] {
			delete(c.staged, key)
			unneeded[key.toContainer] = true
		}
	}
	for toContainer, isAny := range unneeded {
		if !isAny {
			continue
		}
		_, to := c.sides(contentKey{toContainer: toContainer})
		if err := to.Keep(digestsFor(toContainer, c.needed)); err != nil {
			return err
		}
	}
	c.isSwept = true
	return nil
}

func digestsFor(toContainer bool, keys map[contentKey]bool) (digests [][]byte) {
	for key := range keys {
		if key.toContainer == toContainer {
			digests = append(digests, []byte(key.digest))
		}
	}
	return digests
}

// leaveOutLarge removes from a plan the files whose contents are still on their way, and returns their paths. They stay as they
// are, and are in the plan of the next cycle again. A first sync leaves nothing out: the session waits for all of it.
func (c *cycle) leaveOutLarge(made *plan, seen views) (left []string) {
	if c.contents == nil {
		return nil
	}
	needed := map[contentKey]bool{}
	var wanted []content
	if c.base != nil {
		wanted = c.contents.find(made.there, true, seen.there.Content, needed)
		made.leaveOut(wanted)
		here := c.contents.find(made.here, false, seen.here.Content, needed)
		made.here = withoutFiles(made.here, here)
		wanted = append(wanted, here...)
	}
	for _, file := range wanted {
		left = append(left, file.path)
	}
	c.contents.want(wanted, needed)
	return left
}

// find returns the large files in changes whose contents are not staged yet. It adds all that changes need.
func (c *contents) find(changes []*core.Change, toContainer bool, target *core.Entry, needed map[contentKey]bool) (found []content) {
	from, _ := c.sides(contentKey{toContainer: toContainer})
	var own map[string]bool
	paths, digests := core.TransitionDependencies(changes)
	for i, path := range paths {
		size := from.Size(path)
		if size == 0 {
			continue
		}
		key := contentKey{toContainer, string(digests[i])}
		needed[key] = true
		if own == nil && c.begun[key] == nil {
			own = digestsOf(target)
		}
		// What the other side has already, as of a file that was moved, is copied there.
		if !c.staged[key] && !own[key.digest] && !c.hasFailed(key) {
			found = append(found, content{key, path, size})
		}
	}
	return found
}

// hasFailed reports whether contents are not sent between cycles any more.
func (c *contents) hasFailed(key contentKey) bool {
	return c.attempts[key] >= maxAttempts && c.begun[key] == nil
}

func digestsOf(content *core.Entry) map[string]bool {
	digests := map[string]bool{}
	tree.Walk("", content, func(_ string, entry *core.Entry) {
		if entry.Kind == core.EntryKind_File {
			digests[string(entry.Digest)] = true
		}
	})
	return digests
}

// leaveOut removes files from the changes in the container, and what is planned for those that they replace.
func (p *plan) leaveOut(files []content) {
	if len(files) == 0 {
		return
	}
	paths := map[string]bool{}
	for _, file := range files {
		paths[file.path] = true
	}
	var copies, replaced []conflictCopy
	for _, loser := range p.copies {
		if paths[loser.winner.Path] {
			p.dropConflict(loser)
		} else {
			copies = append(copies, loser)
		}
	}
	for _, loser := range p.replaced {
		if !paths[loser.winner.Path] {
			replaced = append(replaced, loser)
		}
	}
	p.copies, p.replaced, p.there = copies, replaced, withoutFiles(p.there, files)
}

// withoutFiles returns changes that leave out files: those of the files themselves, and the files in new folders.
func withoutFiles(changes []*core.Change, files []content) []*core.Change {
	if len(files) == 0 {
		return changes
	}
	left := map[string][]*core.Change{}
	for _, change := range changes {
		left[change.Path] = nil
	}
	for _, file := range files {
		if path, has := tree.Nearest(file.path, left); has {
			inside := strings.TrimPrefix(strings.TrimPrefix(file.path, path), "/")
			left[path] = append(left[path], &core.Change{Path: inside})
		}
	}
	var kept []*core.Change
	for _, change := range changes {
		if len(left[change.Path]) == 0 {
			kept = append(kept, change)
		} else if left[change.Path][0].Path != "" {
			kept = append(kept, without(change, left[change.Path]))
		}
	}
	return kept
}

func without(change *core.Change, left []*core.Change) *core.Change {
	content, err := tree.Apply(change.New, left)
	if err != nil {
		return change
	}
	return &core.Change{Path: change.Path, Old: change.Old, New: content}
}

// used are the staged contents that a plan takes. Its Transition forgets them, whether it fails or not.
func (c *contents) used(changes []*core.Change, toContainer bool) {
	if c == nil || len(c.staged) == 0 {
		return
	}
	_, digests := core.TransitionDependencies(changes)
	for _, digest := range digests {
		delete(c.staged, contentKey{toContainer, string(digest)})
	}
}
