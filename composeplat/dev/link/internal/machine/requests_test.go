package machine

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/tree"
	"composeplat/link/internal/wire"
)

// A counted side notes its requests: each takes as long as a message to the container and back.
type counted struct {
	tree.Side
	requests []string
}

func (c *counted) note(request string) { c.requests = append(c.requests, request) }

func (c *counted) Scan(ctx context.Context, full bool) (*tree.View, error) {
	c.note("scan")
	return c.Side.Scan(ctx, full)
}

func (c *counted) Stage(paths []string, digests [][]byte) ([]string, []*rsync.Signature, rsync.Receiver, error) {
	c.note("stage")
	return c.Side.Stage(paths, digests)
}

func (c *counted) Transition(ctx context.Context, changes []*core.Change, with tree.Additions) (*tree.Outcome, error) {
	c.note("change")
	return c.Side.Transition(ctx, changes, with)
}

func (c *counted) SetModes(modes map[string]uint32) (map[string]string, error) {
	c.note("modes")
	return c.Side.SetModes(modes)
}

// newCycle syncs two folders of a root, here and there, over a stream in memory.
func newCycle(t *testing.T, root string, prepare ...func(*tree.Tree)) (*cycle, *counted) {
	t.Helper()
	for _, name := range []string{"here", "there", "state"} {
		must(t, os.Mkdir(filepath.Join(root, name), 0o755))
	}
	at := func(name string) beneath.Place {
		place, err := beneath.Find(filepath.Join(root, name), root)
		must(t, err)
		return place
	}
	config := FolderConfig{Local: filepath.Join(root, "here"), Remote: filepath.Join(root, "there")}
	synced, err := newFolder(0, config, filepath.Join(root, "state"), NewEvents(io.Discard))
	must(t, err)
	t.Cleanup(synced.close)
	far, err := tree.NewTree(at("there"), nil, at("staging"), nil)
	must(t, err)
	for _, change := range prepare {
		change(far)
	}
	near, end := net.Pipe()
	go func() { _ = tree.Serve(far, end) }()
	remote, err := tree.NewRemote(near, nil)
	must(t, err)
	t.Cleanup(func() {
		remote.Close()
		far.Close()
	})
	side := &counted{Side: remote}
	return &cycle{folder: synced, remote: side, welcome: wire.Welcome{Fresh: true}, isFirstCycle: true}, side
}

// With a scan and a change, a saved file is there after one and a half ways to the container and back.
func TestRequestsOfASave(t *testing.T) {
	root := t.TempDir()
	here := func(name string) string { return filepath.Join(root, "here", name) }
	there := func(name string) string { return filepath.Join(root, "there", name) }
	c, side := newCycle(t, root)
	requests := func() string {
		side.requests = nil
		_, err := c.run(t.Context(), true)
		must(t, err)
		return strings.Join(side.requests, " ")
	}

	write(t, here("file"), "first")
	equal(t, "scan change", requests())
	write(t, here("file"), "second")
	must(t, os.Chmod(here("file"), 0o640))
	write(t, here("folder/new"), "new")
	equal(t, "scan change", requests())
	equal(t, "scan", requests())
	if content, err := os.ReadFile(there("file")); err != nil || string(content) != "second" {
		t.Error(string(content), err)
	}
	info, err := os.Stat(there("file"))
	must(t, err)
	equal(t, os.FileMode(0o640), info.Mode())
	write(t, here("large"), strings.Repeat("x", 1<<20))
	equal(t, "scan stage change", requests())
	must(t, os.Chmod(here("large"), 0o600))
	equal(t, "scan modes", requests())
	must(t, os.Remove(here("folder/new")))
	equal(t, "scan change", requests())
}
