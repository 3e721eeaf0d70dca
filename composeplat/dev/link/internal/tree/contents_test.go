package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"

	"composeplat/link/internal/wire"
)

// noise is content that has no two blocks alike.
func noise(size int) string {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	return string(content)
}

// sendIn sends contents in pieces, and returns whether they were staged, how many bytes of them were sent, and the biggest
// piece.
func sendIn(t *testing.T, from, to Side, path, content string, limit int) (staged bool, sent, biggest int) {
	t.Helper()
	digest := digestOf(content)
	signature, err := to.Receive(path, digest)
	must(t, err)
	if signature == nil {
		return true, 0, 0
	}
	must(t, from.Open(path, digest, signature))
	for {
		piece, err := from.Next(digest, limit)
		must(t, err)
		bytes := 0
		for _, operation := range piece.Operations {
			bytes += len(operation.Data)
		}
		sent, biggest = sent+bytes, max(biggest, bytes)
		staged, err = to.Put(digest, piece)
		must(t, err)
		if piece.IsLast {
			return staged, sent, biggest
		}
	}
}

// bothWays tests with a folder here and one behind a stream, in both directions.
func bothWays(t *testing.T, test func(t *testing.T, from, to Side, source, target string)) {
	t.Helper()
	t.Run("to a remote", func(t *testing.T) {
		source, target := t.TempDir(), t.TempDir()
		test(t, planted(t, source), served(t, target), source, target)
	})
	t.Run("from a remote", func(t *testing.T) {
		source, target := t.TempDir(), t.TempDir()
		test(t, served(t, source), planted(t, target), source, target)
	})
}

func TestContentsInPiecesAreStagedAndTaken(t *testing.T) {
	bothWays(t, func(t *testing.T, from, to Side, source, target string) {
		content := noise(LargeFile + 1000)
		put(t, source, "large", content)
		put(t, target, "other", "before")
		scan(t, from, true)
		scan(t, to, true)
		if size := from.Size("large"); size != LargeFile+1000 || from.Size("other") != 0 || to.Size("large") != 0 {
			t.Errorf("%d bytes", size)
		}
		staged, sent, biggest := sendIn(t, from, to, "large", content, 100_000)
		if !staged || sent != len(content) || biggest > 100_000 {
			t.Fatalf("%v, %d bytes in pieces of at most %d", staged, sent, biggest)
		}
		// Another change does not take it.
		transfer(t, from, to, &core.Change{Path: "other", Old: fileOf("before")})
		if staged, sent, _ := sendIn(t, from, to, "large", content, 100_000); !staged || sent != 0 {
			t.Fatalf("%v, %d bytes", staged, sent)
		}
		transfer(t, from, to, &core.Change{Path: "large", New: fileOf(content)})
		if contentOf(t, target, "large") != content {
			t.Fatal("other contents")
		}
		// Only differences are sent of the next ones.
		changed := content[:LargeFile/2] + "changed" + content[LargeFile/2:]
		put(t, source, "large", changed)
		scan(t, from, true)
		scan(t, to, true)
		staged, sent, _ = sendIn(t, from, to, "large", changed, MaxPiece)
		if !staged || sent > LargeFile/10 {
			t.Fatalf("%v, %d bytes", staged, sent)
		}
	})
}

func TestContentsThatAreOthersAreDropped(t *testing.T) {
	bothWays(t, func(t *testing.T, from, to Side, source, target string) {
		content := noise(LargeFile)
		put(t, source, "large", content)
		scan(t, from, true)
		scan(t, to, true)
		put(t, source, "large", "short")
		if staged, _, _ := sendIn(t, from, to, "large", content, MaxPiece); staged {
			t.Fatal("staged")
		}
	})
}

// stagedIn are the files in a tree's staging area.
func stagedIn(t *testing.T, tree *Tree) (files int) {
	t.Helper()
	if tree.staging.folder == nil {
		return 0
	}
	entries, err := tree.staging.folder.Entries()
	must(t, err)
	return len(entries)
}

func TestContentsThatAreNotNeededAreRemoved(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	from, to := planted(t, source), planted(t, target)
	for _, name := range []string{"a", "b", "c"} {
		put(t, source, name, name+noise(LargeFile))
	}
	put(t, target, "other", "before")
	scan(t, from, true)
	scan(t, to, true)
	for _, name := range []string{"a", "b"} {
		sendIn(t, from, to, name, name+noise(LargeFile), MaxPiece)
	}
	digest := digestOf("c" + noise(LargeFile))
	signature, err := to.Receive("c", digest)
	must(t, err)
	must(t, from.Open("c", digest, signature))
	piece, err := from.Next(digest, 1000)
	must(t, err)
	_, err = to.Put(digest, piece)
	must(t, err)
	// A transition leaves what is held, and what still arrives.
	transfer(t, from, to, &core.Change{Path: "other", Old: fileOf("before")})
	if count := stagedIn(t, to); count != 3 {
		t.Errorf("%d files", count)
	}
	must(t, to.Keep([][]byte{digestOf("b" + noise(LargeFile))}))
	must(t, to.End(digest))
	if count := stagedIn(t, to); count != 1 {
		t.Errorf("%d files", count)
	}
	if _, err := to.Put(digest, piece); err == nil {
		t.Error("a piece of contents that were ended")
	}
	if _, err := from.Next(digestOf("?"), 1000); err == nil {
		t.Error("contents that were not opened")
	}
	must(t, to.Keep(nil))
	transfer(t, from, to, &core.Change{Path: "folder", New: &core.Entry{Kind: core.EntryKind_Directory}})
	if count := stagedIn(t, to); count != 0 {
		t.Errorf("%d files", count)
	}
}

func TestPiecesThatAreNotValidAreRefused(t *testing.T) {
	root := t.TempDir()
	tree := planted(t, root)
	put(t, root, "large", strings.Repeat("content", LargeFile))
	scan(t, tree, true)
	many := make([]*rsync.Operation, maxOperations+1)
	for i := range many {
		many[i] = &rsync.Operation{Data: []byte("x")}
	}
	repeated := make([]*rsync.Operation, 1000)
	for name, operations := range map[string][]*rsync.Operation{
		"an empty operation":            {{}},
		"blocks and contents":           {{Data: []byte("x"), Count: 1}},
		"blocks behind the end":         {{Start: 1 << 40, Count: 1}},
		"blocks beyond the end":         {{Count: 1 << 40}},
		"blocks whose sum is too large": {{Start: 1 << 63, Count: 1 << 63}},
		"many operations":               many,
		"the whole file many times":     repeated,
	} {
		t.Run(name, func(t *testing.T) {
			digest := digestOf(name)
			signature, err := tree.Receive("large", digest)
			must(t, err)
			for i := range repeated {
				repeated[i] = &rsync.Operation{Count: uint64(len(signature.Hashes))}
			}
			if _, err := tree.Put(digest, &Piece{Operations: operations}); err == nil {
				t.Fatal("accepted")
			}
			if count := stagedIn(t, tree); count != 0 {
				t.Errorf("%d files", count)
			}
		})
	}
}

func TestAnswersAboutContentsThatAreNotValidEndTheLink(t *testing.T) {
	receive := func(r *Remote) error { _, err := r.Receive("a", digestOf("a")); return err }
	next := func(r *Remote) error { _, err := r.Next(digestOf("a"), 1000); return err }
	push := func(r *Remote) error { _, err := r.Put(digestOf("a"), &Piece{}); return err }
	many := make([]*rsync.Operation, maxOperations+1)
	for i := range many {
		many[i] = &rsync.Operation{}
	}
	large := &rsync.Signature{BlockSize: 1 << 40, LastBlockSize: 1, Hashes: []*rsync.BlockHash{{Strong: make([]byte, 20)}}}
	for name, test := range map[string]struct {
		ask  func(*Remote) error
		kind byte
		body []byte
	}{
		"no head of a signature":    {receive, frameReceive, nil},
		"no signature":              {receive, frameReceive, body[*rsync.Signature](t, receiveAnswer{})},
		"a signature that is large": {receive, frameReceive, body(t, receiveAnswer{}, large)},
		"no head of a piece":        {next, frameNext, nil},
		"a piece of many":           {next, frameNext, body(t, pieceHead{}, many...)},
		"a piece that is cut off":   {next, frameNext, append(body[*rsync.Operation](t, pieceHead{}), 9)},
		"no answer to a piece":      {push, framePut, nil},
		"another answer":            {push, frameNext, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.ask(answering(t, frames(test.kind, test.body))); !errors.Is(err, ErrLost) {
				t.Fatal(err)
			}
		})
	}
}

func TestSizesOfAnAgentAreThoseOfItsFiles(t *testing.T) {
	remote := answering(t, func(frames *wire.Frames) error {
		sizes := map[string]uint64{"a": LargeFile, "b": 3, "c/d": 2 * LargeFile, "e": LargeFile}
		first := body(t, scanAnswer{Large: sizes}, &core.Change{New: &core.Entry{Contents: map[string]*core.Entry{
			"a": fileOf("a"), "b": fileOf("b"), "c": folder("d", fileOf("d")),
		}}})
		if err := frames.Send(frameScan, first); err != nil {
			return err
		}
		if _, _, err := frames.Read(); err != nil {
			return err
		}
		return frames.Send(frameScan, body(t, scanAnswer{}, &core.Change{Path: "c"}))
	})
	scan(t, remote, true)
	if remote.Size("a") != LargeFile || remote.Size("b") != 0 || remote.Size("c/d") != 2*LargeFile || remote.Size("e") != 0 {
		t.Errorf("%v", remote.large)
	}
	scan(t, remote, false)
	if remote.Size("a") != LargeFile || remote.Size("c/d") != 0 {
		t.Errorf("%v", remote.large)
	}
}

// A long part that is as in the replaced file is compared before anything is known: that does not hold other requests up.
func TestAPieceIsNotWaitedFor(t *testing.T) {
	read, write, err := os.Pipe()
	must(t, err)
	defer write.Close()
	out := newOutgoing(read, &rsync.Signature{})
	defer out.end()
	piece, err := out.take(1000)
	must(t, err)
	if len(piece.Operations) > 0 || piece.IsLast {
		t.Fatal(piece)
	}
	_, err = write.Write(bytes.Repeat([]byte("x"), 20_000))
	must(t, err)
	must(t, write.Close())
	total := 0
	for !piece.IsLast {
		piece, err = out.take(1000)
		must(t, err)
		for _, operation := range piece.Operations {
			total += len(operation.Data)
		}
	}
	if total != 20_000 {
		t.Fatal(total)
	}
}

// What a stream has begun ends with it.
func TestContentsEndWithTheStream(t *testing.T) {
	root := t.TempDir()
	put(t, root, "large", noise(LargeFile))
	frames, ended := asked(t, root)
	digest := digestOf("new")
	for _, request := range []struct {
		kind byte
		body []byte
	}{
		{frameScan, body[*core.Change](t, scanRequest{Full: true})},
		{frameReceive, body[*core.Change](t, receiveRequest{Path: "new", Digest: digest})},
		{framePut, body(t, pieceHead{Digest: digest}, &rsync.Operation{Data: []byte("x")})},
		{frameOpen, body(t, openRequest{Path: "large", Digest: digest}, &rsync.Signature{})},
	} {
		if kind, reply := answerTo(t, frames, request.kind, request.body); kind != request.kind {
			t.Fatalf("%q: %s", kind, reply)
		}
	}
	must(t, frames.Close())
	<-ended
	left := 0
	_ = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && entry.Name() != "large" {
			left++
		}
		return nil
	})
	if left != 0 {
		t.Errorf("%d files", left)
	}
}

// A file that has grown since the scan is not sent: the receiver would wait for any amount, and drop it.
func TestAFileThatHasGrownIsNotSent(t *testing.T) {
	bothWays(t, func(t *testing.T, from, to Side, source, target string) {
		put(t, source, "file", "small")
		put(t, source, "other", "other")
		scan(t, from, true)
		scan(t, to, true)
		put(t, source, "file", "small"+noise(100_000))
		count := &countedBytes{}
		signatures := []*rsync.Signature{{}, {}}
		receiver, err := rsync.NewReceiver(target, []string{"file", "other"}, signatures, count)
		must(t, err)
		must(t, from.Supply([]string{"file", "other"}, signatures, receiver))
		if count.bytes != len("other") {
			t.Errorf("%d bytes", count.bytes)
		}
	})
}

// countedBytes counts the bytes of all files.
type countedBytes struct{ bytes int }

func (s *countedBytes) Sink(string) (io.WriteCloser, error) { return s, nil }
func (s *countedBytes) Close() error                        { return nil }

func (s *countedBytes) Write(content []byte) (int, error) {
	s.bytes += len(content)
	return len(content), nil
}

func TestNearest(t *testing.T) {
	paths := map[string]bool{"a": true, "a/b/c": true}
	for path, nearest := range map[string]string{"a": "a", "a/x": "a", "a/b/c/d": "a/b/c", "a/b": "a", "ab": "", "": ""} {
		found, has := Nearest(path, paths)
		if found != nearest || has != (nearest != "") {
			t.Errorf("%s: %s %v", path, found, has)
		}
	}
	if _, has := Nearest("x/y", map[string]bool{"": true}); !has {
		t.Error("the root is above all")
	}
}

// The other end may send any number of large files and of changes.
func TestManyLargeFilesAndManyChanges(t *testing.T) {
	before, content := map[string]uint64{}, &core.Entry{Contents: map[string]*core.Entry{}}
	var changes []*core.Change
	for number := range 50_000 {
		before[fmt.Sprint("large", number)] = LargeFile
		changes = append(changes, &core.Change{Path: fmt.Sprint("other", number)})
	}
	began := time.Now()
	if after := updateLarge(before, content, changes, nil); len(after) != len(before) {
		t.Errorf("%d of %d are left", len(after), len(before))
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}
