package machine

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"

	"composeplat/link/internal/tree"
)

// A piece takes a moment on a slow line, and is as large as may be on a fast one, however far away the other end is.
func TestPiecesAreAsLargeAsTheLineIsFast(t *testing.T) {
	for name, line := range map[string]struct {
		delay   time.Duration
		rate    int
		atLeast int
		atMost  int
	}{
		"near and fast": {0, 500 << 20, tree.MaxPiece, tree.MaxPiece},
		"far and fast":  {200 * time.Millisecond, 500 << 20, tree.MaxPiece, tree.MaxPiece},
		"near and slow": {0, 1 << 20, minPiece, 4 * minPiece},
		"far and slow":  {200 * time.Millisecond, 1 << 20, minPiece, 4 * minPiece},
	} {
		t.Run(name, func(t *testing.T) {
			c := newContents(nil, nil, nil)
			for range 100 {
				c.adapt(line.delay + time.Duration(c.piece)*time.Second/time.Duration(line.rate))
			}
			if c.piece < line.atLeast || c.piece > line.atMost {
				t.Errorf("%d bytes", c.piece)
			}
		})
	}
}

// A sideOf fails where its file is gone, or where its disk is full.
type sideOf struct {
	tree.Side
	opened, received error
}

func (s sideOf) Receive(string, []byte) (*rsync.Signature, error) {
	return &rsync.Signature{}, s.received
}
func (s sideOf) Open(string, []byte, *rsync.Signature) error { return s.opened }
func (s sideOf) End([]byte) error                            { return nil }

func TestOnlyContentsThatCanNotBeWrittenAreLeftToACycle(t *testing.T) {
	failed := errors.New("no")
	for name, test := range map[string]struct {
		local, remote sideOf
		left          bool
	}{
		"a file that is gone": {sideOf{opened: failed}, sideOf{}, false},
		"a disk that is full": {sideOf{}, sideOf{received: failed}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newContents(test.local, test.remote, nil)
			key := contentKey{true, "digest"}
			c.wanted = []content{{key, "file", tree.LargeFile}}
			isBusy, err := c.step()
			must(t, err)
			equal(t, true, isBusy)
			equal(t, 1, len(c.arrived))
			equal(t, test.left, c.hasFailed(key))
			// Not before a cycle has looked where the file is.
			isBusy, err = c.step()
			must(t, err)
			equal(t, false, isBusy)
		})
	}
}

// entriesOf returns a folder with so many files, and the files as contents.
func entriesOf(folder string, count int) (*core.Entry, []content) {
	entry := &core.Entry{Contents: map[string]*core.Entry{}}
	var files []content
	for number := range count {
		name := strconv.Itoa(number)
		entry.Contents[name] = &core.Entry{Kind: core.EntryKind_File, Digest: []byte(name)}
		files = append(files, content{path: tree.Join(folder, name)})
	}
	return entry, files
}

// Of changes, files that are changes themselves are left out, and files in new folders; the changes stay as they are.
func TestFilesAreLeftOutOfChanges(t *testing.T) {
	folder, _ := entriesOf("new", 3)
	file := &core.Entry{Kind: core.EntryKind_File, Digest: []byte("x")}
	changes := []*core.Change{{Path: "new", New: folder}, {Path: "new.txt", New: file}, {Path: "kept", New: file}}
	left := withoutFiles(changes, []content{{path: "new/1"}, {path: "new.txt"}, {path: "elsewhere/1"}})

	equal(t, 2, len(left))
	equal(t, "new", left[0].Path)
	equal(t, 2, len(left[0].New.Contents))
	equal(t, nil, left[0].New.Contents["1"])
	equal(t, changes[2], left[1])
	equal(t, 3, len(folder.Contents))
}

func TestManyFilesAreLeftOutOfAFolderAtOnce(t *testing.T) {
	folder, files := entriesOf("new", 20_000)
	began := time.Now()
	left := withoutFiles([]*core.Change{{Path: "new", New: folder}}, files)

	equal(t, 0, len(left[0].New.Contents))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}
