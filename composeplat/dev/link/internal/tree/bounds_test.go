package tree

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"composeplat/link/internal/wire"
)

// remoteTo is a Remote and its other end.
func remoteTo(t *testing.T) (*Remote, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	remote, err := NewRemote(near, nil)
	must(t, err)
	t.Cleanup(func() {
		remote.Close()
		far.Close()
	})
	return remote, far
}

// against is a Remote whose other end does what it wants with the stream, once it was asked something.
func against(t *testing.T, agent func(io.ReadWriter)) *Remote {
	t.Helper()
	remote, far := remoteTo(t)
	go func() {
		if _, _, err := wire.NewCompressedFrames(far, limits.Lookup).Read(); err == nil {
			agent(far)
		}
	}()
	return remote
}

func frame(kind byte, length uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{kind}, length)
}

var chunk = make([]byte, 64<<10)

// pour writes so many bytes, and tells whether they are still read.
func pour(to io.Writer, bytes int) bool {
	for ; bytes > 0; bytes -= len(chunk) {
		if _, err := to.Write(chunk); err != nil {
			return false
		}
	}
	return true
}

// flood writes one frame after another, as long as they are read.
func flood(to io.Writer, kind byte, length uint32) {
	for range 1 << 14 {
		if _, err := to.Write(frame(kind, length)); err != nil || !pour(to, int(length)) {
			return
		}
	}
}

// peak is how much memory is in use at most meanwhile, above what was in use before.
func peak(do func()) uint64 {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most, done, measured := uint64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(measured)
		for {
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	do()
	close(done)
	<-measured
	return most
}

// Frames of 1 GiB were taken, and 64 of them queued.
func TestAHostileAgentDoesNotFillTheMemory(t *testing.T) {
	const fair = 32 << 20
	for name, agent := range map[string]func(io.ReadWriter){
		"an answer of 1 GiB": func(to io.ReadWriter) {
			_, _ = to.Write(frame(frameScan, 1<<30))
			pour(to, 256<<20)
		},
		"an answer to what was not asked": func(to io.ReadWriter) { flood(to, frameModes, 8<<20) },
		"contents that nobody wants":      func(to io.ReadWriter) { flood(to, framePart, 256<<10) },
		"a signal that is long": func(to io.ReadWriter) {
			_, _ = to.Write(frame(frameChanged, 1<<30))
			pour(to, 256<<20)
		},
		"a trouble that is long": func(to io.ReadWriter) {
			_, _ = to.Write(frame(frameWatchError, 1<<20))
			pour(to, 256<<20)
		},
		"a message that claims to be long": func(to io.ReadWriter) {
			body, _ := wire.Pack(scanAnswer{}, protowire.AppendVarint(nil, 1<<60))
			_ = wire.NewCompressedFrames(struct {
				io.ReadWriter
				io.Closer
			}{to, nil}, limits.Lookup).Send(frameScan, body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			remote := against(t, agent)
			var err error
			used := peak(func() { _, err = remote.Scan(context.Background(), true) })
			if !errors.Is(err, ErrLost) || used > fair {
				t.Fatalf("%d MiB, %v", used>>20, err)
			}
		})
	}
}

// A few bytes of a message make an entry of some hundred.
func TestATreeOfTooManyEntriesIsNotTaken(t *testing.T) {
	var inside []byte
	for number := range maxEntries + 1 {
		name := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), strings.Repeat("x", number%3))
		entry := protowire.AppendBytes(protowire.AppendTag(name, 2, protowire.BytesType), nil)
		inside = protowire.AppendBytes(protowire.AppendTag(inside, fieldContents, protowire.BytesType), entry)
	}
	change := protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), inside)
	body, err := wire.Pack(scanAnswer{}, protowire.AppendBytes(nil, change))
	must(t, err)
	remote := against(t, func(to io.ReadWriter) {
		_, _ = to.Write(append(frame(frameScan, uint32(len(body))), body...))
		pour(to, 1<<20)
	})
	used := peak(func() { _, err = remote.Scan(context.Background(), true) })
	if !errors.Is(err, ErrLost) || used > 64<<20 {
		t.Fatalf("%d MiB of %d, %v", used>>20, len(body)>>20, err)
	}
}

func TestEntriesAreCountedBeforeTheyTakeMemory(t *testing.T) {
	deep := file()
	for range 50 {
		deep = folder("a", deep)
	}
	wide := &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{"a": file(), "b": file(), "c": deep}}
	raw, err := proto.Marshal(&core.Change{Path: "x", Old: nil, New: wide})
	must(t, err)
	if counted := countEntries(&core.Change{}, raw); counted != 1+1+2+51 {
		t.Error(counted)
	}
	for range 3 * maxDepth {
		deep = folder("a", deep)
	}
	raw, err = proto.Marshal(&core.Archive{Content: deep})
	must(t, err)
	if counted := countEntries(&core.Archive{}, raw); counted <= maxEntries {
		t.Error("too deep, and counted: ", counted)
	}
}

// The sender of contents held a block of the announced size in memory; it was killed for that, or ended.
func TestSignaturesAndBlocksAreChecked(t *testing.T) {
	hash := &rsync.BlockHash{Weak: 1, Strong: make([]byte, 20)}
	if checkSignature(&rsync.Signature{BlockSize: 1 << 40, LastBlockSize: 1, Hashes: []*rsync.BlockHash{hash}}) == nil {
		t.Error("blocks of a tebibyte")
	}
	source := &partDecoder{signatures: []*rsync.Signature{{}, {BlockSize: 1, LastBlockSize: 1, Hashes: []*rsync.BlockHash{hash, hash}}}}
	operations := []struct {
		file  int
		start uint64
		count uint64
		fine  bool
	}{{0, 0, 1, false}, {0, 0, 1 << 63, false}, {1, 0, 2, true}, {1, 1, 2, false}, {1, 1<<64 - 1, 2, false}, {2, 0, 1, false}}
	for _, operation := range operations {
		source.file = operation.file
		part := &rsync.Transmission{Operation: &rsync.Operation{Start: operation.start, Count: operation.count}}
		if err := source.check(part); (err == nil) != operation.fine {
			t.Errorf("%v: %v", operation, err)
		}
	}
}
