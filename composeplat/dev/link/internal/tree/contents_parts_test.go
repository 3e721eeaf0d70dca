package tree

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"
)

// The parts of sending large contents: reading ahead, pieces, and what is held in the staging area.

// A source counts how often it is closed, and ends with an error of its own.
type source struct {
	io.Reader
	failure error
	closed  atomic.Int32
}

func (s *source) Read(into []byte) (int, error) {
	n, err := s.Reader.Read(into)
	if errors.Is(err, io.EOF) && s.failure != nil {
		err = s.failure
	}
	return n, err
}

func (s *source) Close() error {
	s.closed.Add(1)
	return nil
}

// all takes pieces until the last one, or until there is an error.
func all(out *outgoing, limit int) (pieces []*Piece, err error) {
	for {
		piece, err := out.take(limit)
		if err != nil {
			return pieces, err
		}
		if pieces = append(pieces, piece); piece.IsLast {
			return pieces, nil
		}
	}
}

func dataOf(pieces []*Piece) string {
	var data strings.Builder
	for _, piece := range pieces {
		for _, operation := range piece.Operations {
			data.Write(operation.Data)
		}
	}
	return data.String()
}

func TestPiecesHaveAllContentsInTheirOrder(t *testing.T) {
	content := noise(1_000_000)
	for _, limit := range []int{1, 1000, 100_000, MaxPiece} {
		from := &source{Reader: strings.NewReader(content)}
		pieces, err := all(newOutgoing(from, &rsync.Signature{}), limit)
		must(t, err)
		if dataOf(pieces) != content {
			t.Errorf("in pieces of %d: other contents", limit)
		}
		for _, piece := range pieces {
			// An operation that is larger than the limit is a piece of its own.
			if size := len(dataOf([]*Piece{piece})); size > limit && len(piece.Operations) > 1 {
				t.Errorf("a piece of %d bytes, in place of %d", size, limit)
			}
		}
		if from.closed.Load() != 1 {
			t.Errorf("closed %d times", from.closed.Load())
		}
	}
}

func TestAFileThatCanNotBeReadToItsEnd(t *testing.T) {
	failure := errors.New("the disk is broken")
	from := &source{Reader: strings.NewReader(noise(100_000)), failure: failure}
	pieces, err := all(newOutgoing(from, &rsync.Signature{}), 1000)
	if !errors.Is(err, failure) {
		t.Fatalf("%v, after %d pieces", err, len(pieces))
	}
	if slices.ContainsFunc(pieces, func(piece *Piece) bool { return piece.IsLast }) {
		t.Error("one of them was the last")
	}
}

// endless are zeros without end.
type endless struct{}

func (endless) Read(into []byte) (int, error) { return len(into), nil }

func TestReadingEndsWithTheContents(t *testing.T) {
	from := &source{Reader: endless{}}
	out := newOutgoing(from, &rsync.Signature{})
	_, err := out.take(1000)
	must(t, err)
	out.end()
	// A second end is none.
	out.end()
	for began := time.Now(); from.closed.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > deadline {
			t.Fatal("the file is still read")
		}
	}
}

// A part that is as in the replaced file is one operation, of any length: the other end copies it in parts.
func TestLongCopiesAreParts(t *testing.T) {
	for _, test := range []struct{ blockSize, count, parts uint64 }{
		{1 << 10, 10, 1},
		{1 << 10, maxPatched >> 10, 1},
		{1 << 10, maxPatched>>10 + 1, 2},
		{1 << 20, 1000, 16},
		{2 * maxPatched, 3, 3},
		{0, 1, 1},
	} {
		out := &outgoing{
			signature: &rsync.Signature{BlockSize: test.blockSize},
			read:      make(chan *rsync.Operation, 100), ended: make(chan struct{}),
		}
		must(t, out.add(&rsync.Operation{Start: 7, Count: test.count}))
		close(out.read)
		next, parts := uint64(7), uint64(0)
		for part := range out.read {
			if part.Start != next {
				t.Errorf("%v: a part at %d, in place of %d", test, part.Start, next)
			}
			next, parts = next+part.Count, parts+1
		}
		if parts != test.parts || next != 7+test.count {
			t.Errorf("%v: %d parts, up to %d", test, parts, next)
		}
	}
}

func TestContentsThatAreReceivedAgainBeginAgain(t *testing.T) {
	root := t.TempDir()
	tree := planted(t, root)
	scan(t, tree, true)
	digest := digestOf("content")
	for range 3 {
		_, err := tree.Receive("file", digest)
		must(t, err)
		_, err = tree.Put(digest, &Piece{Operations: []*rsync.Operation{{Data: []byte("con")}}})
		must(t, err)
		if count := stagedIn(t, tree); count != 1 {
			t.Fatalf("%d files", count)
		}
	}
	staged, err := tree.Put(digest, &Piece{Operations: []*rsync.Operation{{Data: []byte("tent")}}, IsLast: true})
	must(t, err)
	if !staged {
		t.Error("not staged")
	}
	if _, err := tree.Put(digest, &Piece{IsLast: true}); err == nil {
		t.Error("a piece after the last one")
	}
	if signature, err := tree.Receive("elsewhere", digest); err != nil || signature != nil {
		t.Errorf("%v, %v", signature, err)
	}
}

func TestAllContentsEndWithTheTree(t *testing.T) {
	root := t.TempDir()
	put(t, root, "large", noise(LargeFile))
	tree := planted(t, root)
	scan(t, tree, true)
	for _, name := range []string{"a", "b"} {
		_, err := tree.Receive(name, digestOf(name))
		must(t, err)
		must(t, tree.Open("large", digestOf(name+"out"), &rsync.Signature{}))
	}
	tree.EndAll()
	if len(tree.incoming)+len(tree.outgoing)+stagedIn(t, tree) != 0 {
		t.Errorf("%d, %d, %d files", len(tree.incoming), len(tree.outgoing), stagedIn(t, tree))
	}
	must(t, tree.Close())
	entries, err := os.ReadDir(root)
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("%v are left", entries)
	}
}

// held writes contents into an area and holds them.
func held(t *testing.T, staging *stagingArea, content string) {
	t.Helper()
	to, err := staging.Sink("any")
	must(t, err)
	_, err = to.Write([]byte(content))
	must(t, err)
	staging.hold(to.(*sink))
}

func TestHeldContentsAreFoundForAnyPathUntilTheyAreForgotten(t *testing.T) {
	staging, folder := area(t)
	must(t, staging.begin())
	for _, content := range []string{"one", "two", "three"} {
		held(t, staging, content)
	}
	stage(t, staging, "file", "of a transition")
	open, err := staging.Sink("open")
	must(t, err)
	names := func() int {
		entries, err := os.ReadDir(folder)
		must(t, err)
		return len(entries)
	}
	staging.endTransition()
	if !staging.contains("anywhere", digestOf("one")) || staging.contains("file", digestOf("of a transition")) || names() != 4 {
		t.Fatalf("%v, %d files", staging.held, names())
	}
	staging.forget([][]byte{digestOf("one"), digestOf("no such")})
	if staging.contains("anywhere", digestOf("one")) || !staging.contains("anywhere", digestOf("two")) || names() != 3 {
		t.Fatalf("%v, %d files", staging.held, names())
	}
	staging.keep([][]byte{digestOf("three")})
	staging.abandon(open.(*sink))
	if staging.contains("anywhere", digestOf("two")) || !staging.contains("anywhere", digestOf("three")) || names() != 1 {
		t.Fatalf("%v, %d files", staging.held, names())
	}
	staging.end()
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) || staging.contains("anywhere", digestOf("three")) {
		t.Errorf("%v, %v", err, staging.held)
	}
}

func TestFilesThatAreSuppliedAreThoseOfTheScan(t *testing.T) {
	bothWays(t, func(t *testing.T, from, to Side, source, target string) {
		before := noise(500_000)
		put(t, source, "changed a little", before+"after")
		put(t, target, "changed a little", before)
		put(t, source, "gone", "gone")
		put(t, source, "whole", "whole")
		scan(t, from, true)
		scan(t, to, true)
		must(t, os.Remove(source+"/gone"))
		paths := []string{"changed a little", "gone", "whole"}
		needed, signatures, receiver, err := to.Stage(paths, [][]byte{digestOf(before + "after"), digestOf("gone"), digestOf("whole")})
		must(t, err)
		if !slices.Equal(needed, paths) || len(signatures[0].Hashes) == 0 {
			t.Fatalf("%v", needed)
		}
		counted := &countedOperations{Receiver: receiver}
		must(t, from.Supply(needed, signatures, counted))
		if counted.bytes > 100_000 || counted.failed != 1 {
			t.Errorf("%d bytes, %d failures", counted.bytes, counted.failed)
		}
	})
}

// countedOperations passes on what it receives.
type countedOperations struct {
	rsync.Receiver
	bytes, failed int
}

func (c *countedOperations) Receive(part *rsync.Transmission) error {
	c.bytes += len(part.Operation.GetData())
	if part.Done && part.Error != "" {
		c.failed++
	}
	return c.Receiver.Receive(part)
}

func TestPathsAndSignaturesThatAreNotAsMany(t *testing.T) {
	root := t.TempDir()
	put(t, root, "file", "content")
	tree := planted(t, root)
	scan(t, tree, true)
	receiver, err := rsync.NewReceiver(root, []string{"file"}, []*rsync.Signature{{}}, &countedBytes{})
	must(t, err)
	if err := tree.Supply([]string{"file"}, nil, receiver); err == nil {
		t.Error("supplied")
	}
}
