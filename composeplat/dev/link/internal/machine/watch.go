package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/core/ignore"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/tree"
)

// WatchConfig is the configuration file of `platform-link watch`: folders of this machine, whose changes are reported.
type WatchConfig struct {
	State   string              `json:"state"`
	Folders []WatchFolderConfig `json:"folders"`
}

type WatchFolderConfig struct {
	Local string `json:"local"`
	// Within is the folder below which no symbolic link in Local is followed; if empty, the whole path is trusted.
	Within  string   `json:"within"`
	Ignores []string `json:"ignores"`
	// Includes are the patterns of the files that are reported; without one, all are.
	Includes []string `json:"includes"`
	// Lists means that the first event names all files.
	Lists bool `json:"lists"`
}

// kindChanged is an event for the parent process alone, which reports what it does about it.
const kindChanged = "changed"

// retryInterval is how long a folder that can't be read is left alone.
const retryInterval = time.Second

// Watch reports what changes in folders, until its standard input ends, and whether their files have permissions. It
// changes nothing, but for the file by which that is found out where the file system is not known.
func Watch(path string, input io.Reader, events *Events) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var config WatchConfig
	if err := json.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, input)
		cancel()
	}()
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for number, folder := range config.Folders {
		watched, err := newWatchedFolder(number, folder, config.State, events)
		if err != nil {
			return err
		}
		all.Go(func() { watched.run(ctx) })
	}
	<-ctx.Done()
	return nil
}

// A watchedFolder compares each scan with the one before.
type watchedFolder struct {
	config   WatchFolderConfig
	number   int
	events   *Events
	problems problems
	tree     *tree.Tree
	verified verification
	includes ignore.Ignorer
	last     *tree.View
	// unread are the entries that can't be read now, as they were before.
	unread  map[string]*core.Entry
	failure string
}

func newWatchedFolder(number int, config WatchFolderConfig, state string, events *Events) (*watchedFolder, error) {
	place, err := beneath.Find(config.Local, config.Within)
	if err != nil {
		return nil, fmt.Errorf("can't watch %s: %w", config.Local, err)
	}
	// Nothing is staged: what changes here is only read.
	staging, err := beneath.Find(filepath.Join(state, "staging"), state)
	if err != nil {
		return nil, err
	}
	watched, err := tree.NewTree(place, config.Ignores, staging, nil)
	if err != nil {
		return nil, fmt.Errorf("can't watch %s: %w", config.Local, err)
	}
	includes, err := tree.NewIgnorer(config.Includes)
	return &watchedFolder{
		config: config, number: number, events: events, tree: watched, includes: includes,
		verified: verification{interval: verifyInterval},
		problems: problems{events: events, folder: number}, unread: map[string]*core.Entry{},
	}, err
}

func (w *watchedFolder) run(ctx context.Context) {
	defer w.tree.Close()
	for {
		wait := verifyInterval
		if w.observe(ctx, w.verified.isDue(time.Now())) {
			wait = retryInterval
		}
		timer := time.NewTimer(w.verified.limit(wait, time.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-w.tree.Changed():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// observe scans the folder, all of it if full, and reports what changed. It returns whether it should be asked again soon.
func (w *watchedFolder) observe(ctx context.Context, full bool) (again bool) {
	if w.last == nil {
		w.tree.ProbeModes()
	}
	view, err := w.tree.Scan(ctx, full)
	if err == nil && view.Content == nil {
		// Nothing is deleted in a container because a folder is moved away for a moment.
		err = fs.ErrNotExist
	}
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		w.fail(err)
		return true
	}
	w.failure = ""
	var found []problem
	if why := w.tree.WatchError(); why != "" {
		found = append(found, problem{"local", "", why})
	}
	tree.Walk("", view.Content, func(name string, entry *core.Entry) {
		if entry.Kind == core.EntryKind_Problematic {
			found = append(found, problem{"local", name, entry.Problem})
		}
	})
	again = w.problems.observe(found)
	if view != w.last {
		w.report(view)
	}
	return again
}

func (w *watchedFolder) fail(err error) {
	reason := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		reason = "the folder does not exist"
	}
	if reason != w.failure {
		w.failure = reason
		w.problems.emit("problem", problem{"local", "", reason})
	}
}

func (w *watchedFolder) report(view *tree.View) {
	found := comparison{folder: w, before: w.last, after: view, Changed: []string{}, Deleted: []string{}}
	isFirst := w.last == nil
	if isFirst {
		found.before = &tree.View{}
	}
	w.last = view
	if !isFirst || w.config.Lists {
		found.compare("", found.before.Content, view.Content)
	}
	slices.Sort(found.Changed)
	slices.Sort(found.Deleted)
	if isFirst || len(found.Changed)+len(found.Deleted) > 0 {
		w.events.Emit(kindChanged, Event{
			"folder": w.number, "first": isFirst, "changed": found.Changed, "deleted": found.Deleted,
			"modes": w.tree.HasModes(),
		})
	}
}

// A comparison finds the paths that differ between two scans: files and links, new folders that are empty, and deleted folders,
// whose paths end in a slash.
type comparison struct {
	folder           *watchedFolder
	before, after    *tree.View
	Changed, Deleted []string
}

func (d *comparison) compare(name string, before, after *core.Entry) {
	if isProblem(before) {
		before = d.folder.unread[name]
		delete(d.folder.unread, name)
	}
	if isProblem(after) {
		// It is there, and can't be read: it is reported as a problem, and compared with its earlier state when it can be, or is gone.
		if before != nil {
			d.folder.unread[name] = before
		}
		return
	}
	wasFolder, isFolder := isRealFolder(before), isRealFolder(after)
	if !isFolder && !isShown(after) {
		if isShown(before) && d.folder.isIncluded(name, false) {
			d.Deleted = append(d.Deleted, name)
		}
	} else if !isFolder && !d.isSame(name, before, after) && d.folder.isIncluded(name, false) {
		d.Changed = append(d.Changed, name)
	}
	if isFolder && isShown(before) && d.folder.isIncluded(name, false) {
		d.Deleted = append(d.Deleted, name)
	}
	if before != nil && before.Kind == core.EntryKind_Directory && !isFolder && d.folder.isIncluded(name, true) {
		d.Deleted = append(d.Deleted, name+"/")
	}
	if isFolder && !wasFolder && name != "" && len(after.Contents) == 0 && d.folder.isIncluded(name, true) {
		d.Changed = append(d.Changed, name)
	}
	var old, now map[string]*core.Entry
	if wasFolder {
		old = before.Contents
	}
	if isFolder {
		now = after.Contents
	}
	for child, entry := range now {
		d.compare(tree.Join(name, child), old[child], entry)
	}
	for child, entry := range old {
		if now[child] == nil {
			d.compare(tree.Join(name, child), entry, nil)
		}
	}
}

func (d *comparison) isSame(name string, before, after *core.Entry) bool {
	return before != nil && before.Kind == after.Kind && before.Target == after.Target &&
		bytes.Equal(before.Digest, after.Digest) && modeIn(d.before, name) == modeIn(d.after, name)
}

func modeIn(view *tree.View, name string) uint32 {
	mode, _ := view.Modes.Get(name)
	return mode
}

func isProblem(entry *core.Entry) bool {
	return entry != nil && entry.Kind == core.EntryKind_Problematic
}

func isRealFolder(entry *core.Entry) bool {
	return entry != nil && (entry.Kind == core.EntryKind_Directory || entry.Kind == core.EntryKind_PhantomDirectory)
}

// isShown reports whether an entry is a file or a link, and not ignored.
func isShown(entry *core.Entry) bool {
	return entry != nil && (entry.Kind == core.EntryKind_File || entry.Kind == core.EntryKind_SymbolicLink)
}

// isIncluded reports whether a path, or a folder that contains it, matches a pattern.
func (w *watchedFolder) isIncluded(name string, folder bool) bool {
	if len(w.config.Includes) == 0 {
		return true
	}
	for at := range len(name) {
		if name[at] == '/' && w.matches(name[:at], true) {
			return true
		}
	}
	return w.matches(name, folder)
}

func (w *watchedFolder) matches(name string, folder bool) bool {
	status, _ := w.includes.Ignore(strings.TrimSuffix(name, "/"), folder)
	return status == ignore.IgnoreStatusIgnored
}
