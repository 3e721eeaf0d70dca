package tree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"

	"composeplat/link/internal/wire"
)

// Serve answers the requests of a Remote from the tree, until the stream ends.
func Serve(t *Tree, stream io.ReadWriteCloser) error {
	s := &server{tree: t, frames: wire.NewCompressedFrames(stream, limits.Lookup)}
	ended := make(chan struct{})
	defer close(ended)
	defer stream.Close()
	defer t.EndAll()
	go s.sendChanges(ended)
	for {
		kind, body, err := s.frames.Read()
		if err != nil {
			return err
		}
		if err := s.answer(kind, body); err != nil {
			return err
		}
	}
}

type server struct {
	tree   *Tree
	frames *wire.Frames
	sent   *View
	// entries are at least as many as the sent view has.
	entries int
}

// checkSize returns errTooLarge for changes that the other end would not take, as of all that it has then.
func (s *server) checkSize(view *View, changes []*core.Change) error {
	entries, depth := measure(changes)
	if depth > maxSentDepth || entries > maxEntries {
		return errTooLarge
	}
	if s.entries += entries; s.entries > maxEntries {
		s.entries, _ = measure([]*core.Change{{New: view.Content}})
	}
	if s.entries > maxEntries {
		return errTooLarge
	}
	return nil
}

func (s *server) sendChanges(ended <-chan struct{}) {
	trouble := ""
	for {
		select {
		case <-ended:
			return
		case <-s.tree.Changed():
			if now := s.tree.WatchError(); now != trouble {
				trouble = now
				_ = s.frames.Send(frameWatchError, []byte(now))
			}
			if s.frames.Send(frameChanged, nil) != nil {
				return
			}
		}
	}
}

// answer returns an error if the stream can't be used any more; other failures are sent to the Remote.
func (s *server) answer(kind byte, body []byte) error {
	var reply []byte
	var err error
	in := bytes.NewReader(body)
	switch kind {
	case frameScan:
		reply, err = s.scan(in)
	case frameStage:
		return s.stage(in)
	case frameSupply:
		return s.supply(in)
	case frameCopies:
		reply, err = s.stageCopies(in)
	case frameChange:
		reply, err = s.change(in)
	case frameModes:
		reply, err = s.setModes(in)
	case frameReceive, framePut, frameOpen, frameNext, frameKeep, frameEnd:
		reply, err = s.answerContents(kind, body)
	default:
		return fmt.Errorf("unknown request %q", kind)
	}
	if err != nil {
		return s.frames.Send(frameFailure, []byte(err.Error()))
	}
	return s.frames.Send(kind, reply)
}

func (s *server) scan(in *bytes.Reader) ([]byte, error) {
	var request scanRequest
	if err := wire.ReceiveHead(in, &request); err != nil {
		return nil, err
	}
	view, err := s.tree.Scan(context.Background(), request.Full)
	if err != nil {
		return nil, err
	}
	if view.Files > maxEntries {
		return nil, errTooLarge
	}
	answer := scanAnswer{Modes: map[string]uint32{}, Files: view.Files, Bytes: view.Bytes, WithoutModes: !s.tree.HasModes()}
	before := s.sent
	if before == nil {
		before = &View{}
	}
	if before == view {
		return wire.Pack(answer, nil)
	}
	changes := answer.compare(before, view)
	if err := s.checkSize(view, changes); err != nil {
		return nil, err
	}
	answer.Large = s.tree.largeIn(changes)
	for i, change := range changes {
		changes[i] = &core.Change{Path: change.Path, New: change.New}
	}
	reply, err := packMessages(answer, changes)
	if err == nil {
		err = checkLength(frameScan, reply)
	}
	if err == nil {
		s.sent = view
	}
	return reply, err
}

func (s *server) stage(in *bytes.Reader) error {
	var request stageRequest
	if err := wire.ReceiveHead(in, &request); err != nil {
		return err
	}
	needed, signatures, receiver, err := s.tree.Stage(request.Paths, request.Digests)
	if err != nil {
		return s.frames.Send(frameFailure, []byte(err.Error()))
	}
	var answer stageAnswer
	at := 0
	for i, path := range request.Paths {
		if at < len(needed) && needed[at] == path {
			answer.Needed = append(answer.Needed, i)
			at++
		}
	}
	reply, err := packMessages(answer, signatures)
	if err != nil {
		return err
	}
	if err := s.frames.Send(frameStage, reply); err != nil {
		return err
	}
	if len(needed) == 0 {
		return nil
	}
	if err := rsync.DecodeToReceiver(&partDecoder{next: s.frames.Read, signatures: signatures}, uint64(len(needed)), receiver); err != nil {
		return err
	}
	if kind, _, err := s.frames.Read(); err != nil || kind != framePartEnd {
		return errors.New("contents do not end")
	}
	return nil
}

func (s *server) supply(in *bytes.Reader) error {
	var request supplyRequest
	if err := wire.ReceiveHead(in, &request); err != nil {
		return err
	}
	signatures, err := unpackMessages(in, newSignature, len(request.Paths))
	if err != nil {
		return err
	}
	return s.tree.Supply(request.Paths, signatures, rsync.NewEncodingReceiver(partEncoder{s.frames}))
}

func (s *server) stageCopies(in *bytes.Reader) ([]byte, error) {
	var request stageRequest
	if err := wire.ReceiveHead(in, &request); err != nil {
		return nil, err
	}
	had, err := s.tree.StageCopies(request.Paths, request.Digests)
	if err != nil {
		return nil, err
	}
	return json.Marshal(copiesAnswer{Had: had})
}

func (s *server) change(in *bytes.Reader) ([]byte, error) {
	var with Additions
	if err := wire.ReceiveHead(in, &with); err != nil {
		return nil, err
	}
	changes, err := unpackMessages(in, newChange, -1)
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		if err := change.EnsureValid(true); err != nil {
			return nil, err
		}
	}
	outcome, err := s.tree.Transition(context.Background(), changes, with)
	if err != nil {
		return nil, err
	}
	results := make([]*core.Archive, len(outcome.Results))
	for i, result := range outcome.Results {
		results[i] = &core.Archive{Content: result}
	}
	reply, err := packMessages(changeAnswer{Results: len(results), Missing: outcome.Missing, Refused: outcome.Refused}, results)
	if err != nil {
		return nil, err
	}
	problems, err := packMessages(struct{}{}, outcome.Problems)
	return append(reply, problems...), err
}

func (s *server) setModes(in *bytes.Reader) ([]byte, error) {
	var modes map[string]uint32
	if err := wire.ReceiveHead(in, &modes); err != nil {
		return nil, err
	}
	refused, err := s.tree.SetModes(modes)
	if err != nil {
		return nil, err
	}
	return json.Marshal(modesAnswer{Refused: refused})
}
