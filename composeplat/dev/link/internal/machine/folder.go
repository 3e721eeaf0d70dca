package machine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/tree"
	"composeplat/link/internal/wire"
)

// A folder is synced over whichever link there is.
type folder struct {
	number   int
	config   FolderConfig
	state    string
	events   *Events
	problems problems
	place    beneath.Place
	local    *tree.Tree
	// hasExceptions means that an ignored folder may contain files that are not ignored.
	hasExceptions bool

	base   *base
	intent *intent
	// recovered is an intent that was interrupted, until the next base is saved, and half the paths that it left without a mode.
	recovered *intent
	half      half
	// partial has the files that an interrupted first sync has brought to both sides.
	partial     *core.Entry
	saved       time.Time
	halted      bool
	conflicts   map[conflict]*problemState
	refused     map[refusal]string
	quickCycles int
	flushes     chan chan struct{}
}

type refusal struct {
	side, path string
	mode       uint32
}

func newFolder(number int, config FolderConfig, state string, events *Events) (*folder, error) {
	place, err := beneath.Find(config.Local, config.Within)
	if err != nil {
		return nil, err
	}
	if err := prepare(place); err != nil {
		return nil, fmt.Errorf("can't sync %s: %w", config.Local, err)
	}
	// Not in the folder itself, where editors, file watchers and version control would see staged files. If the state is on
	// another filesystem, the engine copies next to the file first, and renames then.
	staging, err := beneath.Find(filepath.Join(state, "staging", recordName("folder", config)), state)
	if err != nil {
		return nil, err
	}
	local, err := tree.NewTree(place, config.Ignores, staging, loadCache(state, config))
	if err != nil {
		return nil, err
	}
	local.ProbeModes()
	excepts := slices.ContainsFunc(config.Ignores, func(pattern string) bool {
		return strings.HasPrefix(strings.TrimSpace(pattern), "!")
	})
	return &folder{
		hasExceptions: excepts, number: number, config: config, state: state, events: events, place: place, local: local,
		problems: problems{events: events, folder: number}, flushes: make(chan chan struct{}),
		conflicts: map[conflict]*problemState{}, refused: map[refusal]string{},
	}, nil
}

// prepare creates the folder of a place, and checks that no link leads to it.
func prepare(place beneath.Place) error {
	if err := place.Make(0o777); err != nil {
		return err
	}
	root, err := place.Open()
	if err != nil {
		return err
	}
	return root.Close()
}

func (f *folder) close() {
	_ = saveCache(f.state, f.config, f.local.Cache())
	f.local.Close()
}

// run syncs until the link is lost. It calls ready once: when both sides have been in sync, or can't be. If the link is
// lost before, ready is not called.
func (f *folder) run(ctx context.Context, link *wire.Link, welcome wire.Welcome, ready func()) error {
	signalReady := sync.OnceFunc(ready)
	stream, err := openStream(ctx, link, "tree", wire.Folder{Root: f.config.Remote, Ignores: f.config.Ignores})
	if err != nil {
		return err
	}
	var reply wire.AttachReply
	if err := wire.Receive(stream, &reply); err != nil {
		stream.Close()
		return err
	}
	if reply.Error != "" {
		stream.Close()
		f.problems.emit("problem", problem{"container", "", reply.Error})
		signalReady()
		return f.idle(ctx, link)
	}
	remote, err := tree.NewRemote(stream, f.config.Ignores)
	if err != nil {
		stream.Close()
		return err
	}
	if f.base == nil || f.base.head.Volume != welcome.Volume {
		f.base = loadBase(f.state, f.config, welcome.Volume)
		f.intent = loadIntent(f.state, f.config, welcome.Volume)
		f.recovered, f.partial, f.half = nil, nil, half{}
	}
	c := &cycle{folder: f, remote: remote, welcome: welcome, isFirstCycle: true, contents: newContents(f.local, remote, f.emit)}
	lost, end := c.contents.start(ctx)
	defer func() {
		remote.Close()
		end()
	}()
	full, verified := true, verification{verifyInterval, time.Now()}
	var flushed chan struct{}
	seen := func() {
		if flushed != nil {
			close(flushed)
			flushed = nil
		}
	}
	defer seen()
	for !f.halted {
		c.contents.lock.Lock()
		wait, err := c.run(ctx, full)
		c.contents.lock.Unlock()
		if err != nil {
			return err
		}
		if wait == verifyInterval {
			signalReady()
			seen()
		}
		timer := time.NewTimer(verified.limit(wait, time.Now()))
		full = false
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-link.Closed():
			timer.Stop()
			return link.Err()
		case <-f.local.Changed():
		case <-remote.Changed():
		case <-c.contents.arrived:
		case err := <-lost:
			timer.Stop()
			return err
		case flushed = <-f.flushes:
			full = true
		case <-timer.C:
		}
		timer.Stop()
		full = verified.isDue(time.Now()) || full
	}
	signalReady()
	seen()
	return f.idle(ctx, link)
}

// idle waits until the link is lost, for a folder that is not synced.
func (f *folder) idle(ctx context.Context, link *wire.Link) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-link.Closed():
			return link.Err()
		case flushed := <-f.flushes:
			close(flushed)
		}
	}
}

// emit reports an event of the folder.
func (f *folder) emit(kind string, fields Event) {
	fields["folder"] = f.number
	f.events.Emit(kind, fields)
}

// flush waits for a cycle with a full scan.
func (f *folder) flush(ctx context.Context) { requestFlush(ctx, f.flushes) }

// requestFlush asks for a flush, and waits until it is done.
func requestFlush(ctx context.Context, flushes chan<- chan struct{}) {
	done := make(chan struct{})
	select {
	case flushes <- done:
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}
