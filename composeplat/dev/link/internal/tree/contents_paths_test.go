package tree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"
)

// Large contents are read at paths, and staged for them: none may lead out of the folder.

// leadingOut plants a folder beside a file outside, with links to it, and returns paths that would lead there.
func leadingOut(t *testing.T, root string) (paths []string, outside string) {
	t.Helper()
	outside = filepath.Join(filepath.Dir(root), "outside-"+filepath.Base(root))
	put(t, outside, "secret", "secret"+noise(LargeFile))
	t.Cleanup(func() { os.RemoveAll(outside) })
	must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(root, "link")))
	must(t, os.Symlink(outside, filepath.Join(root, "folder")))
	return []string{"link", "folder/secret", "../" + filepath.Base(outside) + "/secret", outside + "/secret", "", "."}, outside
}

func TestNoLargeFileOutsideIsRead(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		paths, _ := leadingOut(t, root)
		side := open()
		scan(t, side, true)
		for _, path := range paths {
			if size := side.Size(path); size != 0 {
				t.Errorf("%q has %d bytes", path, size)
			}
			digest := digestOf(path)
			err := side.Open(path, digest, &rsync.Signature{})
			if err != nil {
				continue
			}
			piece, err := side.Next(digest, MaxPiece)
			if err == nil && len(piece.Operations) > 0 {
				t.Errorf("%q is read", path)
			}
		}
	})
}

// What is replaced is read too, for its signature, from which contents could be guessed.
func TestNoLargeFileOutsideIsDescribed(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		paths, _ := leadingOut(t, root)
		side := open()
		scan(t, side, true)
		for _, path := range paths {
			signature, err := side.Receive(path, digestOf(path))
			if err == nil && len(signature.GetHashes()) > 0 {
				t.Errorf("%q is described", path)
			}
			must(t, side.End(digestOf(path)))
		}
	})
}

// A file becomes a link after the scan, as a program in the container could do.
func TestALinkInPlaceOfALargeFileIsNotRead(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		_, outside := leadingOut(t, root)
		put(t, root, "large", noise(LargeFile))
		side := open()
		scan(t, side, true)
		must(t, os.Remove(filepath.Join(root, "large")))
		must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(root, "large")))
		if err := side.Open("large", digestOf("a"), &rsync.Signature{}); err == nil {
			t.Error("it is opened")
		}
		signature, err := side.Receive("large", digestOf("b"))
		must(t, err)
		if len(signature.GetHashes()) > 0 {
			t.Error("it is described")
		}
		sink := &countedBytes{}
		receiver, err := rsync.NewReceiver(root, []string{"large"}, []*rsync.Signature{{}}, sink)
		must(t, err)
		must(t, side.Supply([]string{"large"}, []*rsync.Signature{{}}, receiver))
		if sink.bytes != 0 {
			t.Errorf("%d bytes are supplied", sink.bytes)
		}
	})
}

// What is staged gets to the path of a change alone: the path of the request is only where differences are from.
func TestContentsForAPathThatLeadsOutStayStaged(t *testing.T) {
	bothWays(t, func(t *testing.T, from, to Side, source, target string) {
		paths, outside := leadingOut(t, target)
		content := noise(LargeFile)
		put(t, source, "large", content)
		scan(t, from, true)
		scan(t, to, true)
		for _, path := range paths {
			digest := digestOf(content)
			signature, err := to.Receive(path, digest)
			if err != nil || signature == nil {
				continue
			}
			must(t, from.Open("large", digest, signature))
			for isLast := false; !isLast; {
				piece, err := from.Next(digest, MaxPiece)
				must(t, err)
				_, err = to.Put(digest, piece)
				must(t, err)
				isLast = piece.IsLast
			}
		}
		if contentOf(t, outside, "secret") != "secret"+noise(LargeFile) {
			t.Error("the file outside has changed")
		}
		entries, err := os.ReadDir(outside)
		must(t, err)
		if len(entries) != 1 {
			t.Errorf("%d files outside", len(entries))
		}
	})
}

func TestALargeFileThatIsGoneIsNotRead(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		put(t, root, "large", noise(LargeFile))
		side := open()
		scan(t, side, true)
		must(t, os.Remove(filepath.Join(root, "large")))
		if err := side.Open("large", digestOf("large"), &rsync.Signature{}); err == nil || errors.Is(err, ErrLost) {
			t.Fatalf("not a failure of the file: %v", err)
		}
		if _, err := side.Next(digestOf("large"), 1000); err == nil || errors.Is(err, ErrLost) {
			t.Fatalf("not a failure of the request: %v", err)
		}
		// The link can still be used.
		if size := scan(t, side, true).Files; size != 0 {
			t.Errorf("%d files", size)
		}
	})
}

func TestNothingIsReceivedInAFolderThatIsGone(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		inside := filepath.Join(root, "inside")
		must(t, os.Mkdir(inside, 0o755))
		side := open()
		// Before the first scan there is no root.
		if _, err := side.Receive("a", digestOf("a")); err == nil {
			t.Error("received")
		}
		if err := side.Open("a", digestOf("a"), &rsync.Signature{}); err == nil {
			t.Error("opened")
		}
	})
}

// Two files with the same contents need them once.
func TestTheSameLargeContentsOfTwoFiles(t *testing.T) {
	bothWays(t, func(t *testing.T, from, to Side, source, target string) {
		content := noise(LargeFile)
		put(t, source, "a", content)
		put(t, source, "b", content)
		scan(t, from, true)
		scan(t, to, true)
		if staged, sent, _ := sendIn(t, from, to, "a", content, MaxPiece); !staged || sent != len(content) {
			t.Fatalf("%v, %d bytes", staged, sent)
		}
		if staged, sent, _ := sendIn(t, from, to, "b", content, MaxPiece); !staged || sent != 0 {
			t.Fatalf("%v, %d bytes", staged, sent)
		}
		changes := []*core.Change{{Path: "a", New: fileOf(content)}, {Path: "b", New: fileOf(content)}}
		for range 2 {
			outcome := transfer(t, from, to, changes...)
			if !outcome.Missing {
				break
			}
			// One of them took what was staged: the other one is copied from it.
			scan(t, to, true)
			changes = changes[:0]
			for _, name := range []string{"a", "b"} {
				if _, err := os.Stat(filepath.Join(target, name)); err != nil {
					changes = append(changes, &core.Change{Path: name, New: fileOf(content)})
				}
			}
		}
		if contentOf(t, target, "a") != content || contentOf(t, target, "b") != content {
			t.Error("other contents")
		}
	})
}

// A folder's name is that of a file before it, and letters of other scripts are as good as any.
func TestLargeFilesOfAllNames(t *testing.T) {
	bothWays(t, func(t *testing.T, from, to Side, source, target string) {
		content := noise(LargeFile)
		for number, name := range []string{"é/日本", "a b/c", strings.Repeat("long", 50), "-", "a\\b"} {
			own := strings.Repeat("x", number) + content
			put(t, source, name, own)
			scan(t, from, true)
			scan(t, to, true)
			if staged, sent, _ := sendIn(t, from, to, name, own, MaxPiece); !staged || sent != len(own) {
				t.Errorf("%q: %v, %d bytes", name, staged, sent)
			}
			if folder := parentPath(name); folder != "" {
				must(t, os.MkdirAll(filepath.Join(target, folder), 0o755))
				scan(t, to, true)
			}
			transfer(t, from, to, &core.Change{Path: name, New: fileOf(own)})
			if contentOf(t, target, name) != own {
				t.Errorf("%q: other contents", name)
			}
		}
	})
}
