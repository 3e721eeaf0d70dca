package machine

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/tree"
)

// A disturbed side has a folder with a file that could not be read in so many scans, as one that is removed meanwhile.
type disturbed struct {
	tree.Side
	scans int
}

func (d *disturbed) Scan(ctx context.Context, full bool) (*tree.View, error) {
	view, err := d.Side.Scan(ctx, full)
	if err != nil || d.scans == 0 {
		return view, err
	}
	d.scans--
	problem := &core.Entry{Kind: core.EntryKind_Problematic, Problem: "no such file"}
	folder := &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{"inside": problem}}
	content, err := tree.Apply(view.Content, []*core.Change{{Path: "gone", New: folder}})
	return &tree.View{Content: content, Modes: view.Modes, Files: view.Files, Bytes: view.Bytes}, err
}

// cyclesOf runs cycles of a read-only volume until there is nothing left to do, and returns their events.
func cyclesOf(t *testing.T, scans int) (events string) {
	t.Helper()
	root := t.TempDir()
	var out bytes.Buffer
	c, _ := newCycle(t, root)
	c.config.OneWay = true
	must(t, os.Mkdir(filepath.Join(root, "here", "kept"), 0o755))
	_, err := c.run(t.Context(), true)
	must(t, err)
	c.events = NewEvents(&out)
	c.remote = &disturbed{c.remote, scans}
	waitForCalm(t, c)
	return out.String()
}

// A file that is written and removed in the container while it is scanned was reported as a folder that is left alone.
func TestAConflictOfAMomentIsNotReported(t *testing.T) {
	t.Parallel()
	if events := cyclesOf(t, 1); strings.Contains(events, "conflict") {
		t.Error(events)
	}
}

func TestAConflictThatStaysIsReportedOnce(t *testing.T) {
	t.Parallel()
	events := cyclesOf(t, -1)
	equal(t, 1, strings.Count(events, `"event":"conflict"`))
}

// waitForCalm runs cycles as a folder does, until the next one is due in a minute.
func waitForCalm(t *testing.T, c *cycle) {
	t.Helper()
	for until := time.Now().Add(eventTimeout); time.Now().Before(until); {
		wait, err := c.run(t.Context(), true)
		must(t, err)
		if wait == verifyInterval {
			return
		}
		time.Sleep(wait)
	}
	t.Fatal("it never ends")
}
