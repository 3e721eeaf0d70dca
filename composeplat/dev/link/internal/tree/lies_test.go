package tree

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/wire"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func file() *core.Entry {
	return &core.Entry{Kind: core.EntryKind_File, Digest: []byte("0123456789abcdef0123456789abcdef")}
}

func folder(name string, inside *core.Entry) *core.Entry {
	return &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{name: inside}}
}

// scanned is what a Remote makes of an agent that answers a scan with these changes.
func scanned(t *testing.T, changes ...*core.Change) (*View, error) {
	t.Helper()
	near, far := net.Pipe()
	remote, err := NewRemote(near, []string{"**/.git"})
	must(t, err)
	t.Cleanup(func() { remote.Close() })
	go func() {
		frames := wire.NewCompressedFrames(far, limits.Lookup)
		if _, _, err := frames.Read(); err != nil {
			return
		}
		body, err := packMessages(scanAnswer{Modes: map[string]uint32{"a": 0o104777}}, changes)
		if err == nil {
			_ = frames.Send(frameScan, body)
		}
	}()
	return remote.Scan(context.Background(), true)
}

func TestALyingAgentIsNotBelieved(t *testing.T) {
	for name, changes := range map[string][]*core.Change{
		"a name that climbs":      {{New: folder("..", file())}},
		"a name with a slash":     {{New: folder("a/b", file())}},
		"no name":                 {{New: folder("", file())}},
		"a file with contents":    {{New: &core.Entry{Kind: core.EntryKind_File, Contents: folder("a", file()).Contents}}},
		"a link without a target": {{New: folder("a", &core.Entry{Kind: core.EntryKind_SymbolicLink})}},
		"an unknown kind":         {{New: folder("a", &core.Entry{Kind: 77})}},
		"a change of nothing":     {{Path: "a/b/c", New: file()}},
		"a file as a folder":      {{New: folder("a", file())}, {Path: "a/b", New: file()}},
		"a path that climbs":      {{New: folder("a", file())}, {Path: "../b", New: file()}},
	} {
		t.Run(name, func(t *testing.T) {
			view, err := scanned(t, changes...)
			if !errors.Is(err, ErrLost) {
				t.Fatalf("believed: %v, %v", view, err)
			}
		})
	}
}

func TestOnlyPermissionsAreTakenFromAnAgent(t *testing.T) {
	view, err := scanned(t, &core.Change{New: folder("a", file())})
	must(t, err)
	if modesOf(view)["a"] != 0o777 {
		t.Fatalf("%o", modesOf(view)["a"])
	}
}

// planted is the tree of a folder.
func planted(t *testing.T, root string, ignores ...string) *Tree {
	t.Helper()
	place, err := beneath.Find(root, "")
	must(t, err)
	made, err := NewTree(place, ignores, place.Below(TemporaryPrefix+"staging"), nil)
	must(t, err)
	t.Cleanup(func() { made.Close() })
	return made
}

func TestModesFollowNoLinks(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	target := filepath.Join(outside, "file")
	must(t, os.WriteFile(target, nil, 0o600))
	must(t, os.Symlink(outside, filepath.Join(root, "folder")))
	must(t, os.Symlink(target, filepath.Join(root, "link")))
	made := planted(t, root)
	_, err := made.Scan(context.Background(), true)
	must(t, err)
	names := map[string]uint32{"folder/file": 0o777, "link": 0o777, "../" + filepath.Base(outside) + "/file": 0o777, "..": 0o777, "": 0o777}
	refused, err := made.SetModes(names)
	must(t, err)
	if len(refused) != len(names) {
		t.Fatalf("refused: %v", refused)
	}
	info, err := os.Stat(target)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Fatalf("the file outside is %v", info.Mode())
	}
}

func TestTransitionsFollowNoLinks(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "folder"), 0o755))
	made := planted(t, root)
	_, err := made.Scan(context.Background(), true)
	must(t, err)
	// Between the scan and the change, a link takes the folder's place.
	must(t, os.Remove(filepath.Join(root, "folder")))
	must(t, os.Symlink(outside, filepath.Join(root, "folder")))
	outcome, err := made.Transition(context.Background(), []*core.Change{
		{Path: "folder/new", New: &core.Entry{Kind: core.EntryKind_Directory}},
		{Path: "climbs", New: &core.Entry{Kind: core.EntryKind_SymbolicLink, Target: "../../etc"}},
	}, Additions{})
	must(t, err)
	if len(outcome.Problems) != 2 {
		t.Fatalf("problems: %v", outcome.Problems)
	}
	entries, err := os.ReadDir(outside)
	must(t, err)
	if len(entries) != 0 {
		t.Fatalf("outside: %v", entries)
	}
}
