package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"

	"composeplat/link/internal/wire"
)

// The contents of large files at the other end of a stream: the requests of a Remote, and their answers.

func (r *Remote) Size(path string) uint64 { return r.large[path] }

// updateLarge returns the sizes of large files after changes. Those of paths that are no files are not kept: the other end is
// not trusted.
func updateLarge(before map[string]uint64, content *core.Entry, changes []*core.Change, now map[string]uint64) map[string]uint64 {
	changed := map[string]bool{}
	for _, change := range changes {
		changed[change.Path] = true
	}
	after := maps.Clone(before)
	maps.DeleteFunc(after, func(path string, _ uint64) bool {
		_, isChanged := Nearest(path, changed)
		return isChanged
	})
	for path, size := range now {
		if EntryAt(content, path).GetKind() == core.EntryKind_File && size >= LargeFile {
			if after == nil {
				after = map[string]uint64{}
			}
			after[path] = size
		}
	}
	return after
}

// largeIn returns the sizes of the large files in changes.
func (t *Tree) largeIn(changes []*core.Change) map[string]uint64 {
	t.lock.Lock()
	defer t.lock.Unlock()
	large := map[string]uint64{}
	for _, change := range changes {
		Walk(change.Path, change.New, func(path string, _ *core.Entry) {
			if size := t.largeSize(path); size > 0 {
				large[path] = size
			}
		})
	}
	return large
}

func (r *Remote) Receive(path string, digest []byte) (*rsync.Signature, error) {
	request, err := wire.Pack(receiveRequest{Path: path, Digest: digest}, nil)
	if err != nil {
		return nil, err
	}
	in, err := r.ask(frameReceive, request)
	if err != nil {
		return nil, err
	}
	var head receiveAnswer
	if err := wire.ReceiveHead(in, &head); err != nil {
		return nil, invalidAnswer(err)
	}
	if head.Staged {
		return nil, nil
	}
	signature, err := unpackSignature(in)
	if err == nil {
		err = checkSignature(signature)
	}
	if err != nil {
		return nil, invalidAnswer(err)
	}
	return signature, nil
}

func unpackSignature(in *bytes.Reader) (*rsync.Signature, error) {
	signatures, err := unpackMessages(in, newSignature, 1)
	if err != nil {
		return nil, err
	}
	if len(signatures) != 1 {
		return nil, errors.New("no signature")
	}
	return signatures[0], nil
}

func (r *Remote) Put(digest []byte, piece *Piece) (bool, error) {
	request, err := packMessages(pieceHead{Digest: digest, IsLast: piece.IsLast}, piece.Operations)
	if err != nil {
		return false, err
	}
	var reply putAnswer
	err = r.askJSON(framePut, request, &reply, 0)
	return reply.Staged, err
}

func (r *Remote) Open(path string, digest []byte, signature *rsync.Signature) error {
	request, err := packMessages(openRequest{path, digest}, []*rsync.Signature{signature})
	if err != nil {
		return err
	}
	_, err = r.ask(frameOpen, request)
	return err
}

func (r *Remote) Next(digest []byte, limit int) (*Piece, error) {
	request, err := wire.Pack(nextRequest{digest, limit}, nil)
	if err != nil {
		return nil, err
	}
	in, err := r.ask(frameNext, request)
	if err != nil {
		return nil, err
	}
	_, piece, err := unpackPiece(in)
	if err != nil {
		return nil, invalidAnswer(err)
	}
	return piece, nil
}

func unpackPiece(in *bytes.Reader) (digest []byte, piece *Piece, err error) {
	var head pieceHead
	if err := wire.ReceiveHead(in, &head); err != nil {
		return nil, nil, err
	}
	operations, err := unpackMessages(in, newOperation, maxOperations)
	if err == nil && in.Len() > 0 {
		err = errLongPiece
	}
	return head.Digest, &Piece{Operations: operations, IsLast: head.IsLast}, err
}

func (r *Remote) Keep(digests [][]byte) error {
	request, err := wire.Pack(keepRequest{digests}, nil)
	if err == nil {
		_, err = r.ask(frameKeep, request)
	}
	return err
}

func (r *Remote) End(digest []byte) error {
	_, err := r.ask(frameEnd, digest)
	return err
}

// answerContents answers a request about the contents of large files.
func (s *server) answerContents(kind byte, body []byte) ([]byte, error) {
	in := bytes.NewReader(body)
	switch kind {
	case frameReceive:
		return s.receive(in)
	case framePut:
		return s.put(in)
	case frameOpen:
		return nil, s.open(in)
	case frameNext:
		return s.next(in)
	case frameKeep:
		var request keepRequest
		if err := wire.ReceiveHead(in, &request); err != nil {
			return nil, err
		}
		return nil, s.tree.Keep(request.Digests)
	}
	return nil, s.tree.End(body)
}

func (s *server) put(in *bytes.Reader) ([]byte, error) {
	digest, piece, err := unpackPiece(in)
	if err != nil {
		return nil, err
	}
	staged, err := s.tree.Put(digest, piece)
	if err != nil {
		return nil, err
	}
	return json.Marshal(putAnswer{staged})
}

func (s *server) receive(in *bytes.Reader) ([]byte, error) {
	var request receiveRequest
	if err := wire.ReceiveHead(in, &request); err != nil {
		return nil, err
	}
	signature, err := s.tree.Receive(request.Path, request.Digest)
	if err != nil {
		return nil, err
	}
	if signature == nil {
		return wire.Pack(receiveAnswer{Staged: true}, nil)
	}
	return packMessages(receiveAnswer{}, []*rsync.Signature{signature})
}

func (s *server) open(in *bytes.Reader) error {
	var request openRequest
	if err := wire.ReceiveHead(in, &request); err != nil {
		return err
	}
	signature, err := unpackSignature(in)
	if err != nil {
		return err
	}
	return s.tree.Open(request.Path, request.Digest, signature)
}

func (s *server) next(in *bytes.Reader) ([]byte, error) {
	var request nextRequest
	if err := wire.ReceiveHead(in, &request); err != nil {
		return nil, err
	}
	piece, err := s.tree.Next(request.Digest, request.Bytes)
	if err != nil {
		return nil, err
	}
	return packMessages(pieceHead{IsLast: piece.IsLast}, piece.Operations)
}
