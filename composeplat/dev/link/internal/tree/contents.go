package tree

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/mutagen-io/mutagen/pkg/filesystem"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"
	"google.golang.org/protobuf/proto"
)

// The contents of a large file are sent in pieces, so that other requests come between them: as the differences from the
// file that they replace, and staged by their digest until a Transition takes them or Keep drops them.

const (
	// LargeFile is the size in bytes from which a file is large.
	LargeFile = 4 << 20
	// MaxPiece is the maximum number of bytes of a piece.
	MaxPiece = 4 << 20
	// maxPieceFrame is the length of a piece with all that is around its bytes.
	maxPieceFrame = 2 * MaxPiece
	// maxOperations is how many operations a piece may have: each takes far more memory than bytes.
	maxOperations = 4096
	// maxPatched is how many bytes of the replaced file a piece may refer to.
	maxPatched = 64 << 20
	// maxRead is how many operations are read ahead.
	maxRead = 64
	// maxWait is how long a piece waits for contents: where a long part is as in the replaced file, all of it is compared first.
	maxWait = 50 * time.Millisecond
	// syncInterval is how many bytes are written before they must be on the disk: all at the end would take long.
	syncInterval = 8 << 20
)

// A Piece is a part of the contents of a file.
type Piece struct {
	Operations []*rsync.Operation
	IsLast     bool
}

// Length returns how many bytes of the contents are in the piece, for a side with the signature.
func (p *Piece) Length(signature *rsync.Signature) (length uint64) {
	for _, operation := range p.Operations {
		length += patched(operation, signature)
	}
	return length
}

// patched returns how many bytes an operation has or copies.
func patched(operation *rsync.Operation, signature *rsync.Signature) uint64 {
	return uint64(len(operation.Data)) + operation.Count*signature.BlockSize
}

// An outgoing reads the contents of a file ahead of the pieces.
type outgoing struct {
	signature *rsync.Signature
	read      chan *rsync.Operation
	// err is why reading has ended, once read is closed.
	err     error
	ended   chan struct{}
	endOnce sync.Once
	// next is the operation that did not fit into the last piece.
	next *rsync.Operation
}

var errEnded = errors.New("the contents are not needed any more")

func newOutgoing(file io.ReadCloser, signature *rsync.Signature) *outgoing {
	o := &outgoing{signature: signature, read: make(chan *rsync.Operation, maxRead), ended: make(chan struct{})}
	go func() {
		defer close(o.read)
		defer file.Close()
		o.err = rsync.NewEngine().Deltify(file, signature, 0, o.add)
	}()
	return o
}

// add passes on an operation, in parts that fit into a piece.
func (o *outgoing) add(operation *rsync.Operation) error {
	most := max(maxPatched/max(o.signature.BlockSize, 1), 1)
	for operation.Count > most {
		if err := o.send(&rsync.Operation{Start: operation.Start, Count: most}); err != nil {
			return err
		}
		operation = &rsync.Operation{Start: operation.Start + most, Count: operation.Count - most}
	}
	// The engine uses its buffer again.
	return o.send(proto.Clone(operation).(*rsync.Operation))
}

func (o *outgoing) send(operation *rsync.Operation) error {
	select {
	case o.read <- operation:
		return nil
	case <-o.ended:
		return errEnded
	}
}

func (o *outgoing) end() { o.endOnce.Do(func() { close(o.ended) }) }

// take returns the next piece, of about so many bytes. It is empty where nothing could be read for a moment.
func (o *outgoing) take(limit int) (*Piece, error) {
	piece := &Piece{}
	bytes, copied := 0, uint64(0)
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	for len(piece.Operations) < maxOperations {
		operation := o.next
		if o.next = nil; operation == nil {
			var open bool
			select {
			case operation, open = <-o.read:
			case <-timeout.C:
				return piece, nil
			}
			if !open {
				piece.IsLast = true
				return piece, o.err
			}
		}
		bytes, copied = bytes+len(operation.Data), copied+patched(operation, o.signature)
		if len(piece.Operations) > 0 && (bytes > limit || copied > maxPatched) {
			o.next = operation
			break
		}
		piece.Operations = append(piece.Operations, operation)
	}
	return piece, nil
}

// An incoming writes the pieces of a file's contents to the staging area.
type incoming struct {
	digest    []byte
	base      io.ReadSeekCloser
	signature *rsync.Signature
	engine    *rsync.Engine
	to        *sink
	unsynced  uint64
}

// put writes a piece. It returns whether the contents are complete and have the digest.
func (i *incoming) put(piece *Piece) (staged bool, err error) {
	if err := checkPiece(piece, i.signature); err != nil {
		return false, err
	}
	for _, operation := range piece.Operations {
		if err := i.engine.Patch(i.to, i.base, i.signature, operation); err != nil {
			return false, err
		}
		i.unsynced += patched(operation, i.signature)
	}
	if i.unsynced > syncInterval {
		i.unsynced = 0
		if err := i.to.file.Sync(); err != nil {
			return false, err
		}
	}
	return piece.IsLast && bytes.Equal(i.to.hash.Sum(nil), i.digest), nil
}

var errLongPiece = errors.New("a piece of contents is too large")

// checkPiece refuses what takes too much work, and blocks that the replaced file does not have.
func checkPiece(piece *Piece, signature *rsync.Signature) error {
	total, blocks := uint64(0), uint64(len(signature.Hashes))
	for _, operation := range piece.Operations {
		if err := operation.EnsureValid(); err != nil {
			return err
		}
		if operation.Count > blocks || operation.Start > blocks-operation.Count {
			return errNoBlocks
		}
		total += patched(operation, signature)
	}
	if total > 2*maxPatched || len(piece.Operations) > maxOperations {
		return errLongPiece
	}
	return nil
}

type nothing struct{ *bytes.Reader }

func (nothing) Close() error { return nil }

// Size returns the size of a file of the last view if it is large, and 0 otherwise.
func (t *Tree) Size(path string) uint64 {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.largeSize(path)
}

func (t *Tree) largeSize(path string) uint64 {
	if size := t.cache.Entries[path].GetSize(); size >= LargeFile {
		return size
	}
	return 0
}

func (t *Tree) Receive(path string, digest []byte) (*rsync.Signature, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.endContents(digest)
	if t.root == nil {
		return nil, errNoFolder
	}
	if err := t.staging.begin(); err != nil {
		return nil, err
	}
	if t.staging.find(path, digest) != "" {
		return nil, nil
	}
	in := &incoming{digest: digest, signature: &rsync.Signature{}, engine: rsync.NewEngine(), base: nothing{&bytes.Reader{}}}
	if t.cache.Entries[path] != nil {
		if base, err := openFile(t, path); err == nil {
			if in.signature, err = in.engine.Signature(base, 0); err == nil {
				in.base = base
			} else {
				in.signature = &rsync.Signature{}
				base.Close()
			}
		}
	}
	to, err := t.staging.Sink(path)
	if err != nil {
		in.base.Close()
		return nil, err
	}
	in.to = to.(*sink)
	t.incoming[string(digest)] = in
	return in.signature, nil
}

func openFile(t *Tree, path string) (io.ReadSeekCloser, error) {
	opener := filesystem.NewOpener(t.root.Path())
	defer opener.Close()
	file, _, err := opener.OpenFile(path)
	return file, err
}

func (t *Tree) Put(digest []byte, piece *Piece) (bool, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	in := t.incoming[string(digest)]
	if in == nil {
		return false, errEnded
	}
	staged, err := in.put(piece)
	if staged && err == nil {
		t.staging.hold(in.to)
		in.to = nil
	}
	if err != nil || piece.IsLast {
		t.endContents(digest)
	}
	return staged, err
}

func (t *Tree) Open(path string, digest []byte, signature *rsync.Signature) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.endContents(digest)
	if t.root == nil {
		return errNoFolder
	}
	file, err := openFile(t, path)
	if err == nil {
		t.outgoing[string(digest)] = newOutgoing(file, signature)
	}
	return err
}

func (t *Tree) Next(digest []byte, limit int) (*Piece, error) {
	t.lock.Lock()
	out := t.outgoing[string(digest)]
	t.lock.Unlock()
	if out == nil {
		return nil, errEnded
	}
	piece, err := out.take(min(max(limit, 1), MaxPiece))
	if err != nil || piece.IsLast {
		_ = t.End(digest)
	}
	return piece, err
}

func (t *Tree) End(digest []byte) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.endContents(digest)
	return nil
}

// endContents drops contents that are not complete, and ends reading them.
func (t *Tree) endContents(digest []byte) {
	if in := t.incoming[string(digest)]; in != nil {
		in.base.Close()
		if in.to != nil {
			t.staging.abandon(in.to)
		}
		delete(t.incoming, string(digest))
	}
	if out := t.outgoing[string(digest)]; out != nil {
		out.end()
		delete(t.outgoing, string(digest))
	}
}

// EndAll ends everything that Receive and Open have begun.
func (t *Tree) EndAll() {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.endAll()
}

func (t *Tree) endAll() {
	for digest := range t.incoming {
		t.endContents([]byte(digest))
	}
	for digest := range t.outgoing {
		t.endContents([]byte(digest))
	}
}

func (t *Tree) Keep(digests [][]byte) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.staging.keep(digests)
	return nil
}

// hold keeps the contents of a sink by their digest, until a Transition takes them.
func (s *stagingArea) hold(complete *sink) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.open, complete.name)
	if complete.file.Close() == nil {
		s.held[string(complete.hash.Sum(nil))] = complete.name
	}
}

// abandon removes the contents of a sink that is not complete.
func (s *stagingArea) abandon(incomplete *sink) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.open, incomplete.name)
	incomplete.file.Close()
	if s.folder != nil {
		_ = s.folder.Remove(incomplete.name)
	}
}

// keep removes contents that are held, but for those with the digests.
func (s *stagingArea) keep(digests [][]byte) {
	kept := map[string]bool{}
	for _, digest := range digests {
		kept[string(digest)] = true
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	for digest := range s.held {
		if !kept[digest] {
			s.drop(digest)
		}
	}
}

// forget removes contents that are held.
func (s *stagingArea) forget(digests [][]byte) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, digest := range digests {
		s.drop(string(digest))
	}
}

func (s *stagingArea) drop(digest string) {
	if name := s.held[digest]; name != "" && s.folder != nil {
		_ = s.folder.Remove(name)
	}
	delete(s.held, digest)
}

// removeOthers removes everything but what is held or still arrives, and returns whether there is such.
func (s *stagingArea) removeOthers() bool {
	kept := map[string]bool{}
	for _, name := range s.held {
		kept[name] = true
	}
	for name := range s.open {
		kept[name] = true
	}
	if len(kept) == 0 {
		return false
	}
	entries, _ := s.folder.Entries()
	for _, entry := range entries {
		if !kept[entry.Name()] {
			_ = s.folder.Remove(entry.Name())
		}
	}
	return true
}
