package tree

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"

	"composeplat/link/internal/wire"
)

// A server is not to trust the machine either: a request that makes no sense fails, or ends the stream.

// asked is a stream to a server of a folder, to send requests by hand.
func asked(t *testing.T, root string) (frames *wire.Frames, ended chan error) {
	t.Helper()
	near, far := net.Pipe()
	must(t, near.SetDeadline(time.Now().Add(deadline)))
	ended = make(chan error, 1)
	tree := planted(t, root)
	go func() { ended <- Serve(tree, far) }()
	t.Cleanup(func() { near.Close() })
	return wire.NewCompressedFrames(near, limits.Lookup), ended
}

// answerTo sends a request and returns its answer, without what is reported meanwhile.
func answerTo(t *testing.T, frames *wire.Frames, kind byte, request []byte) (answered byte, body []byte) {
	t.Helper()
	// The server may be reporting a change: a pipe has no buffer.
	sent := make(chan error, 1)
	go func() { sent <- frames.Send(kind, request) }()
	for {
		answered, body, err := frames.Read()
		must(t, err)
		if answered != frameChanged && answered != frameWatchError {
			must(t, <-sent)
			return answered, body
		}
	}
}

func TestARequestThatIsNotValidFails(t *testing.T) {
	head := body[*core.Change](t, struct{}{})
	invalid := body(t, struct{}{}, &core.Change{Path: "a", New: &core.Entry{Kind: 77}})
	for name, request := range map[string]struct {
		kind byte
		body []byte
	}{
		"a scan without a head":         {frameScan, nil},
		"a scan of no JSON":             {frameScan, []byte("\x00\x00\x00\x01{")},
		"copies without a head":         {frameCopies, nil},
		"copies of no digests":          {frameCopies, body[*core.Change](t, stageRequest{Paths: []string{"a"}})},
		"changes without a head":        {frameChange, nil},
		"changes that are cut off":      {frameChange, append(head, 9)},
		"changes to what there is not":  {frameChange, invalid},
		"modes without a head":          {frameModes, nil},
		"modes that are none":           {frameModes, body[*core.Change](t, []string{"a"})},
		"staging without a digest each": {frameStage, body[*core.Change](t, stageRequest{Paths: []string{"a"}})},
		"contents without a head":       {frameReceive, nil},
		"a piece without a head":        {framePut, nil},
		"a piece of no contents":        {framePut, body[*core.Change](t, pieceHead{Digest: digestOf("a")})},
		"reading without a head":        {frameOpen, nil},
		"reading without a signature":   {frameOpen, body[*core.Change](t, openRequest{Path: "a"})},
		"reading what there is not":     {frameOpen, body(t, openRequest{Path: "x"}, &rsync.Signature{})},
		"the next piece of nothing":     {frameNext, body[*core.Change](t, nextRequest{})},
		"keeping without a head":        {frameKeep, nil},
	} {
		t.Run(name, func(t *testing.T) {
			frames, _ := asked(t, t.TempDir())
			scanned, err := wire.Pack(scanRequest{Full: true}, nil)
			must(t, err)
			if kind, reply := answerTo(t, frames, frameScan, scanned); kind != frameScan {
				t.Fatalf("%q: %s", kind, reply)
			}
			if kind, reply := answerTo(t, frames, request.kind, request.body); kind != frameFailure || len(reply) == 0 {
				t.Fatalf("%q: %q", kind, reply)
			}
			// The stream goes on.
			if kind, reply := answerTo(t, frames, frameScan, scanned); kind != frameScan {
				t.Fatalf("%q: %s", kind, reply)
			}
		})
	}
}

func TestARequestThatCanNotBeAnsweredEndsTheStream(t *testing.T) {
	stage := body[*core.Change](t, stageRequest{Paths: []string{"a"}, Digests: [][]byte{digestOf("a")}})
	for name, test := range map[string]struct {
		kind    byte
		body    []byte
		then    []byte // the kind and the body of another frame
		message string
	}{
		"an unknown request":         {framePart, nil, nil, "unknown request"},
		"staging without a head":     {frameStage, nil, nil, "EOF"},
		"a supply without a head":    {frameSupply, nil, nil, "EOF"},
		"a supply that is cut off":   {frameSupply, append(body[*core.Change](t, supplyRequest{Paths: []string{"a"}}), 9), nil, "cut off"},
		"contents that do not come":  {frameStage, stage, []byte{framePartEnd}, "contents end too early"},
		"contents that are none":     {frameStage, stage, []byte{framePart, 0xff}, "cannot parse"},
		"a frame of unexpected kind": {'?', nil, nil, "unexpected frame"},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			must(t, near.SetDeadline(time.Now().Add(deadline)))
			defer near.Close()
			tree := planted(t, t.TempDir())
			_, err := tree.Scan(t.Context(), true)
			must(t, err)
			ended := make(chan error, 1)
			go func() { ended <- Serve(tree, far) }()
			// All that the server says is read and dropped.
			go func() {
				buffer := make([]byte, 1024)
				for {
					if _, err := near.Read(buffer); err != nil {
						return
					}
				}
			}()
			go func() {
				frames := wire.NewCompressedFrames(near, limits.Lookup)
				_ = frames.Send(test.kind, test.body)
				if len(test.then) > 0 {
					_ = frames.Send(test.then[0], test.then[1:])
				}
			}()
			select {
			case err := <-ended:
				if err == nil || !strings.Contains(err.Error(), test.message) {
					t.Fatal(err)
				}
			case <-time.After(deadline):
				t.Fatal("it goes on")
			}
		})
	}
}

func TestAServerSendsOnlyWhatHasChanged(t *testing.T) {
	root := t.TempDir()
	put(t, root, "kept", "kept")
	put(t, root, "changed", "before")
	put(t, root, "gone", "gone")
	frames, _ := asked(t, root)
	ask := func() (head scanAnswer, paths []string) {
		t.Helper()
		request, err := wire.Pack(scanRequest{Full: true}, nil)
		must(t, err)
		kind, answer := answerTo(t, frames, frameScan, request)
		if kind != frameScan {
			t.Fatalf("%q: %s", kind, answer)
		}
		messages, err := wire.Unpack(answer, &head)
		must(t, err)
		changes, err := unpackMessages(bytes.NewReader(messages), newChange, -1)
		must(t, err)
		for _, change := range changes {
			paths = append(paths, change.Path)
			if change.Old != nil {
				t.Errorf("%s: what was before is sent again", change.Path)
			}
		}
		return head, paths
	}
	if head, paths := ask(); len(head.Modes) != 3 || head.Files != 3 || len(paths) != 1 || paths[0] != "" {
		t.Fatalf("first: %+v, %q", head, paths)
	}
	if head, paths := ask(); len(head.Modes)+len(head.Gone)+len(paths) != 0 || head.Files != 3 {
		t.Fatalf("nothing new: %+v, %q", head, paths)
	}
	put(t, root, "changed", "after")
	must(t, os.Chmod(filepath.Join(root, "kept"), 0o600))
	must(t, os.Remove(filepath.Join(root, "gone")))
	head, paths := ask()
	if text, _ := json.Marshal(head); string(text) != `{"modes":{"kept":384},"gone":["gone"],"files":2,"bytes":9}` {
		t.Errorf("%s", text)
	}
	if len(paths) != 2 {
		t.Errorf("%q", paths)
	}
}

func TestAWatchErrorIsReported(t *testing.T) {
	root := t.TempDir()
	near, far := net.Pipe()
	tree := planted(t, root)
	go func() { _ = Serve(tree, far) }()
	remote, err := NewRemote(near, nil)
	must(t, err)
	defer remote.Close()
	scan(t, remote, true)
	tree.watch.lock.Lock()
	tree.watch.problem = "too many folders"
	tree.watch.lock.Unlock()
	put(t, root, "file", "x")
	for timeout := time.After(deadline); remote.WatchError() == ""; {
		select {
		case <-remote.Changed():
		case <-timeout:
			t.Fatal("never reported")
		}
	}
	if remote.WatchError() != "too many folders" {
		t.Error(remote.WatchError())
	}
}

func TestTheCacheSparesTheNextTreeFromReading(t *testing.T) {
	root := t.TempDir()
	put(t, root, "file", "content")
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(filepath.Join(root, "file"), old, old))
	first := planted(t, root)
	scan(t, first, true)
	cache := first.Cache()
	// A file that can't be read keeps its digest: it isn't read.
	cache.Entries["file"].Digest = digestOf("of the cache")
	second, err := NewTree(first.place, nil, first.place.Below(TemporaryPrefix+"other"), cache)
	must(t, err)
	defer second.Close()
	if !HaveSameContent(entryAt(scan(t, second, true), "file"), fileOf("of the cache")) {
		t.Error("read again")
	}
	put(t, root, "file", "changed")
	if !HaveSameContent(entryAt(scan(t, second, true), "file"), fileOf("changed")) {
		t.Error("not read again")
	}
}

// A file that is written again at once keeps its timestamp and length, where the kernel's clock is coarse.
func TestAFileThatKeepsItsTimestampIsReadAgain(t *testing.T) {
	root := t.TempDir()
	tree := planted(t, root)
	path := filepath.Join(root, "file")
	put(t, root, "file", "first.")
	stamp := time.Now()
	must(t, os.Chtimes(path, stamp, stamp))
	scan(t, tree, true)
	put(t, root, "file", "second")
	must(t, os.Chtimes(path, stamp, stamp))
	if !HaveSameContent(entryAt(scan(t, tree, true), "file"), fileOf("second")) {
		t.Error("the change is not seen")
	}
	// And by the cache that the next tree begins with.
	if entry := tree.Cache().Entries["file"]; entry.ModificationTime.AsTime().Unix() != 0 {
		t.Errorf("the cache trusts %v", entry.ModificationTime.AsTime())
	}
}

func TestPatternsThatAreNotValidAreNamed(t *testing.T) {
	for _, ignores := range [][]string{{"fine", "[a"}, {"a/[b-"}} {
		_, err := NewIgnorer(ignores)
		if err == nil || !strings.Contains(err.Error(), `ignore pattern "`+ignores[len(ignores)-1]+`"`) {
			t.Errorf("%q: %v", ignores, err)
		}
		if _, err := NewRemote(nil, ignores); err == nil {
			t.Errorf("%q: a remote is made", ignores)
		}
	}
	if _, err := NewIgnorer([]string{"", "  ", "# [comment", " built "}); err != nil {
		t.Error(err)
	}
}

func TestAScanThatIsCanceledIsRepeatedAsAWhole(t *testing.T) {
	root := t.TempDir()
	put(t, root, "file", "x")
	tree := planted(t, root)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tree.Scan(ctx, true); err == nil {
		t.Fatal("scanned")
	}
	if found := listed(scan(t, tree, false)); found != "file File" {
		t.Error(found)
	}
}

func TestAFolderInPlaceOfTheScannedOneIsLeftAlone(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "root")
	put(t, root, "file", "old")
	tree := planted(t, root)
	before := scan(t, tree, true).Content
	must(t, os.Rename(root, filepath.Join(top, "moved")))
	put(t, root, "file", "old")
	// What was decided about the one before is done there, if at all.
	outcome, err := tree.Transition(t.Context(), []*core.Change{{Path: "file", Old: before.Contents["file"]}}, Additions{})
	if err == nil && len(outcome.Problems) == 0 {
		if _, err := os.Lstat(filepath.Join(top, "moved", "file")); !os.IsNotExist(err) {
			t.Error("neither done nor a problem")
		}
	}
	if contentOf(t, root, "file") != "old" {
		t.Error("the new folder is changed")
	}
	if found := listed(scan(t, tree, false)); found != "file File" {
		t.Error(found)
	}
}

func TestContentsOfAFileThatIsGoneAreNotSupplied(t *testing.T) {
	root := t.TempDir()
	tree := planted(t, root)
	if err := tree.Supply([]string{"file"}, []*rsync.Signature{{}}, nil); err != errNoFolder {
		t.Fatal(err)
	}
}

func TestPathsOfFoldersAndNames(t *testing.T) {
	for path, parent := range map[string]string{"a": "", "a/b": "a", "a/b/c": "a/b"} {
		if found := parentPath(path); found != parent {
			t.Errorf("%s: %q", path, found)
		}
	}
	if Join("", "a") != "a" || Join("a", "b") != "a/b" {
		t.Error(Join("", "a"), Join("a", "b"))
	}
	if HaveSameContent(nil, fileOf("a")) || HaveSameContent(fileOf("a"), nil) || HaveSameContent(fileOf("a"), fileOf("b")) ||
		HaveSameContent(link("a"), link("a")) || !HaveSameContent(fileOf("a"), fileOf("a")) {
		t.Error("contents")
	}
	var order []string
	Walk("top", folder("a", folder("b", file())), func(name string, _ *core.Entry) { order = append(order, name) })
	if strings.Join(order, " ") != "top top/a top/a/b" {
		t.Error(order)
	}
}
