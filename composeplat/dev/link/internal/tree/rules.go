package tree

import (
	"maps"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/core/ignore"
)

const (
	// LinkLeadsOut is the problem of a link that leads out of the synced folder.
	LinkLeadsOut = "a link that leads outside the synced folder, which is not synced"
	// linkLeadsToGit is the problem of a link to files from which Git runs programs.
	linkLeadsToGit = "a link into .git, which is not synced"
	// linkClimbsLate is the problem of a link whose end depends on other links.
	linkClimbsLate = "a link with '..' after a folder's name, which is not synced: write its target without that"
	// linkIsNotUnicode is the problem of a link that can't be sent: messages have texts alone.
	linkIsNotUnicode = "a link whose target is not UTF-8, which is not synced"
	// maxTargetLength is the longest target that each system takes.
	maxTargetLength = 247
)

// checkTarget returns why a link is not synced, or nothing. A target may have ".." only at its start, once for each
// folder above the link: then the rest lies below a real folder of the tree, whatever else becomes a link later.
func checkTarget(name, target string) string {
	if target == "" || len(target) > maxTargetLength || strings.HasPrefix(target, "/") || strings.ContainsAny(target, "\x00\\:") {
		return LinkLeadsOut
	}
	if !utf8.ValidString(target) {
		return linkIsNotUnicode
	}
	up, down := 0, false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			down = true
			if strings.EqualFold(part, ".git") {
				return linkLeadsToGit
			}
		case down:
			return linkClimbsLate
		default:
			up++
		}
	}
	if up > strings.Count(name, "/") {
		return LinkLeadsOut
	}
	return ""
}

// rules decide which entries of a tree are synced; both sides have the same.
type rules struct {
	ignorer ignore.Ignorer
	cache   map[ignore.IgnoreCacheKey]ignore.IgnoreCacheValue
}

func newRules(ignores []string) (*rules, error) {
	ignorer, err := NewIgnorer(ignores)
	return &rules{ignorer, map[ignore.IgnoreCacheKey]ignore.IgnoreCacheValue{}}, err
}

// The other end chooses how many paths there are: maxCachedPaths limits the memory that they take.
const maxCachedPaths = 1 << 20

func (r *rules) match(name string, folder bool) (status ignore.IgnoreStatus, inside bool) {
	key := ignore.IgnoreCacheKey{Path: name, Directory: folder}
	known, found := r.cache[key]
	if !found {
		known.Status, known.ContinueTraversal = r.ignorer.Ignore(name, folder)
		if len(r.cache) < maxCachedPaths {
			r.cache[key] = known
		}
	}
	return known.Status, known.ContinueTraversal
}

// restrict applies the rules to an entry that the other end reports, as if it had been found here: what is ignored is
// untracked, whatever the other end calls it.
func (r *rules) restrict(name string, entry *core.Entry) *core.Entry {
	if entry == nil {
		return nil
	}
	masked := false
	for at := range len(name) {
		if name[at] == '/' {
			above, ended := r.descend(name[:at], true, masked)
			if ended {
				return newUntracked()
			}
			masked = above
		}
	}
	if name == "" {
		return r.restrictFolder(name, entry, false)
	}
	return r.restrictEntry(name, entry, masked)
}

func newUntracked() *core.Entry { return &core.Entry{Kind: core.EntryKind_Untracked} }

func isFolder(entry *core.Entry) bool {
	return entry.Kind == core.EntryKind_Directory || entry.Kind == core.EntryKind_PhantomDirectory
}

// descend reports whether a path is ignored together with what is below, and whether nothing below can be unignored.
func (r *rules) descend(name string, folder, masked bool) (below, ended bool) {
	status, inside := r.match(name, folder)
	switch status {
	case ignore.IgnoreStatusIgnored:
		return true, !inside
	case ignore.IgnoreStatusUnignored:
		return false, false
	}
	return masked, masked && !inside
}

func (r *rules) restrictEntry(name string, entry *core.Entry, masked bool) *core.Entry {
	switch entry.Kind {
	case core.EntryKind_Untracked, core.EntryKind_Problematic:
		return shortenProblem(entry)
	}
	masked, ended := r.descend(name, isFolder(entry), masked)
	switch {
	case ended:
		return newUntracked()
	case isFolder(entry):
		return r.restrictFolder(name, entry, masked)
	case entry.Kind == core.EntryKind_SymbolicLink:
		return checkLink(name, entry)
	}
	return entry
}

func (r *rules) restrictFolder(name string, entry *core.Entry, masked bool) *core.Entry {
	if !isFolder(entry) {
		return entry
	}
	result := &core.Entry{Kind: core.EntryKind_Directory}
	if masked {
		result.Kind = core.EntryKind_PhantomDirectory
	}
	for child, inside := range entry.Contents {
		if strings.HasPrefix(child, TemporaryPrefix) || strings.ContainsRune(child, 0) {
			continue
		}
		if result.Contents == nil {
			result.Contents = make(map[string]*core.Entry, len(entry.Contents))
		}
		result.Contents[child] = r.restrictEntry(Join(name, child), inside, masked)
	}
	return result
}

// maxProblemLength is how many bytes of a problem are shown.
const maxProblemLength = 300

func shortenProblem(entry *core.Entry) *core.Entry {
	if len(entry.Problem) <= maxProblemLength {
		return entry
	}
	return &core.Entry{Kind: entry.Kind, Problem: strings.ToValidUTF8(entry.Problem[:maxProblemLength], "")}
}

func checkLink(name string, entry *core.Entry) *core.Entry {
	if why := checkTarget(name, entry.Target); why != "" {
		return &core.Entry{Kind: core.EntryKind_Problematic, Problem: why}
	}
	return entry
}

// checkLinks replaces links that are not synced by problems. A tree without such links is returned as it is, and checked is
// used for the parts that before shares with it.
func checkLinks(name string, entry, before, checked *core.Entry) *core.Entry {
	if entry == before {
		return checked
	}
	if entry == nil || entry.Kind == core.EntryKind_SymbolicLink {
		return checkLinkOrNil(name, entry)
	}
	result := entry
	for child, inside := range entry.Contents {
		found := checkLinks(Join(name, child), inside, before.GetContents()[child], checked.GetContents()[child])
		if found == inside {
			continue
		}
		if result == entry {
			result = &core.Entry{Kind: entry.Kind, Contents: maps.Clone(entry.Contents)}
		}
		result.Contents[child] = found
	}
	return result
}

func checkLinkOrNil(name string, entry *core.Entry) *core.Entry {
	if entry == nil {
		return nil
	}
	return checkLink(name, entry)
}

// removeRefused returns an entry without what must not be created: links that would lead out of the folder through
// another link that is on the disk now, and names that the file system takes for others. It returns a problem for each.
func (t *Tree) removeRefused(name string, entry *core.Entry, isNew bool) (kept *core.Entry, problems []*core.Problem) {
	if entry == nil {
		return nil, nil
	}
	if why := t.whyRefused(name, entry, isNew); why != "" {
		return nil, []*core.Problem{{Path: name, Error: why}}
	}
	kept = entry
	for child, inside := range entry.Contents {
		stays, refused := t.removeRefused(Join(name, child), inside, true)
		problems = append(problems, refused...)
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
	return kept, problems
}

func (t *Tree) whyRefused(name string, entry *core.Entry, isNew bool) string {
	if why := checkName(path.Base(name)); why != "" && t.withoutModes && !t.anyNames && isNew && name != "" {
		return why
	}
	if entry.Kind != core.EntryKind_SymbolicLink {
		return ""
	}
	folder := strings.TrimPrefix(path.Dir("/"+name), "/")
	if checkTarget(name, entry.Target) != "" || !t.root.StaysInside(folder, entry.Target) {
		return LinkLeadsOut
	}
	return ""
}
