package machine

import (
	"strings"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/tree"
)

// A scope is the part of the trees that a cycle compares. Outside of it, both sides and the base are as in the cycle before,
// which has left nothing to do there.
type scope struct {
	whole  bool
	inside map[string]*scope
}

// A calm is the end of a cycle that left nothing to do: the views that it compared, and the paths that it has changed.
type calm struct {
	here, there uint64
	changed     []string
}

// trees are compared by a cycle, or the parts of them in a scope.
type trees struct{ base, here, there *core.Entry }

// scopeOf returns the scope of a cycle: everything, unless the changes since the last cycle are known.
func (c *cycle) scopeOf(seen views) *scope {
	everything := &scope{whole: true}
	if c.base == nil || c.intent != nil || c.hasExceptions || c.calm == nil {
		return everything
	}
	found := &scope{}
	for _, side := range []struct {
		view   *tree.View
		before uint64
	}{{seen.here, c.calm.here}, {seen.there, c.calm.there}} {
		switch side.before {
		case side.view.Number:
		case side.view.Since:
			found.add(side.view.Changed)
		default:
			return everything
		}
	}
	found.add(c.calm.changed)
	return found
}

func (s *scope) add(paths []string) {
	for _, path := range paths {
		at := s
		for part := range strings.SplitSeq(path, "/") {
			if path == "" {
				break
			}
			if at.inside[part] == nil {
				if at.inside == nil {
					at.inside = map[string]*scope{}
				}
				at.inside[part] = &scope{}
			}
			at = at.inside[part]
		}
		at.whole = true
	}
}

// cut returns the part of the trees in the scope: folders that all of them have lead to the entries that may differ.
func (s *scope) cut(from trees) trees {
	if s.whole || !isFolder(from.base) || !isFolder(from.here) || !isFolder(from.there) {
		return from
	}
	to := trees{emptied(from.base), emptied(from.here), emptied(from.there)}
	for name, inside := range s.inside {
		part := inside.cut(trees{from.base.Contents[name], from.here.Contents[name], from.there.Contents[name]})
		put(to.base, name, part.base)
		put(to.here, name, part.here)
		put(to.there, name, part.there)
	}
	return to
}

func emptied(folder *core.Entry) *core.Entry {
	return &core.Entry{Kind: folder.Kind, Contents: map[string]*core.Entry{}}
}

func put(folder *core.Entry, name string, entry *core.Entry) {
	if entry != nil {
		folder.Contents[name] = entry
	}
}

// calmAfter returns the end of a cycle that left nothing to do.
func calmAfter(seen views, changes []*core.Change, modes modePlan) *calm {
	c := &calm{here: seen.here.Number, there: seen.there.Number}
	for _, change := range changes {
		c.changed = append(c.changed, change.Path)
	}
	for path := range modes.set {
		c.changed = append(c.changed, path)
	}
	return c
}
