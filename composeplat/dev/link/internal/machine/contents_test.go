package machine

import (
	"errors"
	"testing"
	"time"

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
			c := newContents(nil, nil)
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
			c := newContents(test.local, test.remote)
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
