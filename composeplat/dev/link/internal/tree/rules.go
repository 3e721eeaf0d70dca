package tree

import (
	"maps"
	"path"
	"strings"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/core/ignore"
)

const (
	// LeadsOut is said of a link that is not carried.
	LeadsOut = "it is a link that leads outside the synced folder, and is not carried"
	// leadsToGit is said of a link to what version control runs programs from.
	leadsToGit = "it is a link into .git, and is not carried"
	// winds is said of a link whose end depends on other links.
	winds = "it is a link whose target goes up after it went down, and is not carried: write its target without that"
	// maxTarget is the longest target that each system takes.
	maxTarget = 247
)

// whyNotCarried tells why a link is not carried, or nothing. Its target may climb only at its start, as often as there are
// folders above it: then all that follows lies below a real folder of the tree, whatever else becomes a link later.
func whyNotCarried(name, target string) string {
	if target == "" || len(target) > maxTarget || strings.HasPrefix(target, "/") || strings.ContainsAny(target, "\x00\\:") {
		return LeadsOut
	}
	up, down := 0, false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			down = true
			if strings.EqualFold(part, ".git") {
				return leadsToGit
			}
		case down:
			return winds
		default:
			up++
		}
	}
	if up > strings.Count(name, "/") {
		return LeadsOut
	}
	return ""
}

// rules decide what of a tree is synced, on either side alike.
type rules struct {
	ignorer ignore.Ignorer
	cache   map[ignore.IgnoreCacheKey]ignore.IgnoreCacheValue
}

func newRules(ignores []string) (*rules, error) {
	ignorer, err := NewIgnorer(ignores)
	return &rules{ignorer, map[ignore.IgnoreCacheKey]ignore.IgnoreCacheValue{}}, err
}

// maxCached bounds what is remembered of paths: the other end names them.
const maxCached = 1 << 20

func (r *rules) of(name string, folder bool) (status ignore.IgnoreStatus, inside bool) {
	key := ignore.IgnoreCacheKey{Path: name, Directory: folder}
	known, found := r.cache[key]
	if !found {
		known.Status, known.ContinueTraversal = r.ignorer.Ignore(name, folder)
		if len(r.cache) < maxCached {
			r.cache[key] = known
		}
	}
	return known.Status, known.ContinueTraversal
}

// restrict applies the rules to what the other end says is at a path, as if it had been found here: what is ignored is not
// tracked, whatever it was called there.
func (r *rules) restrict(name string, entry *core.Entry) *core.Entry {
	if entry == nil {
		return nil
	}
	masked := false
	for at := range len(name) {
		if name[at] == '/' {
			above, ended := r.step(name[:at], true, masked)
			if ended {
				return untracked()
			}
			masked = above
		}
	}
	if name == "" {
		return r.folder(name, entry, false)
	}
	return r.entry(name, entry, masked)
}

func untracked() *core.Entry { return &core.Entry{Kind: core.EntryKind_Untracked} }

func isFolder(entry *core.Entry) bool {
	return entry.Kind == core.EntryKind_Directory || entry.Kind == core.EntryKind_PhantomDirectory
}

// step says whether what is at a path lies under an ignored folder, and whether nothing below is to be looked at.
func (r *rules) step(name string, folder, masked bool) (below, ended bool) {
	status, inside := r.of(name, folder)
	switch status {
	case ignore.IgnoreStatusIgnored:
		return true, !inside
	case ignore.IgnoreStatusUnignored:
		return false, false
	}
	return masked, masked && !inside
}

func (r *rules) entry(name string, entry *core.Entry, masked bool) *core.Entry {
	switch entry.Kind {
	case core.EntryKind_Untracked, core.EntryKind_Problematic:
		return shortened(entry)
	}
	masked, ended := r.step(name, isFolder(entry), masked)
	switch {
	case ended:
		return untracked()
	case isFolder(entry):
		return r.folder(name, entry, masked)
	case entry.Kind == core.EntryKind_SymbolicLink:
		return checkedLink(name, entry)
	}
	return entry
}

func (r *rules) folder(name string, entry *core.Entry, masked bool) *core.Entry {
	if !isFolder(entry) {
		return entry
	}
	result := &core.Entry{Kind: core.EntryKind_Directory}
	if masked {
		result.Kind = core.EntryKind_PhantomDirectory
	}
	for child, inside := range entry.Contents {
		if strings.HasPrefix(child, Temporary) || strings.ContainsRune(child, 0) {
			continue
		}
		if result.Contents == nil {
			result.Contents = make(map[string]*core.Entry, len(entry.Contents))
		}
		result.Contents[child] = r.entry(Join(name, child), inside, masked)
	}
	return result
}

// maxReason is as much as is told of a problem.
const maxReason = 300

func shortened(entry *core.Entry) *core.Entry {
	if len(entry.Problem) <= maxReason {
		return entry
	}
	return &core.Entry{Kind: entry.Kind, Problem: strings.ToValidUTF8(entry.Problem[:maxReason], "")}
}

func checkedLink(name string, entry *core.Entry) *core.Entry {
	if why := whyNotCarried(name, entry.Target); why != "" {
		return &core.Entry{Kind: core.EntryKind_Problematic, Problem: why}
	}
	return entry
}

// checkedLinks is a tree in which the links that are not carried are problems. What has none is the very same.
func checkedLinks(name string, entry *core.Entry) *core.Entry {
	if entry == nil || entry.Kind == core.EntryKind_SymbolicLink {
		return checkedOrNothing(name, entry)
	}
	result := entry
	for child, inside := range entry.Contents {
		checked := checkedLinks(Join(name, child), inside)
		if checked == inside {
			continue
		}
		if result == entry {
			result = &core.Entry{Kind: entry.Kind, Contents: maps.Clone(entry.Contents)}
		}
		result.Contents[child] = checked
	}
	return result
}

func checkedOrNothing(name string, entry *core.Entry) *core.Entry {
	if entry == nil {
		return nil
	}
	return checkedLink(name, entry)
}

// staying is a change's new entry without the links that would lead out of the folder as it is on the disk now, through
// another link there, and the paths of these.
func (t *Tree) staying(name string, entry *core.Entry) (kept *core.Entry, out []string) {
	if entry == nil {
		return nil, nil
	}
	if entry.Kind == core.EntryKind_SymbolicLink {
		folder := strings.TrimPrefix(path.Dir("/"+name), "/")
		if whyNotCarried(name, entry.Target) != "" || !t.root.StaysInside(folder, entry.Target) {
			return nil, []string{name}
		}
		return entry, nil
	}
	kept = entry
	for child, inside := range entry.Contents {
		stays, leaving := t.staying(Join(name, child), inside)
		out = append(out, leaving...)
		if stays == inside {
			continue
		}
		if kept == entry {
			kept = &core.Entry{Kind: entry.Kind, Contents: maps.Clone(entry.Contents)}
		}
		delete(kept.Contents, child)
		if stays != nil {
			kept.Contents[child] = stays
		}
	}
	return kept, out
}
