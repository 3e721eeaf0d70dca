package machine

import (
	"testing"
	"time"

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
