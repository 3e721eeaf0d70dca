package tree

import (
	"maps"
	"slices"
	"testing"
)

// What a watch of the whole tree reports is what folder by folder would be: nothing of ignored folders, and all of new ones.
func TestChangesBelowAreReportedByFolder(t *testing.T) {
	root := t.TempDir()
	put(t, root, "a/b/c/file", "x")
	put(t, root, "a/node_modules/deep/file", "x")
	put(t, root, "built/kept/file", "x")
	watch := watched(t, root, "**/node_modules", "built", "!built/kept")
	for _, test := range []struct {
		name    string
		isNew   bool
		touched []string
	}{
		{"a/b/file", false, []string{"a/b"}},
		{"a/b/file", true, []string{"a/b"}},
		{"file", false, []string{""}},
		{"gone/file", false, []string{"gone"}},
		{"a", true, []string{"", "a", "a/b", "a/b/c"}},
		{"a/b", false, nil},
		{"a/b/c", true, []string{"a/b", "a/b/c"}},
		{"gone", true, []string{""}},
		{"a/gone/deep", false, []string{"a/gone"}},
		{"a/node_modules/deep/file", false, nil},
		{"a/node_modules", true, nil},
		{"a/" + TemporaryPrefix + "1", true, nil},
		{"built/kept/file", false, []string{"built/kept"}},
	} {
		watch.TakeTouched()
		watch.lock.Lock()
		watch.report(test.name, test.isNew)
		touched, all := slices.Sorted(maps.Keys(watch.touched)), watch.all
		watch.lock.Unlock()
		if !slices.Equal(touched, test.touched) || all {
			t.Errorf("%s, new: %v: %q, %v", test.name, test.isNew, touched, all)
		}
	}
}

// Windows may report a short form of a name, which nothing else knows.
func TestAShortNameMeansThatAnythingMayHaveChanged(t *testing.T) {
	watch := watched(t, t.TempDir())
	for name, expected := range map[string]bool{"a/LONGNA~1/file": true, "a/~x~2": true, "file~": false, "~/a~b": false, "plain": false} {
		watch.TakeTouched()
		watch.lock.Lock()
		watch.report(name, false)
		all := watch.all
		watch.lock.Unlock()
		if all != expected {
			t.Errorf("%s: %v", name, all)
		}
	}
}
