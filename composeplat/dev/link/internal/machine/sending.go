package machine

import (
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"

	"composeplat/link/internal/tree"
)

const (
	// minReported is how long contents must have been on their way before that is reported.
	minReported    = 2 * time.Second
	reportInterval = time.Second
)

// A sending is how far contents are on their way.
type sending struct {
	// signature is that of the file that they replace.
	signature       *rsync.Signature
	done            uint64
	began, reported time.Time
}

// report emits how far contents are after one more piece, and their end if they were reported before.
func (c *contents) report(now time.Time, sent *content, piece *tree.Piece, isStaged bool) {
	s := c.begun[sent.contentKey]
	s.done = min(s.done+piece.Length(s.signature), sent.size)
	fields := Event{"path": sent.path, "bytes": sent.size, "to": "local"}
	if sent.toContainer {
		fields["to"] = "container"
	}
	switch {
	case isStaged && !s.reported.IsZero():
		fields["seconds"] = now.Sub(s.began).Seconds()
		c.emit("transferred", fields)
	case !piece.IsLast && now.Sub(s.began) >= minReported && now.Sub(s.reported) >= reportInterval:
		s.reported = now
		fields["done"] = s.done
		c.emit("transferring", fields)
	}
}
