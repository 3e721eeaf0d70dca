// Package tree is one synced folder on one side. It owns scanning and watching it, staging contents and changing it: a
// Tree does so for a folder on this machine, a Remote for the folder at the other end of a stream, which Serve answers.
//
// It must not know what the folder should hold: which side's change wins is decided by package machine alone.
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
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"composeplat/link/internal/beneath"
)

// TemporaryPrefix is the start of the names of the engine's own files, which are neither synced nor watched.
const TemporaryPrefix = filesystem.TemporaryNamePrefix

// A View is the result of a scan. It must not be modified.
type View struct {
	Content *core.Entry
	Modes   Modes
	Files   uint64
	Bytes   uint64
	// Number is the view's own. If Since is not 0, Changed are the paths that differ from the view of that number, in their
	// mode, or with everything in them.
	Number, Since uint64
	Changed       []string
}

// Side is a folder at either end. Its methods are called one after another; Changed and Trouble at any time.
type Side interface {
	// Scan reads what may have changed since the last scan, or everything if full.
	Scan(ctx context.Context, full bool) (*View, error)
	// Stage prepares contents for Transition, and returns the paths whose contents must be supplied to the receiver.
	Stage(paths []string, digests [][]byte) ([]string, []*rsync.Signature, rsync.Receiver, error)
	// StageCopies prepares contents that the folder itself holds, and returns for each path whether it does.
	StageCopies(paths []string, digests [][]byte) ([]bool, error)
	Supply(paths []string, signatures []*rsync.Signature, receiver rsync.Receiver) error
	Transition(ctx context.Context, changes []*core.Change, with Additions) (*Outcome, error)
	SetModes(modes map[string]uint32) (refused map[string]string, err error)
	// HasModes reports whether the last view has permissions: some file systems keep none.
	HasModes() bool
	// Size returns the size of a file of the last view if it is large, and 0 otherwise.
	Size(path string) uint64
	// Receive begins to stage the contents of a file with a digest. It returns the signature of the file at the path, or nil if
	// the contents are staged already.
	Receive(path string, digest []byte) (*rsync.Signature, error)
	// Put stages the next piece, and returns whether the contents are complete and have the digest.
	Put(digest []byte, piece *Piece) (staged bool, err error)
	// Open begins to read the contents of a file, for a side with the signature.
	Open(path string, digest []byte, signature *rsync.Signature) error
	// Next returns the next piece, of about so many bytes.
	Next(digest []byte, bytes int) (*Piece, error)
	// End ends what Receive or Open has begun.
	End(digest []byte) error
	// Keep removes contents that Put has staged, but for those with the digests.
	Keep(digests [][]byte) error
	Changed() <-chan struct{}
	// WatchError is the reason why the folder can't be watched, or empty.
	WatchError() string
	Close() error
}

// Additions go with the changes of a Transition, so that a small change takes one request.
type Additions struct {
	// Contents are those of files, by path. Without them, contents are staged before.
	Contents map[string][]byte `json:"contents,omitempty"`
	// Modes are set for what the changes have made, by path.
	Modes map[string]uint32 `json:"modes,omitempty"`
	// After are the paths of changes that are made only if that of another path was: a file is copied before it is replaced.
	After map[string]string `json:"after,omitempty"`
}

// An Outcome is the result of a Transition: one entry for each change.
type Outcome struct {
	Results  []*core.Entry
	Problems []*core.Problem
	Missing  bool
	// Refused are the reasons why modes could not be set, by path.
	Refused map[string]string
}

// ErrLost means that the other end can't be asked any more.
var ErrLost = errors.New("the connection to the container is lost")

// Tree is a Side on this machine.
type Tree struct {
	place beneath.Place
	// root is the folder that the last scan found at the place: Stage and Transition work in that very folder.
	root    *beneath.Folder
	ignorer ignore.Ignorer
	staging *stagingArea
	watch   *Watch

	lock        sync.Mutex
	hasher      hash.Hash
	cache       *core.Cache
	ignoreCache ignore.IgnoreCache
	snapshot    *core.Snapshot
	view        *View
	recheck     map[string]bool
	racy        []string
	full        bool
	// withoutModes means that the file system keeps no permissions.
	withoutModes bool
	// incoming and outgoing are contents of large files that are written and read, by their digest.
	incoming map[string]*incoming
	outgoing map[string]*outgoing
	// anyNames means that a file system without permissions takes all names, as the mounts of containers do.
	anyNames bool
}

// NewTree watches the folder of a place. Staging should be on the same filesystem, so that files can be renamed.
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
		staging: newStagingArea(staging),
		watch:   NewWatch(place, watched),
		hasher:  sha256.New(),
		cache:   cache,
		recheck: map[string]bool{},
		full:    true,

		incoming: map[string]*incoming{},
		outgoing: map[string]*outgoing{},
	}, nil
}

// NewIgnorer parses patterns in the syntax of .dockerignore files, without empty lines and comments.
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
func (t *Tree) WatchError() string       { return t.watch.Error() }

// Close stops watching and closes the folder. The Tree must not be used afterwards.
func (t *Tree) Close() error {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.endAll()
	t.staging.end()
	if t.root != nil {
		t.root.Close()
		t.root = nil
	}
	return t.watch.Close()
}

// Cache returns the digests by timestamp, with which the next Tree of this folder can start.
func (t *Tree) Cache() *core.Cache {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.forgetRacy()
	return t.cache
}

func (t *Tree) Scan(ctx context.Context, full bool) (*View, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	touched, all := t.watch.TakeTouched()
	for path := range touched {
		t.recheck[path] = true
	}
	t.full = t.full || all || full
	t.forgetRacy()
	if err := t.openRoot(); err != nil {
		t.full = true
		return nil, err
	}
	if !t.full && t.snapshot != nil && len(t.recheck) == 0 {
		return t.view, nil
	}
	began := time.Now()
	scan := t.scanWide
	if t.canBeNarrow() {
		scan = t.scanNarrow
	}
	read, err := scan(ctx)
	if err != nil {
		t.full = true
		return nil, err
	}
	t.full, t.recheck = false, map[string]bool{}
	ended := time.Now()
	for path, entry := range read.Entries {
		stamp := entry.ModificationTime.AsTime()
		if stamp.After(began.Add(-beneath.Granularity(stamp))) && stamp.Before(ended.Add(beneath.ClockGranularity)) {
			t.racy = append(t.racy, path)
		}
	}
	return t.view, nil
}

// scanWide walks the whole tree: everything is read if t.full, else the recheck paths. It returns all digests.
func (t *Tree) scanWide(ctx context.Context) (*core.Cache, error) {
	var baseline *core.Snapshot
	if !t.full {
		baseline = t.snapshot
	}
	snapshot, cache, ignored, err := t.scanRoot(ctx, baseline, t.cache, t.ignoreCache)
	if err != nil {
		return nil, err
	}
	if t.withoutModes {
		clearExecutable(snapshot.Content)
	}
	t.snapshot, t.cache, t.ignoreCache = snapshot, cache, ignored
	// Callers take the same pointer as before to mean that nothing has changed.
	modes := t.modes()
	content := checkLinks("", snapshot.Content, nil, nil)
	if t.view == nil || !content.Equal(t.view.Content, true) || !modes.Equal(t.view.Modes) {
		t.view = newView(content, modes, snapshot.Files, snapshot.TotalFileSize)
	}
	return cache, nil
}

// openRoot opens the folder at the place. If it is another one than before, the next scan is a full one.
func (t *Tree) openRoot() error {
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

// scanRoot scans the folder by its descriptor. A folder that does not exist has no content, which is not an empty one.
func (t *Tree) scanRoot(ctx context.Context, baseline *core.Snapshot, cache *core.Cache, ignores ignore.IgnoreCache) (
	*core.Snapshot, *core.Cache, ignore.IgnoreCache, error,
) {
	if t.root == nil {
		return &core.Snapshot{}, &core.Cache{}, nil, nil
	}
	return core.Scan(ctx, t.root.Path(), baseline, t.recheck, t.hasher, cache, t.ignorer, ignores,
		behavior.ProbeMode_ProbeModeAssume, core.SymbolicLinkMode_SymbolicLinkModePortable,
		core.PermissionsMode_PermissionsModePortable)
}

// errNoParent means that a change is in a folder that does not exist.
var errNoParent = errors.New("a change in a folder that does not exist")

// errNoFolder is returned when there is no folder to work in.
var errNoFolder = errors.New("the folder does not exist")

// forgetRacy makes the next scan read those files again whose timestamps prove nothing.
func (t *Tree) forgetRacy() {
	for _, name := range t.racy {
		if entry := t.cache.Entries[name]; entry != nil {
			blurred := proto.Clone(entry).(*core.CacheEntry)
			blurred.ModificationTime = &timestamppb.Timestamp{}
			t.cache.Entries[name] = blurred
			t.recheck[parentPath(name)] = true
		}
	}
	t.racy = nil
}

func parentPath(name string) string {
	if folder := path.Dir(name); folder != "." {
		return folder
	}
	return ""
}

// Nearest returns a path if it is one of paths, and else the nearest folder above it that is.
func Nearest[V any](name string, paths map[string]V) (nearest string, has bool) {
	for {
		if _, has := paths[name]; has || name == "" {
			return name, has
		}
		name = parentPath(name)
	}
}

func (t *Tree) modes() Modes {
	if t.withoutModes {
		return Modes{}
	}
	modes := make(map[string]uint32, len(t.cache.Entries)+len(t.cache.Entries)/8)
	for name, entry := range t.cache.Entries {
		modes[name] = entry.Mode & 0o777
	}
	Walk("", t.snapshot.Content, func(name string, entry *core.Entry) {
		if name != "" && isFolder(entry) {
			if status, err := t.root.Stat(name); err == nil && status.Mode.IsDir() {
				modes[name] = uint32(status.Mode.Perm())
			}
		}
	})
	return Modes{}.with(modes, nil)
}

// Walk visits an entry and everything in it, folders before their contents.
func Walk(name string, entry *core.Entry, visit func(name string, entry *core.Entry)) {
	if entry == nil {
		return
	}
	visit(name, entry)
	for child, inside := range entry.Contents {
		Walk(Join(name, child), inside, visit)
	}
}

// Join returns the path of a name in a folder; the root's path is empty.
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
		return nil, nil, nil, errors.New("the numbers of paths and digests differ")
	}
	own, opener, err := t.beginStaging()
	if err != nil {
		return nil, nil, nil, err
	}
	defer opener.Close()
	var needed []string
	var signatures []*rsync.Signature
	engine := rsync.NewEngine()
	for i, path := range paths {
		if t.staging.contains(path, digests[i]) || t.stageCopy(path, digests[i], own, opener) {
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
	receiver, err := rsync.NewReceiver(t.root.Path(), needed, signatures, t.staging)
	return needed, signatures, receiver, err
}

func (t *Tree) StageCopies(paths []string, digests [][]byte) ([]bool, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if len(paths) != len(digests) {
		return nil, errors.New("the numbers of paths and digests differ")
	}
	own, opener, err := t.beginStaging()
	if err != nil {
		return nil, err
	}
	defer opener.Close()
	had := make([]bool, len(paths))
	for i, path := range paths {
		had[i] = t.stageCopy(path, digests[i], own, opener)
	}
	return had, nil
}

func (t *Tree) beginStaging() (*core.ReverseLookupMap, *filesystem.Opener, error) {
	if t.root == nil {
		return nil, nil, errNoFolder
	}
	own, err := t.cache.GenerateReverseLookupMap()
	if err != nil {
		return nil, nil, err
	}
	if err := t.staging.begin(); err != nil {
		return nil, nil, err
	}
	return own, filesystem.NewOpener(t.root.Path()), nil
}

func (t *Tree) stageCopy(path string, digest []byte, own *core.ReverseLookupMap, opener *filesystem.Opener) bool {
	source, found := own.Lookup(digest)
	if !found {
		return false
	}
	from, _, err := opener.OpenFile(source)
	if err != nil {
		return false
	}
	defer from.Close()
	to, err := t.staging.Sink(path)
	if err != nil {
		return false
	}
	_, err = io.Copy(to, from)
	if closed := to.Close(); err != nil || closed != nil {
		return false
	}
	return t.staging.contains(path, digest)
}

// maxSmall is how many bytes of contents go with the changes themselves: staging them would take longer.
const maxSmall = 256 << 10

// ReadSmall returns the contents of files, or nil if they are too many bytes or have changed since the last scan.
func (t *Tree) ReadSmall(paths []string) map[string][]byte {
	t.lock.Lock()
	defer t.lock.Unlock()
	total := uint64(0)
	for _, path := range paths {
		known := t.cache.Entries[path]
		if known == nil || known.Size > maxSmall {
			return nil
		}
		total += known.Size
	}
	if total > maxSmall || t.root == nil {
		return nil
	}
	opener := filesystem.NewOpener(t.root.Path())
	defer opener.Close()
	contents := make(map[string][]byte, len(paths))
	for _, path := range paths {
		content, err := readAll(opener, path, t.cache.Entries[path].Size)
		if err != nil {
			return nil
		}
		contents[path] = content
	}
	return contents
}

// errChanged means that a file has another size than in the last scan.
var errChanged = errors.New("the file has changed")

func readAll(opener *filesystem.Opener, path string, size uint64) ([]byte, error) {
	file, _, err := opener.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, int64(size)+1))
	if err == nil && uint64(len(content)) != size {
		err = errChanged
	}
	return content, err
}

func (t *Tree) Supply(paths []string, signatures []*rsync.Signature, receiver rsync.Receiver) error {
	if t.root == nil {
		return errNoFolder
	}
	return t.transmit(paths, signatures, receiver)
}

// Transition creates files with the fewest permissions; the modes of the additions, or SetModes, set them.
func (t *Tree) Transition(ctx context.Context, changes []*core.Change, with Additions) (*Outcome, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.snapshot == nil || t.root == nil {
		return nil, errNoFolder
	}
	if err := t.staging.add(with.Contents); err != nil {
		return nil, err
	}
	safe, refused := t.withoutRefused(changes)
	results, problems, missing, err := t.apply(ctx, safe, with.After)
	if err != nil {
		return nil, err
	}
	t.explainNames(problems)
	t.staging.explainMissing(problems)
	for _, change := range changes {
		t.recheck[change.Path] = true
		t.recheck[parentPath(change.Path)] = true
	}
	if _, digests := core.TransitionDependencies(changes); len(digests) > 0 {
		t.staging.forget(digests)
	}
	t.staging.endTransition()
	outcome := &Outcome{Results: results, Problems: append(problems, refused...), Missing: missing}
	outcome.Refused = t.setModes(ModesOfMade(with.Modes, changes, results))
	t.flush(changes, results)
	return outcome, nil
}

// ModesOfMade returns the modes of what changes have made as they should.
func ModesOfMade(modes map[string]uint32, changes []*core.Change, results []*core.Entry) map[string]uint32 {
	made := map[string]uint32{}
	for i, change := range changes {
		if !results[i].Equal(change.New, true) {
			continue
		}
		Walk(change.Path, results[i], func(path string, _ *core.Entry) {
			if mode, has := modes[path]; has {
				made[path] = mode
			}
		})
	}
	return made
}

// withoutRefused removes entries from changes that must not be created here, and returns a problem for each.
func (t *Tree) withoutRefused(changes []*core.Change) (safe []*core.Change, problems []*core.Problem) {
	for _, change := range changes {
		kept, refused := t.removeRefused(change.Path, change.New, change.Old == nil)
		problems = append(problems, refused...)
		if len(refused) > 0 {
			change = &core.Change{Path: change.Path, Old: change.Old, New: kept}
		}
		safe = append(safe, change)
	}
	return safe, problems
}

func (t *Tree) SetModes(modes map[string]uint32) (map[string]string, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.root == nil {
		return nil, errNoFolder
	}
	refused := t.setModes(modes)
	if names := slices.Sorted(maps.Keys(modes)); len(names) > 0 {
		t.root.Flush(names[len(names)-1], true)
	}
	return refused, nil
}

func (t *Tree) setModes(modes map[string]uint32) (refused map[string]string) {
	refused = map[string]string{}
	if t.withoutModes {
		return refused
	}
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		if err := t.root.SetMode(name, modes[name]&0o777); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				refused[name] = err.Error()
			}
			continue
		}
		t.recheck[parentPath(name)] = true
		t.recheck[name] = true
	}
	return refused
}

// HaveSameContent reports whether both are files with the same contents.
func HaveSameContent(left, right *core.Entry) bool {
	return left != nil && right != nil && left.Kind == core.EntryKind_File && right.Kind == core.EntryKind_File &&
		bytes.Equal(left.Digest, right.Digest)
}
