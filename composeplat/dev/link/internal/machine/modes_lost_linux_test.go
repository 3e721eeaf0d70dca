package machine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/tree"
)

// A cutSide loses the link once in a request that sets modes: before the modes are set, or after it.
type cutSide struct {
	tree.Side
	before, after bool
}

func (c *cutSide) SetModes(modes map[string]uint32) (map[string]string, error) {
	if c.before {
		c.before = false
		return nil, tree.ErrLost
	}
	refused, err := c.Side.SetModes(modes)
	if c.after {
		c.after = false
		return nil, tree.ErrLost
	}
	return refused, err
}

func (c *cutSide) Transition(ctx context.Context, changes []*core.Change, with tree.Additions) (*tree.Outcome, error) {
	outcome, err := c.Side.Transition(ctx, changes, with)
	if c.after && len(with.Modes) > 0 {
		c.after = false
		return nil, tree.ErrLost
	}
	return outcome, err
}

// A mode that was brought to the other side and not recorded, as the link was lost then, is no change of that side: a folder
// that got its old mode back meanwhile lost it again.
func TestModeThatIsTakenBackAfterALostLink(t *testing.T) {
	for name, test := range map[string]struct {
		cut     cutSide
		change  func(here, there func(string) string)
		restart bool
	}{
		"of this machine": {cutSide{after: true}, func(here, _ func(string) string) {
			must(t, os.Chmod(here("mine"), 0o750))
		}, false},
		"of this machine, in a new process": {cutSide{after: true}, func(here, _ func(string) string) {
			must(t, os.Chmod(here("mine"), 0o750))
		}, true},
		"of this machine, of a folder that was a file": {cutSide{after: true}, func(here, _ func(string) string) {
			must(t, os.Remove(here("file")))
			must(t, os.Mkdir(here("file"), 0o750))
		}, false},
		"of the container": {cutSide{before: true}, func(here, there func(string) string) {
			must(t, os.Chmod(here("mine"), 0o750))
			must(t, os.Chmod(there("theirs"), 0o750))
		}, false},
		"of the container, in a new process": {cutSide{before: true}, func(here, there func(string) string) {
			must(t, os.Chmod(here("mine"), 0o750))
			must(t, os.Chmod(there("theirs"), 0o750))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			here := func(name string) string { return filepath.Join(root, "here", name) }
			there := func(name string) string { return filepath.Join(root, "there", name) }
			c, _ := newCycle(t, root)
			run := func() {
				t.Helper()
				for range 3 {
					_, err := c.run(t.Context(), true)
					must(t, err)
				}
			}
			must(t, os.Mkdir(here("mine"), 0o755))
			must(t, os.Mkdir(there("theirs"), 0o755))
			write(t, here("file"), "x")
			must(t, os.Chmod(here("file"), 0o755))
			run()
			far := test.cut
			far.Side = c.remote
			c.remote = &far
			test.change(here, there)
			if _, err := c.run(t.Context(), true); !errors.Is(err, tree.ErrLost) {
				t.Fatalf("not lost: %v", err)
			}
			if test.restart {
				c.base, c.intent = loadBase(c.state, c.config, ""), loadIntent(c.state, c.config, "")
				c.recovered, c.half = nil, half{}
			}
			c = &cycle{folder: c.folder, remote: c.remote, welcome: c.welcome, isFirstCycle: true}
			must(t, os.Chmod(here("mine"), 0o755))
			must(t, os.Chmod(here("file"), 0o755))
			must(t, os.Chmod(there("theirs"), 0o755))
			run()
			for _, name := range []string{"mine", "theirs", "file"} {
				equal(t, os.FileMode(0o755), modeOf(here(name)))
				equal(t, os.FileMode(0o755), modeOf(there(name)))
			}
			equal(t, nil, c.intent)
		})
	}
}
