package machine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"composeplat/link/internal/single"
	"composeplat/link/internal/wire"
)

// A hostile agent knows the protocol, and sends any message in it: any tree, any path, any message.
type hostile struct {
	random *rand.Rand
	root   string
	lock   sync.Mutex
	// valid is one that keeps to what may be, and so gets further.
	valid bool
}

var (
	hostileNames = []string{
		"a", "b", "c", "d", "sub", "nginx.conf", ".git", ".GIT", ".stignore", ".mutagen-temporary-x", "hooks", "config",
		"..", ".", "", "a/b", "../outside", "../../outside/secret", "/etc", "x\x00y", "outside",
	}
	hostileContents = []string{"", "written by the container", strings.Repeat("long ", 5000)}
)

func (h *hostile) pick(of ...string) string { return of[h.random.IntN(len(of))] }

// name is mostly a name that may be, so that the tree around it is taken.
func (h *hostile) name() string {
	if h.valid || h.random.IntN(10) > 0 {
		return hostileNames[h.random.IntN(12)]
	}
	return h.pick(hostileNames...)
}

func (h *hostile) target() string {
	switch h.random.IntN(4) {
	case 0:
		return h.pick("../outside/secret", "d//../../outside/.bashrc", "d//../../outside", "d//../../outside/secret", h.root+"/outside", ".git/config", "..", "")
	case 1:
		return h.pick(".", "a", "b", "sub", "nginx.conf", "./d", "a//b")
	}
	var parts []string
	for range 1 + h.random.IntN(6) {
		parts = append(parts, h.pick("..", ".", "", "a", "b", "d", "sub", "outside", "secret", ".git"))
	}
	return strings.Join(parts, "/")
}

func (h *hostile) entry(depth int) *core.Entry {
	switch kind := h.random.IntN(20); {
	case kind < 8 && depth < 4:
		contents := map[string]*core.Entry{}
		for range h.random.IntN(5) {
			contents[h.name()] = h.entry(depth + 1)
		}
		return &core.Entry{Kind: core.EntryKind_Directory, Contents: contents}
	case kind < 13:
		sum := sha256.Sum256([]byte(h.pick(hostileContents...)))
		return &core.Entry{Kind: core.EntryKind_File, Digest: sum[:], Executable: h.random.IntN(2) == 0}
	case kind < 18:
		return &core.Entry{Kind: core.EntryKind_SymbolicLink, Target: h.target()}
	case kind == 18:
		return &core.Entry{Kind: core.EntryKind_Problematic, Problem: strings.Repeat("\x1b[2J", h.random.IntN(500))}
	}
	if h.valid {
		return &core.Entry{Kind: core.EntryKind_Untracked}
	}
	return &core.Entry{
		Kind: core.EntryKind(h.random.IntN(8)), Target: h.target(), Digest: []byte("short"),
		Contents: map[string]*core.Entry{h.name(): h.entry(depth + 1)},
	}
}

func (h *hostile) changes() []proto.Message {
	root := &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{}}
	for range 3 + h.random.IntN(8) {
		root.Contents[h.name()] = h.entry(0)
	}
	changes := []proto.Message{&core.Change{New: root}}
	if h.valid {
		return changes
	}
	for range h.random.IntN(3) {
		path := h.name()
		for range h.random.IntN(3) {
			path += "/" + h.name()
		}
		changes = append(changes, &core.Change{Path: path, New: h.entry(0)})
	}
	return changes
}

func packedFor(head any, messages ...proto.Message) []byte {
	var out bytes.Buffer
	_ = wire.Send(&out, head)
	for _, message := range messages {
		_, _ = protodelim.MarshalTo(&out, message)
	}
	return out.Bytes()
}

func (h *hostile) garbage() []byte {
	raw := make([]byte, h.random.IntN(200))
	for i := range raw {
		raw[i] = byte(h.random.UintN(256))
	}
	return raw
}

const hostileKinds = "stpqykxmfcubdonge?"

// answer replies to a request, mostly with a message that fits it.
func (h *hostile) answer(frames *wire.Frames, kind byte, body []byte) error {
	switch choice := h.random.IntN(25); {
	case h.valid:
	case choice == 0:
		return frames.Send(kind, h.garbage())
	case choice == 1:
		return frames.Send(hostileKinds[h.random.IntN(len(hostileKinds))], h.garbage())
	case choice == 2:
		return frames.Send('c', nil)
	}
	in := bytes.NewReader(body)
	switch kind {
	case 's':
		modes := map[string]uint32{}
		for range h.random.IntN(6) {
			modes[h.name()+"/"+h.name()] = h.random.Uint32()
			modes[h.name()] = h.random.Uint32()
		}
		large := map[string]uint64{}
		for _, name := range hostileNames {
			if h.random.IntN(2) == 0 {
				large[name] = h.random.Uint64() >> h.random.IntN(60)
			}
		}
		return frames.Send('s', packedFor(map[string]any{"modes": modes, "gone": []string{h.name()}, "large": large}, h.changes()...))
	case 't', 'k':
		var asked struct{ Paths []string }
		_ = wire.ReceiveHead(in, &asked)
		if kind == 'k' {
			reply, _ := json.Marshal(map[string]any{"had": make([]bool, len(asked.Paths))})
			return frames.Send('k', reply)
		}
		return h.stage(frames, len(asked.Paths))
	case 'y':
		var asked struct{ Paths []string }
		_ = wire.ReceiveHead(in, &asked)
		return h.supply(frames, asked.Paths)
	case 'x':
		return h.changed(frames, in)
	case 'b', 'd', 'o', 'n', 'g', 'e':
		return h.contents(frames, kind)
	case 'm':
		return frames.Send('m', []byte(`{"refused": {"../../outside/secret": "no", "a": "no"}}`))
	}
	return nil
}

func (h *hostile) stage(frames *wire.Frames, count int) error {
	var needed []int
	var signatures []proto.Message
	for i := range count {
		needed = append(needed, i)
		signature := &rsync.Signature{}
		if !h.valid && h.random.IntN(4) == 0 {
			hash := &rsync.BlockHash{Weak: 1, Strong: make([]byte, 20)}
			signature = &rsync.Signature{BlockSize: 1 << h.random.IntN(40), LastBlockSize: 1, Hashes: []*rsync.BlockHash{hash}}
		}
		signatures = append(signatures, signature)
	}
	return frames.Send('t', packedFor(map[string]any{"needed": needed}, signatures...))
}

// contents answers about a large file.
func (h *hostile) contents(frames *wire.Frames, kind byte) error {
	switch kind {
	case 'b':
		signature := &rsync.Signature{}
		if !h.valid && h.random.IntN(4) == 0 {
			hash := &rsync.BlockHash{Weak: 1, Strong: make([]byte, 20)}
			signature = &rsync.Signature{BlockSize: 1 << h.random.IntN(40), LastBlockSize: 1, Hashes: []*rsync.BlockHash{hash}}
		}
		return frames.Send(kind, packedFor(map[string]any{"staged": h.random.IntN(4) == 0}, signature))
	case 'd':
		reply, _ := json.Marshal(map[string]any{"staged": h.random.IntN(2) == 0})
		return frames.Send(kind, reply)
	case 'n':
		var operations []proto.Message
		for range h.random.IntN(4) {
			operation := &rsync.Operation{Data: []byte(h.pick(hostileContents...))}
			if !h.valid && h.random.IntN(10) == 0 {
				operation = &rsync.Operation{Start: h.random.Uint64(), Count: h.random.Uint64() >> h.random.IntN(60)}
			}
			operations = append(operations, operation)
		}
		return frames.Send(kind, packedFor(map[string]any{"last": h.random.IntN(2) == 0}, operations...))
	}
	return frames.Send(kind, nil)
}

func (h *hostile) supply(frames *wire.Frames, paths []string) error {
	for range paths {
		for _, content := range hostileContents {
			if h.random.IntN(3) > 0 || content == "" {
				continue
			}
			operation := &rsync.Operation{Data: []byte(content)}
			if !h.valid && h.random.IntN(10) == 0 {
				operation = &rsync.Operation{Start: h.random.Uint64(), Count: 1 + h.random.Uint64()/2}
			}
			raw, _ := proto.Marshal(&rsync.Transmission{ExpectedSize: h.random.Uint64(), Operation: operation})
			if err := frames.Write('p', raw); err != nil {
				return err
			}
			break
		}
		raw, _ := proto.Marshal(&rsync.Transmission{Done: true})
		if err := frames.Write('p', raw); err != nil {
			return err
		}
	}
	return frames.Send('q', nil)
}

// changed claims of each change that something came of it.
func (h *hostile) changed(frames *wire.Frames, in *bytes.Reader) error {
	var nothing struct{}
	_ = wire.ReceiveHead(in, &nothing)
	var results []proto.Message
	for in.Len() > 0 {
		change := &core.Change{}
		if protodelim.UnmarshalFrom(in, change) != nil {
			break
		}
		result := &core.Archive{Content: change.New}
		if !h.valid && h.random.IntN(4) == 0 {
			result.Content = h.entry(0)
		}
		results = append(results, result)
	}
	body := packedFor(map[string]any{"results": len(results), "missing": h.random.IntN(3) == 0}, results...)
	return frames.Send('x', append(body, packedFor(struct{}{}, &core.Problem{Path: h.name(), Error: "no"})...))
}

func (h *hostile) tree(stream io.ReadWriteCloser) {
	if wire.Send(stream, wire.AttachReply{}) != nil {
		return
	}
	frames := wire.NewCompressedFrames(stream, anything)
	for {
		kind, body, err := frames.Read()
		if err != nil || kind == 'p' && h.random.IntN(200) == 0 {
			return
		}
		if kind != 'p' && kind != 'q' && h.answer(frames, kind, body) != nil {
			return
		}
	}
}

func (h *hostile) file(stream io.ReadWriteCloser) {
	frames := wire.NewFrames(stream, anything)
	go func() {
		for {
			if _, _, err := frames.Read(); err != nil {
				return
			}
			_ = frames.SendJSON('d', single.WriteResult{Stale: true})
		}
	}()
	for range 50 {
		content := h.pick(hostileContents...)
		body, _ := wire.Pack(single.State{Exists: true, Digest: "made up", Mode: h.random.Uint32()}, []byte(content))
		if frames.Send('s', body) != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// acceptStreams is the machine's end of a link to an agent that serves its streams so.
func acceptStreams(serve func(*wire.Link, wire.Conn)) io.ReadWriteCloser {
	near, far := net.Pipe()
	go func() {
		link, err := wire.Start(far, false)
		if err != nil {
			return
		}
		for {
			stream, err := link.AcceptStream(context.Background())
			if err != nil {
				return
			}
			serve(link, stream)
		}
	}()
	return near
}

// open implements reach.
func (h *hostile) open(context.Context) (io.ReadWriteCloser, string, error) {
	return acceptStreams(func(link *wire.Link, stream wire.Conn) {
		// A link that was lost may still have streams when the next one is made.
		h.lock.Lock()
		seed := h.random.Uint64()
		h.lock.Unlock()
		go h.serve(link, stream, seed)
	}), "hostile", nil
}

func (h *hostile) serve(link *wire.Link, stream wire.Conn, seed uint64) {
	var head wire.Open
	if wire.Receive(stream, &head) != nil {
		return
	}
	// Each stream has its own sequence, so that a seed tells as much as it can.
	own := &hostile{random: rand.New(rand.NewPCG(seed, 1)), root: h.root}
	own.valid = own.random.IntN(3) > 0
	switch head.Kind {
	case "control":
		var hello wire.Hello
		_ = wire.Receive(stream, &hello)
		_ = wire.Send(stream, wire.Welcome{Volume: own.pick("one", "two"), Fresh: own.random.IntN(2) == 0, Boot: "boot"})
		if other, err := link.OpenStream(context.Background()); err == nil {
			_ = wire.Send(other, wire.Open{Kind: own.pick("reverse", "tree", "file"), Body: []byte("22")})
		}
	case "tree":
		own.tree(stream)
		stream.Close()
	case "file":
		own.file(stream)
	}
}

// FuzzAHostileAgent lets agents send any message: nothing outside the folder is opened.
func FuzzAHostileAgent(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		t.Parallel()
		w := newWorld(t)
		outside := w.outsider()
		write(t, w.here(".git/config"), "the developer's")
		write(t, w.here(".stignore"), "the developer's")
		write(t, w.here("nginx.conf"), "the developer's")
		write(t, w.here("sub/file"), "x")
		write(t, w.here("d/file"), "x")
		must(t, os.Symlink("../outside", w.here("mine")))
		w.config.Folders = []FolderConfig{
			{Local: w.here(""), Remote: "/app", Within: w.here(""), Ignores: ignored},
			{Local: w.here("nginx.conf"), Remote: "/etc/nginx.conf", Within: w.here(""), File: true},
			{Local: w.here("sub"), Remote: "/sub", Within: w.here(""), Ignores: ignored},
		}
		must(t, os.RemoveAll(w.there("")))
		w.dialer = &hostile{random: rand.New(rand.NewPCG(seed, 0)), root: w.root}
		for range 2 {
			w.agent = nil
			w.startAgainst()
			time.Sleep(300 * time.Millisecond)
			w.stop()
		}
		equal(t, "the developer's", read(w.here(".git/config")))
		equal(t, "the developer's", read(w.here(".stignore")))
		for _, name := range []string{".GIT", ".git/hooks", ".git/a"} {
			w.goes(w.here(name))
		}
		must(t, os.Remove(w.here("mine")))
		linksInside(t, w.here(""))
		outside.untouched()
	})
}

// How many changes of hostile agents are done at all: a fuzz that is refused at once shows nothing.
func TestHostileAgentsAreTakenSeriously(t *testing.T) {
	t.Parallel()
	made := 0
	// Six make that many, unless the machine is busy.
	for seed := uint64(0); made < 10; seed++ {
		if seed == 40 {
			t.Fatalf("only %d entries were ever made", made)
		}
		w := newWorld(t)
		w.dialer = &hostile{random: rand.New(rand.NewPCG(seed, 0)), root: w.root}
		w.startAgainst()
		time.Sleep(300 * time.Millisecond)
		w.stop()
		entries, err := os.ReadDir(w.here(""))
		must(t, err)
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), ".") {
				made++
			}
		}
		_ = filepath.WalkDir(w.here(""), func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				made++
			}
			return nil
		})
	}
}
