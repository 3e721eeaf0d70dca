// Package tree is one synced folder on one side: what is in it, what changes in it, and how it is changed. A Tree is the
// folder on this machine, a Remote the one at the other end of a stream. It does not know what should be in it.
package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutagen-io/mutagen/pkg/filesystem"
	"github.com/mutagen-io/mutagen/pkg/filesystem/behavior"
	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/core/ignore"
	"github.com/mutagen-io/mutagen/pkg/synchronization/core/ignore/docker"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"composeplat/link/internal/beneath"
)

// Temporary begins every name that the engine makes for its own use: never synced, never watched.
const Temporary = filesystem.TemporaryNamePrefix

// The kernel stamps files by a coarse clock: what was written this near a scan may change again under the same stamp.
const clockTick = 20 * time.Millisecond

// A View is what a scan has found. It must not be changed.
type View struct {
	Content *core.Entry
	Modes   map[string]uint32
	Files   uint64
	Bytes   uint64
}

// Side is a folder at either end. Its methods are called one after another; Changed and Trouble at any time.
type Side interface {
	// Scan looks at what may have changed, or, when full, at everything.
	Scan(ctx context.Context, full bool) (*View, error)
	// Stage prepares contents for Transition, and says which of them must be supplied to the receiver.
	Stage(paths []string, digests [][]byte) ([]string, []*rsync.Signature, rsync.Receiver, error)
	// Keep prepares contents that the folder itself has, and says which it had.
	Keep(paths []string, digests [][]byte) ([]bool, error)
	Supply(paths []string, signatures []*rsync.Signature, receiver rsync.Receiver) error
	Transition(ctx context.Context, changes []*core.Change) (*Outcome, error)
	SetModes(modes map[string]uint32) (refused map[string]string, err error)
	Changed() <-chan struct{}
	// Trouble is what hinders the watching, or nothing.
	Trouble() string
	Close() error
}

// An Outcome says what became of a transition: one result for each change.
type Outcome struct {
	Results  []*core.Entry
	Problems []*core.Problem
	Missing  bool
}

// ErrLost is why nothing more can be asked of a side.
var ErrLost = errors.New("the container is lost")

// Tree is a Side on this machine.
type Tree struct {
	place beneath.Place
	// root is what the place led to when it was last looked at; all that is done until then is done there.
	root    *beneath.Folder
	ignorer ignore.Ignorer
	store   *staged
	watch   *Watch

	lock    sync.Mutex
	hasher  hash.Hash
	cache   *core.Cache
	ignored ignore.IgnoreCache
	last    *core.Snapshot
	view    *View
	recheck map[string]bool
	racy    []string
	full    bool
}

// NewTree watches the folder of a place. Staging must be where files can be renamed from into it, for speed.
func NewTree(place beneath.Place, ignores []string, staging beneath.Place, cache *core.Cache) (*Tree, error) {
	ignorer, err := NewIgnorer(ignores)
	if err != nil {
		return nil, err
	}
	watched, err := NewIgnorer(ignores)
	if err != nil {
		return nil, err
	}
	if cache == nil {
		cache = &core.Cache{}
	}
	return &Tree{
		place:   place,
		ignorer: ignorer,
		store:   newStaged(staging),
		watch:   NewWatch(place, watched),
		hasher:  sha256.New(),
		cache:   cache,
		recheck: map[string]bool{},
		full:    true,
	}, nil
}

// NewIgnorer reads patterns in the syntax of .dockerignore files; empty lines and comments say nothing.
func NewIgnorer(ignores []string) (ignore.Ignorer, error) {
	var patterns []string
	for _, pattern := range ignores {
		if pattern = strings.TrimSpace(pattern); pattern == "" || strings.HasPrefix(pattern, "#") {
			continue
		}
		if _, err := docker.NewIgnorer([]string{pattern}); err != nil {
			return nil, fmt.Errorf("ignore pattern %q: %w", pattern, err)
		}
		patterns = append(patterns, pattern)
	}
	return docker.NewIgnorer(patterns)
}

func (t *Tree) Changed() <-chan struct{} { return t.watch.Changed() }
func (t *Tree) Trouble() string          { return t.watch.Trouble() }

// Close ends the watching and lets go of the folder. Nothing more may be asked of the Tree then.
func (t *Tree) Close() error {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.store.end()
	if t.root != nil {
		t.root.Close()
		t.root = nil
	}
	return t.watch.Close()
}

// Cache is what the next Tree of this folder can begin with.
func (t *Tree) Cache() *core.Cache {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.blur()
	return t.cache
}

func (t *Tree) Scan(ctx context.Context, full bool) (*View, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	touched, all := t.watch.Take()
	for path := range touched {
		t.recheck[path] = true
	}
	t.full = t.full || all || full
	t.blur()
	if err := t.enter(); err != nil {
		t.full = true
		return nil, err
	}
	var baseline *core.Snapshot
	if !t.full {
		baseline = t.last
		if baseline != nil && len(t.recheck) == 0 {
			return t.view, nil
		}
	}
	began := time.Now()
	snapshot, cache, ignored, err := t.look(ctx, baseline)
	if err != nil {
		t.full = true
		return nil, err
	}
	t.full = false
	t.recheck = map[string]bool{}
	t.last, t.cache, t.ignored = snapshot, cache, ignored
	// The same view as before tells the caller that nothing has changed.
	modes := t.modes()
	content := checkedLinks("", snapshot.Content)
	if t.view == nil || !content.Equal(t.view.Content, true) || !maps.Equal(modes, t.view.Modes) {
		t.view = &View{Content: content, Modes: modes, Files: snapshot.Files, Bytes: snapshot.TotalFileSize}
	}
	ended := time.Now()
	for path, entry := range cache.Entries {
		stamp := entry.ModificationTime.AsTime()
		if stamp.After(began.Add(-clockTick)) && stamp.Before(ended.Add(clockTick)) {
			t.racy = append(t.racy, path)
		}
	}
	return t.view, nil
}

// enter finds the folder of the place anew; where another one is there now, all of it is to be looked at.
func (t *Tree) enter() error {
	root, err := t.place.Open()
	if errors.Is(err, fs.ErrNotExist) {
		root, err = nil, nil
	}
	if err != nil {
		return err
	}
	if root != nil && t.root != nil && root.IsSame(t.root) {
		return root.Close()
	}
	if t.root != nil {
		t.root.Close()
	}
	t.root, t.full = root, true
	return nil
}

// look reads the folder by its descriptor. One that is not there has nothing in it, which is not to be empty.
func (t *Tree) look(ctx context.Context, baseline *core.Snapshot) (*core.Snapshot, *core.Cache, ignore.IgnoreCache, error) {
	if t.root == nil {
		return &core.Snapshot{}, &core.Cache{}, nil, nil
	}
	return core.Scan(ctx, t.root.Path(), baseline, t.recheck, t.hasher, t.cache, t.ignorer, t.ignored,
		behavior.ProbeMode_ProbeModeAssume, core.SymbolicLinkMode_SymbolicLinkModePortable,
		core.PermissionsMode_PermissionsModePortable)
}

// errGone is why nothing can be done in a folder.
var errGone = errors.New("the folder is not there")

// blur makes the next scan read again the files whose stamps prove nothing.
func (t *Tree) blur() {
	for _, name := range t.racy {
		if entry := t.cache.Entries[name]; entry != nil {
			blurred := proto.Clone(entry).(*core.CacheEntry)
			blurred.ModificationTime = &timestamppb.Timestamp{}
			t.cache.Entries[name] = blurred
			t.recheck[parentOf(name)] = true
		}
	}
	t.racy = nil
}

func parentOf(name string) string {
	if folder := path.Dir(name); folder != "." {
		return folder
	}
	return ""
}

func (t *Tree) modes() map[string]uint32 {
	modes := make(map[string]uint32, len(t.cache.Entries)+len(t.cache.Entries)/8)
	for name, entry := range t.cache.Entries {
		modes[name] = entry.Mode & 0o777
	}
	Walk("", t.last.Content, func(name string, entry *core.Entry) {
		if name != "" && entry.Kind == core.EntryKind_Directory {
			if status, err := t.root.Status(name); err == nil && status.Mode&unix.S_IFMT == unix.S_IFDIR {
				modes[name] = uint32(status.Mode) & 0o777
			}
		}
	})
	return modes
}

// Walk visits an entry and all that is in it, folders before what they hold.
func Walk(name string, entry *core.Entry, visit func(name string, entry *core.Entry)) {
	if entry == nil {
		return
	}
	visit(name, entry)
	for child, inside := range entry.Contents {
		Walk(Join(name, child), inside, visit)
	}
}

// Join puts a name after the path of its folder, of which the root's is empty.
func Join(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}

func (t *Tree) Stage(paths []string, digests [][]byte) ([]string, []*rsync.Signature, rsync.Receiver, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if len(paths) != len(digests) {
		return nil, nil, nil, errors.New("paths and digests are not as many")
	}
	own, opener, err := t.open()
	if err != nil {
		return nil, nil, nil, err
	}
	defer opener.Close()
	var needed []string
	var signatures []*rsync.Signature
	engine := rsync.NewEngine()
	for i, path := range paths {
		if t.store.contains(path, digests[i]) || t.keep(path, digests[i], own, opener) {
			continue
		}
		signature := &rsync.Signature{}
		if t.cache.Entries[path] != nil {
			if base, _, err := opener.OpenFile(path); err == nil {
				if signature, err = engine.Signature(base, 0); err != nil {
					signature = &rsync.Signature{}
				}
				base.Close()
			}
		}
		needed, signatures = append(needed, path), append(signatures, signature)
	}
	if len(needed) == 0 {
		return nil, nil, nil, nil
	}
	receiver, err := rsync.NewReceiver(t.root.Path(), needed, signatures, t.store)
	return needed, signatures, receiver, err
}

func (t *Tree) Keep(paths []string, digests [][]byte) ([]bool, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if len(paths) != len(digests) {
		return nil, errors.New("paths and digests are not as many")
	}
	own, opener, err := t.open()
	if err != nil {
		return nil, err
	}
	defer opener.Close()
	had := make([]bool, len(paths))
	for i, path := range paths {
		had[i] = t.keep(path, digests[i], own, opener)
	}
	return had, nil
}

func (t *Tree) open() (*core.ReverseLookupMap, *filesystem.Opener, error) {
	if t.root == nil {
		return nil, nil, errGone
	}
	own, err := t.cache.GenerateReverseLookupMap()
	if err != nil {
		return nil, nil, err
	}
	if err := t.store.begin(); err != nil {
		return nil, nil, err
	}
	return own, filesystem.NewOpener(t.root.Path()), nil
}

func (t *Tree) keep(path string, digest []byte, own *core.ReverseLookupMap, opener *filesystem.Opener) bool {
	source, found := own.Lookup(digest)
	if !found {
		return false
	}
	from, _, err := opener.OpenFile(source)
	if err != nil {
		return false
	}
	defer from.Close()
	to, err := t.store.Sink(path)
	if err != nil {
		return false
	}
	_, err = io.Copy(to, from)
	if closed := to.Close(); err != nil || closed != nil {
		return false
	}
	return t.store.contains(path, digest)
}

func (t *Tree) Supply(paths []string, signatures []*rsync.Signature, receiver rsync.Receiver) error {
	if t.root == nil {
		return errGone
	}
	return rsync.Transmit(t.root.Path(), paths, signatures, receiver)
}

// Transition makes files with the least of permissions: SetModes gives them theirs.
func (t *Tree) Transition(ctx context.Context, changes []*core.Change) (*Outcome, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.last == nil || t.root == nil {
		return nil, errGone
	}
	ownership, err := filesystem.NewOwnershipSpecification("", "")
	if err != nil {
		return nil, err
	}
	safe, refused := t.safe(changes)
	results, problems, missing := core.Transition(ctx, t.root.Path(), safe, t.cache,
		core.SymbolicLinkMode_SymbolicLinkModePortable, 0o600, 0o700, ownership, t.last.DecomposesUnicode, t.store)
	for _, change := range changes {
		t.recheck[change.Path] = true
		t.recheck[parentOf(change.Path)] = true
	}
	t.store.end()
	return &Outcome{Results: results, Problems: append(problems, refused...), Missing: missing}, nil
}

// safe leaves out of changes the links that would lead out of the folder, and says so of each.
func (t *Tree) safe(changes []*core.Change) (safe []*core.Change, problems []*core.Problem) {
	for _, change := range changes {
		kept, out := t.staying(change.Path, change.New)
		for _, name := range out {
			problems = append(problems, &core.Problem{Path: name, Error: LeadsOut})
		}
		if len(out) > 0 {
			change = &core.Change{Path: change.Path, Old: change.Old, New: kept}
		}
		safe = append(safe, change)
	}
	return safe, problems
}

func (t *Tree) SetModes(modes map[string]uint32) (map[string]string, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	refused := map[string]string{}
	if t.root == nil {
		return nil, errGone
	}
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		if err := t.root.SetMode(name, modes[name]&0o777); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				refused[name] = err.Error()
			}
			continue
		}
		t.recheck[parentOf(name)] = true
		t.recheck[name] = true
	}
	return refused, nil
}

// Same tells whether two files' contents are one.
func Same(one, other *core.Entry) bool {
	return one != nil && other != nil && one.Kind == core.EntryKind_File && other.Kind == core.EntryKind_File &&
		bytes.Equal(one.Digest, other.Digest)
}
