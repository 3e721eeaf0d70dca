package machine

import (
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"

	"composeplat/link/internal/tree"
)

// sendPieces reports pieces of a tenth each, which take so long, and returns the events.
func sendPieces(each time.Duration) (kinds []string, events []Event) {
	now := time.Now()
	c := newContents(nil, nil, func(kind string, fields Event) {
		kinds, events = append(kinds, kind), append(events, fields)
	})
	sent := &content{contentKey{true, "digest"}, "folder/model", 1000}
	c.begun[sent.contentKey] = &sending{signature: &rsync.Signature{BlockSize: 10}, began: now}
	for number := range 10 {
		now = now.Add(each)
		isLast := number == 9
		// Half of each is as in the file that is replaced.
		piece := &tree.Piece{Operations: []*rsync.Operation{{Data: make([]byte, 50)}, {Count: 5}}, IsLast: isLast}
		c.report(now, sent, piece, isLast)
	}
	return kinds, events
}

func TestHowFarALargeFileIsIsReported(t *testing.T) {
	kinds, events := sendPieces(600 * time.Millisecond)
	// After 2.4 s, 3.6, 4.8 and 6.
	if len(kinds) != 4 {
		t.Fatalf("%v %v", kinds, events)
	}
	for number, done := range []uint64{400, 600, 800} {
		equal(t, "transferring", kinds[number])
		equal(t, done, events[number]["done"].(uint64))
		equal(t, "folder/model", events[number]["path"].(string))
		equal(t, uint64(1000), events[number]["bytes"].(uint64))
		equal(t, "container", events[number]["to"].(string))
	}
	equal(t, "transferred", kinds[3])
	equal(t, 6.0, events[3]["seconds"].(float64))
}

func TestNothingIsReportedOfALargeFileThatIsThereAtOnce(t *testing.T) {
	if kinds, _ := sendPieces(10 * time.Millisecond); len(kinds) > 0 {
		t.Errorf("%v", kinds)
	}
}
