package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/tree"
)

// runUntil runs cycles until the files are as they should be, as changes are reported a moment later.
func runUntil(t *testing.T, c *cycle, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(eventTimeout); !holds(); time.Sleep(20 * time.Millisecond) {
		_, err := c.run(t.Context(), false)
		must(t, err)
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// A cycle after a save compares the saved file, and not the thousands beside it: neither side's walks nor the base's.
func TestASaveIsComparedAlone(t *testing.T) {
	root := t.TempDir()
	c, _ := newCycle(t, root)
	for number := range 300 {
		write(t, filepath.Join(root, "here", fmt.Sprintf("d%d/f%d", number%10, number)), "first")
	}
	_, err := c.run(t.Context(), true)
	must(t, err)
	runUntil(t, c, "nothing to do", func() bool { return c.settled.here != nil })
	for number := range 5 {
		text := fmt.Sprint("saved ", number)
		write(t, filepath.Join(root, "here/d3/f3"), text)
		var seen views
		runUntil(t, c, "the save is seen", func() bool {
			seen, err = c.scan(t.Context(), false)
			must(t, err)
			return seen.here != c.settled.here
		})
		part := c.scopeOf(seen)
		compared := part.cut(trees{c.ancestor(), seen.here.Content, seen.there.Content})
		if found := fmt.Sprint(pathsOf(compared.base), pathsOf(compared.here), pathsOf(compared.there)); found != "[d3 d3/f3] [d3 d3/f3] [d3 d3/f3]" {
			t.Fatalf("%d: %.60s", number, found)
		}
		runUntil(t, c, "the save is there", func() bool {
			content, err := os.ReadFile(filepath.Join(root, "there/d3/f3"))
			must(t, err)
			return string(content) == text && c.settled.here != nil
		})
	}
}

func pathsOf(content *core.Entry) (paths []string) {
	tree.Walk("", content, func(path string, _ *core.Entry) {
		if path != "" {
			paths = append(paths, path)
		}
	})
	return paths
}

// A folder that is a file on the other side is compared with all its contents.
func TestAScopeHasAllOfWhatDiffersInKind(t *testing.T) {
	folder := folderOf(map[string]string{"a": "1", "b": "2"})
	file := fileOf("3")
	in := func(entry *core.Entry) *core.Entry {
		return &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{"x": entry, "other": file}}
	}
	part := &scope{}
	part.add([]string{"x/a"})
	cut := part.cut(trees{in(folder), in(file), in(folder)})
	if found := fmt.Sprint(pathsOf(cut.here), len(pathsOf(cut.base)), len(pathsOf(cut.there))); found != "[x] 3 3" {
		t.Error(found)
	}
	cut = part.cut(trees{in(folder), in(folder), in(folder)})
	if found := fmt.Sprint(pathsOf(cut.base)); found != "[x x/a]" {
		t.Error(found)
	}
	part.add([]string{""})
	if cut = part.cut(trees{in(folder), in(folder), in(folder)}); len(pathsOf(cut.base)) != 4 {
		t.Error(pathsOf(cut.base))
	}
}

// Only where nothing is left to do is the next cycle narrow: a problem, a conflict and an unknown view are looked at again.
func TestEverythingIsComparedWhereSomethingIsLeft(t *testing.T) {
	view := func(number, since uint64) *tree.View {
		return &tree.View{Number: number, Since: since, Changed: []string{"a"}}
	}
	known := &cycle{folder: &folder{base: &base{}}, calm: &calm{here: 1, there: 2}}
	for name, test := range map[string]struct {
		change func(*cycle)
		seen   views
		whole  bool
	}{
		"a change here":             {func(*cycle) {}, views{view(3, 1), view(2, 0)}, false},
		"a change there":            {func(*cycle) {}, views{view(1, 0), view(3, 2)}, false},
		"a view after another one":  {func(*cycle) {}, views{view(4, 3), view(2, 0)}, true},
		"a full scan there":         {func(*cycle) {}, views{view(1, 0), view(3, 0)}, true},
		"something was left":        {func(c *cycle) { c.calm = nil }, views{view(1, 0), view(2, 0)}, true},
		"a first sync":              {func(c *cycle) { c.base = nil }, views{view(1, 0), view(2, 0)}, true},
		"changes that were cut off": {func(c *cycle) { c.intent = &intent{} }, views{view(1, 0), view(2, 0)}, true},
	} {
		c := &cycle{folder: &folder{base: known.base}, calm: known.calm}
		test.change(c)
		if found := c.scopeOf(test.seen); found.whole != test.whole {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
