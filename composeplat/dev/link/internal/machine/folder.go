package machine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/tree"
	"composeplat/link/internal/wire"
)

// A folder is synced over one link after another.
type folder struct {
	number   int
	config   FolderConfig
	state    string
	events   *Events
	problems problems
	place    beneath.Place
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
	place, err := beneath.Find(config.Local, config.Within)
	if err != nil {
		return nil, err
	}
	if err := prepare(place); err != nil {
		return nil, fmt.Errorf("can't sync %s: %w", config.Local, err)
	}
	// Staged beside the state and not in the folder: editors, file watchers and version control would see it there. Where
	// that is another filesystem, the engine copies beside the file first and renames then.
	staging, err := beneath.Find(filepath.Join(state, "staging", nameFor("folder", config)), state)
	if err != nil {
		return nil, err
	}
	local, err := tree.NewTree(place, config.Ignores, staging, loadCache(state, config))
	if err != nil {
		return nil, err
	}
	excepts := slices.ContainsFunc(config.Ignores, func(pattern string) bool {
		return strings.HasPrefix(strings.TrimSpace(pattern), "!")
	})
	return &folder{
		excepts: excepts, number: number, config: config, state: state, events: events, place: place, local: local,
		problems: problems{events: events, folder: number}, flushes: make(chan chan struct{}),
		conflicts: map[conflict]bool{}, refused: map[refusal]string{},
	}, nil
}

// prepare makes the folder of a place, and finds out whether it can be reached without links.
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

// run syncs until the link is lost. Ready is called once: when both sides have been the same, or can't be. What ends the
// link first is no reason to call it.
func (f *folder) run(ctx context.Context, link *wire.Link, welcome wire.Welcome, ready func()) error {
	settled := sync.OnceFunc(ready)
	stream, err := openStream(ctx, link, "tree", wire.Folder{Root: f.config.Remote, Ignores: f.config.Ignores})
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
	remote, err := tree.NewRemote(stream, f.config.Ignores)
	if err != nil {
		stream.Close()
		return err
	}
	defer remote.Close()
	if f.base == nil || f.base.head.Volume != welcome.Volume {
		f.base = loadBase(f.state, f.config, welcome.Volume)
		f.intent = loadIntent(f.state, f.config, welcome.Volume)
	}
	c := &cycle{folder: f, remote: remote, welcome: welcome, begun: true}
	full := true
	var flushed chan struct{}
	seen := func() {
		if flushed != nil {
			close(flushed)
			flushed = nil
		}
	}
	defer seen()
	for !f.halted {
		wait, err := c.turn(ctx, full)
		if err != nil {
			return err
		}
		if wait == verifying {
			settled()
			seen()
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
	seen()
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
