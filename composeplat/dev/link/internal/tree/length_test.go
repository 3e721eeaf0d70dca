package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
)

// A folder whose list is longer than a frame may be is an error that goes away with the files: the link was lost, again and
// again.
func TestAFolderThatIsTooLargeIsAProblem(t *testing.T) {
	before := [2]uint32{limits[frameScan], limits[frameChange]}
	limits[frameScan], limits[frameChange] = 4000, 4000
	t.Cleanup(func() { limits[frameScan], limits[frameChange] = before[0], before[1] })
	root := t.TempDir()
	put(t, root, "file", "x")
	remote := served(t, root)
	scan(t, remote, true)
	for number := range 100 {
		put(t, root, fmt.Sprint("many/", number), "x")
	}
	for range 2 {
		if _, err := remote.Scan(t.Context(), true); err == nil || err.Error() != errTooLarge.Error() {
			t.Fatal(err)
		}
	}
	contents := map[string]*core.Entry{}
	for number := range 100 {
		contents[fmt.Sprint(number)] = fileOf("x")
	}
	change := &core.Change{Path: "other", New: &core.Entry{Kind: core.EntryKind_Directory, Contents: contents}}
	if _, err := remote.Transition(t.Context(), []*core.Change{change}, Additions{}); err != errTooLarge {
		t.Fatal(err)
	}
	must(t, os.RemoveAll(filepath.Join(root, "many")))
	if found := listed(scan(t, remote, true)); found != "file File" {
		t.Error(found)
	}
}

// Folders that are nested deeper than the other end takes are such a problem too, as a copy of a folder into itself makes them.
func TestFoldersThatAreTooDeepAreAProblem(t *testing.T) {
	root := t.TempDir()
	put(t, root, "file", "x")
	remote := served(t, root)
	scan(t, remote, true)
	for _, depth := range []int{600, 496} {
		must(t, os.MkdirAll(filepath.Join(root, strings.Repeat("s/", depth)), 0o755))
		for range 2 {
			if _, err := remote.Scan(t.Context(), true); err == nil || err.Error() != errTooLarge.Error() {
				t.Fatal(depth, err)
			}
		}
		must(t, os.RemoveAll(filepath.Join(root, "s")))
	}
	must(t, os.MkdirAll(filepath.Join(root, strings.Repeat("s/", 490)), 0o755))
	if entries, _ := measure([]*core.Change{{New: scan(t, remote, true).Content}}); entries != 490+3 {
		t.Error(entries)
	}
	deep := fileOf("x")
	for range 600 {
		deep = &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{"s": deep}}
	}
	if _, err := remote.Transition(t.Context(), []*core.Change{{Path: "other", New: deep}}, Additions{}); err != errTooLarge {
		t.Fatal(err)
	}
}

// The limit is one of the other end too: a request that it would refuse is not sent, and the link goes on.
func TestARequestThatIsTooLongIsNotSent(t *testing.T) {
	before := limits[frameModes]
	limits[frameModes] = 500
	t.Cleanup(func() { limits[frameModes] = before })
	root := t.TempDir()
	put(t, root, "file", "x")
	remote := served(t, root)
	scan(t, remote, true)
	modes := map[string]uint32{}
	for number := range 100 {
		modes[fmt.Sprint("file", number)] = 0o600
	}
	if _, err := remote.SetModes(modes); err != errTooLarge {
		t.Fatal(err)
	}
	refused, err := remote.SetModes(map[string]uint32{"file": 0o600})
	must(t, err)
	if len(refused) > 0 {
		t.Error(refused)
	}
}
