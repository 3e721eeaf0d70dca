//go:build !portable

package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"golang.org/x/sys/unix"
)

// A rival replaces a file again and again, and records what it has taken away.
type rival struct {
	path, other    string
	written, taken map[string]bool
	stop           chan struct{}
	ended          sync.WaitGroup
}

func newRival(t *testing.T, path string) *rival {
	r := &rival{
		path: path, other: filepath.Join(t.TempDir(), "other"),
		written: map[string]bool{}, taken: map[string]bool{}, stop: make(chan struct{}),
	}
	r.ended.Go(func() {
		for number := 0; ; number++ {
			select {
			case <-r.stop:
				return
			default:
			}
			content := fmt.Sprint("rival's ", number)
			if os.WriteFile(r.other, []byte(content), 0o600) != nil {
				return
			}
			if unix.Renameat2(unix.AT_FDCWD, r.other, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE) == nil {
				r.written[content] = true
				taken, _ := os.ReadFile(r.other)
				r.taken[string(taken)] = true
			} else if unix.Renameat2(unix.AT_FDCWD, r.other, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE) == nil {
				r.written[content] = true
			}
		}
	})
	return r
}

// What another program puts in the place of a file, at whichever moment, is neither removed nor replaced.
func TestAFileThatComesInBetweenStays(t *testing.T) {
	for _, wanted := range []string{"replaced", "removed", "removed with its folder"} {
		t.Run(wanted, func(t *testing.T) {
			root := t.TempDir()
			must(t, os.Mkdir(filepath.Join(root, "folder"), 0o700))
			path := filepath.Join(root, "folder", "file")
			must(t, os.WriteFile(path, []byte("first"), 0o600))
			side := planted(t, root)
			r := newRival(t, path)
			known := map[string]bool{}
			changed := 0
			for round := range 1500 {
				_ = os.Mkdir(filepath.Join(root, "folder"), 0o700)
				view, err := side.Scan(t.Context(), true)
				must(t, err)
				folder := view.Content.Contents["folder"]
				old := folder.GetContents()["file"]
				if old == nil {
					continue
				}
				change, with := &core.Change{Path: "folder/file", Old: old}, Additions{}
				switch wanted {
				case "replaced":
					content := fmt.Sprint("ours ", round)
					change.New = &core.Entry{Kind: core.EntryKind_File, Digest: digestOf(content)}
					with.Contents = map[string][]byte{"folder/file": []byte(content)}
				case "removed with its folder":
					change.Path, change.Old = "folder", folder
				}
				outcome, err := side.Transition(t.Context(), []*core.Change{change}, with)
				must(t, err)
				if outcome.Results[0].Equal(change.New, true) || outcome.Results[0].GetContents()["file"] == nil && change.New == nil {
					changed++
					known[string(old.Digest)] = true
				}
				// What was put back under another name is removed with the folder later on.
				for name, entry := range change.Old.Contents {
					if outcome.Results[0].GetContents()[name] == nil {
						known[string(entry.Digest)] = true
					}
				}
			}
			close(r.stop)
			r.ended.Wait()
			kept, err := filepath.Glob(path + "*")
			must(t, err)
			for _, name := range kept {
				content, err := os.ReadFile(name)
				must(t, err)
				r.taken[string(content)] = true
			}
			for content := range r.written {
				if !r.taken[content] && !known[string(digestOf(content))] {
					t.Errorf("lost: %s", content)
				}
			}
			if changed == 0 || len(r.written) == 0 {
				t.Errorf("too little happened: %d and %d changes", changed, len(r.written))
			}
		})
	}
}
