package tree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"

	"composeplat/link/internal/wire"
)

// Remote is a Side at the other end of a stream. What comes from there is believed only as far as it is valid, and only
// what the rules of this end let through is seen.
type Remote struct {
	frames *wire.Frames
	rules  *rules
	// asked is the kind of frame that may answer now, if any.
	asked   atomic.Uint32
	answers chan answer
	changed chan struct{}
	view    *View

	lock    sync.Mutex
	trouble string
}

type answer struct {
	kind byte
	body []byte
	err  error
}

// maxQueued is how many frames wait to be used: contents of files, which come one after another.
const maxQueued = 4

// NewRemote makes a Side of a stream. The ignores are the rules; what the other end knows of them does not count.
func NewRemote(stream io.ReadWriteCloser, ignores []string) (*Remote, error) {
	rules, err := newRules(ignores)
	if err != nil {
		return nil, err
	}
	r := &Remote{rules: rules, answers: make(chan answer, maxQueued), changed: make(chan struct{}, 1), view: &View{}}
	r.frames = wire.NewFrames(stream, r.limit)
	go r.read()
	return r, nil
}

// limit lets through what may come at any time, and answers to what was asked.
func (r *Remote) limit(kind byte) (bytes uint32, expected bool) {
	asked := byte(r.asked.Load())
	switch kind {
	case frameChanged, frameTrouble:
	case frameFailure:
		expected = asked != 0
	case framePart, framePartEnd:
		expected = asked == frameSupply
	default:
		expected = kind == asked && kind != frameSupply
	}
	bytes, known := limits.Of(kind)
	return bytes, known && (expected || kind == frameChanged || kind == frameTrouble)
}

func (r *Remote) read() {
	for {
		kind, body, err := r.frames.Read()
		switch {
		case err == nil && kind == frameChanged:
			select {
			case r.changed <- struct{}{}:
			default:
			}
		case err == nil && kind == frameTrouble:
			r.lock.Lock()
			r.trouble = string(body)
			r.lock.Unlock()
		default:
			if kind != framePart {
				r.asked.Store(0)
			}
			r.answers <- answer{kind, body, err}
			if err != nil {
				close(r.answers)
				return
			}
		}
	}
}

func (r *Remote) Changed() <-chan struct{} { return r.changed }

func (r *Remote) Trouble() string {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.trouble
}

func (r *Remote) Close() error {
	err := r.frames.Close()
	go func() {
		for range r.answers {
		}
	}()
	return err
}

func (r *Remote) next() (byte, []byte, error) {
	reply, open := <-r.answers
	if !open {
		return 0, nil, ErrLost
	}
	if reply.err != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrLost, reply.err)
	}
	return reply.kind, reply.body, nil
}

func (r *Remote) ask(kind byte, body []byte) (*bytes.Reader, error) {
	r.asked.Store(uint32(kind))
	if err := r.frames.Send(kind, body); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	got, reply, err := r.next()
	switch {
	case err != nil:
		return nil, err
	case got == frameFailure:
		return nil, errors.New(string(reply))
	case got != kind:
		return nil, lied(fmt.Errorf("answers %q to %q", got, kind))
	}
	return bytes.NewReader(reply), nil
}

// lied is for an answer that makes no sense: the link is not to be used any more.
func lied(err error) error {
	return fmt.Errorf("%w: its agent's answer is not valid: %w", ErrLost, err)
}

func (r *Remote) Scan(_ context.Context, full bool) (*View, error) {
	request, err := wire.Pack(scanRequest{Full: full}, nil)
	if err != nil {
		return nil, err
	}
	in, err := r.ask(frameScan, request)
	if err != nil {
		return nil, err
	}
	var head scanAnswer
	if err := wire.ReceiveHead(in, &head); err != nil {
		return nil, lied(err)
	}
	changes, err := unpack(in, newChange, -1)
	if err != nil {
		return nil, lied(err)
	}
	if len(changes) == 0 && len(head.Modes) == 0 && len(head.Gone) == 0 {
		return r.view, nil
	}
	for _, change := range changes {
		if why := checkPath(change.Path); why != nil {
			return nil, lied(why)
		}
		if err := change.New.EnsureValid(false); err != nil {
			return nil, lied(err)
		}
		change.New = r.rules.restrict(change.Path, change.New)
	}
	content, err := apply(r.view.Content, changes)
	if err != nil {
		return nil, lied(err)
	}
	modes := make(map[string]uint32, len(r.view.Modes)+len(head.Modes))
	maps.Copy(modes, r.view.Modes)
	for _, path := range head.Gone {
		delete(modes, path)
	}
	for path, mode := range head.Modes {
		modes[path] = mode & 0o777
	}
	r.view = &View{Content: content, Modes: modes, Files: head.Files, Bytes: head.Bytes}
	return r.view, nil
}

// checkPath says what is wrong with a path: it is names, with a slash between each, or nothing.
func checkPath(name string) error {
	if len(name) > maxPath || strings.Count(name, "/") > maxDepth {
		return errors.New("a path that is too long")
	}
	for part := range strings.SplitSeq(name, "/") {
		if name != "" && (part == "" || part == "." || part == ".." || strings.ContainsRune(part, 0)) {
			return fmt.Errorf("a path that is none: %q", name)
		}
	}
	return nil
}

// maxPath is the longest path that the systems take.
const maxPath = 4096

// apply puts changes that came from outside into a tree and checks what comes of it.
func apply(content *core.Entry, changes []*core.Change) (result *core.Entry, err error) {
	defer func() {
		// The engine trusts that a change's folder is there.
		if recover() != nil {
			result, err = nil, errors.New("a change of what is not there")
		}
	}()
	if result, err = core.Apply(content, changes); err != nil {
		return nil, err
	}
	return result, result.EnsureValid(false)
}

func (r *Remote) Stage(paths []string, digests [][]byte) ([]string, []*rsync.Signature, rsync.Receiver, error) {
	request, err := wire.Pack(stageRequest{Paths: paths, Digests: digests}, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	in, err := r.ask(frameStage, request)
	if err != nil {
		return nil, nil, nil, err
	}
	var head stageAnswer
	if err := wire.ReceiveHead(in, &head); err != nil {
		return nil, nil, nil, lied(err)
	}
	signatures, err := unpack(in, newSignature, len(head.Needed))
	if err != nil {
		return nil, nil, nil, lied(err)
	}
	if len(head.Needed) == 0 {
		return nil, nil, nil, nil
	}
	if len(signatures) != len(head.Needed) {
		return nil, nil, nil, lied(errors.New("too few signatures"))
	}
	needed := make([]string, len(head.Needed))
	last := -1
	for i, at := range head.Needed {
		if at <= last || at >= len(paths) {
			return nil, nil, nil, lied(errors.New("asks for what was not offered"))
		}
		if err := checkSignature(signatures[i]); err != nil {
			return nil, nil, nil, lied(err)
		}
		needed[i], last = paths[at], at
	}
	return needed, signatures, rsync.NewEncodingReceiver(parts{r.frames}), nil
}

func (r *Remote) Keep(paths []string, digests [][]byte) ([]bool, error) {
	request, err := wire.Pack(stageRequest{Paths: paths, Digests: digests}, nil)
	if err != nil {
		return nil, err
	}
	in, err := r.ask(frameKeep, request)
	if err != nil {
		return nil, err
	}
	var reply keepAnswer
	if err := json.NewDecoder(in).Decode(&reply); err != nil {
		return nil, lied(err)
	}
	if len(reply.Had) != len(paths) {
		return nil, lied(errors.New("not as many answers as paths"))
	}
	return reply.Had, nil
}

func (r *Remote) Supply(paths []string, signatures []*rsync.Signature, receiver rsync.Receiver) error {
	request, err := packed(supplyRequest{Paths: paths}, signatures)
	if err != nil {
		return err
	}
	r.asked.Store(frameSupply)
	if err := r.frames.Send(frameSupply, request); err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	source := &partSource{next: r.next, signatures: signatures}
	if err := rsync.DecodeToReceiver(source, uint64(len(paths)), receiver); err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	if kind, _, err := r.next(); err != nil || kind != framePartEnd {
		return fmt.Errorf("%w: contents do not end", ErrLost)
	}
	return nil
}

func (r *Remote) Transition(_ context.Context, changes []*core.Change) (*Outcome, error) {
	request, err := packed(struct{}{}, changes)
	if err != nil {
		return nil, err
	}
	in, err := r.ask(frameChange, request)
	if err != nil {
		return nil, err
	}
	var head changeAnswer
	if err := wire.ReceiveHead(in, &head); err != nil {
		return nil, lied(err)
	}
	if head.Results != len(changes) {
		return nil, lied(errors.New("not as many results as changes"))
	}
	results, err := unpack(in, newArchive, head.Results)
	if err != nil || len(results) != head.Results {
		return nil, lied(errors.New("not as many results as told"))
	}
	outcome := &Outcome{Missing: head.Missing}
	for _, result := range results {
		if err := result.Content.EnsureValid(true); err != nil {
			return nil, lied(err)
		}
		outcome.Results = append(outcome.Results, result.Content)
	}
	var nothing struct{}
	if err := wire.ReceiveHead(in, &nothing); err != nil {
		return nil, lied(err)
	}
	if outcome.Problems, err = unpack(in, newProblem, -1); err != nil {
		return nil, lied(err)
	}
	return outcome, nil
}

func (r *Remote) SetModes(modes map[string]uint32) (map[string]string, error) {
	request, err := wire.Pack(modes, nil)
	if err != nil {
		return nil, err
	}
	in, err := r.ask(frameModes, request)
	if err != nil {
		return nil, err
	}
	var reply modesAnswer
	if err := json.NewDecoder(in).Decode(&reply); err != nil {
		return nil, lied(err)
	}
	maps.DeleteFunc(reply.Refused, func(path, _ string) bool {
		_, asked := modes[path]
		return !asked
	})
	return reply.Refused, nil
}
