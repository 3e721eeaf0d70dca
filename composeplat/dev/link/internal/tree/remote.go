package tree

import (
	"bytes"
	"context"
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

// Remote is a Side at the other end of a stream. That end is not trusted: its answers are validated, and the rules of this
// end decide which entries are visible.
type Remote struct {
	frames *wire.Frames
	rules  *rules
	// pending is the kind of the request that awaits an answer, or 0.
	pending atomic.Uint32
	answers chan answer
	changed chan struct{}
	view    *View
	// entries and modes are at least as many as the view has.
	entries, modes int
	// large are the sizes of the view's large files.
	large map[string]uint64
	// withoutModes is set by the first answer that says so.
	withoutModes bool

	lock       sync.Mutex
	watchError string
}

type answer struct {
	kind byte
	body []byte
	err  error
}

// maxQueued is how many frames with file contents may wait to be read.
const maxQueued = 4

// NewRemote returns the Side at the other end of a stream. The ignore patterns of this end apply, whatever the other end
// knows of them.
func NewRemote(stream io.ReadWriteCloser, ignores []string) (*Remote, error) {
	rules, err := newRules(ignores)
	if err != nil {
		return nil, err
	}
	r := &Remote{rules: rules, answers: make(chan answer, maxQueued), changed: make(chan struct{}, 1), view: &View{}}
	r.frames = wire.NewCompressedFrames(stream, r.limit)
	go r.read()
	return r, nil
}

// limit allows the frames that may arrive at any time, and the answers to the pending request.
func (r *Remote) limit(kind byte) (bytes uint32, expected bool) {
	asked := byte(r.pending.Load())
	switch kind {
	case frameChanged, frameWatchError:
	case frameFailure:
		expected = asked != 0
	case framePart, framePartEnd:
		expected = asked == frameSupply
	default:
		expected = kind == asked && kind != frameSupply
	}
	bytes, known := limits.Lookup(kind)
	return bytes, known && (expected || kind == frameChanged || kind == frameWatchError)
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
		case err == nil && kind == frameWatchError:
			r.lock.Lock()
			r.watchError = string(body)
			r.lock.Unlock()
		default:
			if kind != framePart {
				r.pending.Store(0)
			}
			r.answers <- answer{kind, body, err}
			if err != nil {
				close(r.answers)
				return
			}
		}
	}
}

// HasModes reports whether the other end's file system keeps permissions, as far as its last answer says.
func (r *Remote) HasModes() bool { return !r.withoutModes }

func (r *Remote) Changed() <-chan struct{} { return r.changed }

func (r *Remote) WatchError() string {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.watchError
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
	if err := checkLength(kind, body); err != nil {
		return nil, err
	}
	r.pending.Store(uint32(kind))
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
		return nil, invalidAnswer(fmt.Errorf("answers %q to %q", got, kind))
	}
	return bytes.NewReader(reply), nil
}

// invalidAnswer is the error for an answer that is not valid: the link must not be used any more.
func invalidAnswer(err error) error {
	return fmt.Errorf("%w: the agent's answer is not valid: %w", ErrLost, err)
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
	if err := receiveHead(in, &head, 2*maxEntries); err != nil {
		return nil, invalidAnswer(err)
	}
	changes, err := unpackMessages(in, newChange, -1)
	if err != nil {
		return nil, invalidAnswer(err)
	}
	if r.withoutModes = r.withoutModes || head.WithoutModes; r.withoutModes {
		head.Modes = nil
	}
	if len(changes) == 0 && len(head.Modes) == 0 && len(head.Gone) == 0 {
		return r.view, nil
	}
	for _, change := range changes {
		if why := checkPath(change.Path); why != nil {
			return nil, invalidAnswer(why)
		}
		if err := change.New.EnsureValid(false); err != nil {
			return nil, invalidAnswer(err)
		}
		change.New = r.rules.restrict(change.Path, change.New)
	}
	content, err := applyChanges(r.view.Content, changes)
	if err != nil {
		return nil, invalidAnswer(err)
	}
	if err := r.limitEntries(content, changes); err != nil {
		return nil, invalidAnswer(err)
	}
	since := r.view.Number
	for path, mode := range head.Modes {
		if EntryAt(content, path) == nil {
			delete(head.Modes, path)
			continue
		}
		head.Modes[path] = mode & 0o777
	}
	modes := r.view.Modes.with(head.Modes, head.Gone)
	if r.modes += len(head.Modes); r.modes > maxEntries {
		modes, r.modes = modes.of(content)
	}
	r.large = updateLarge(r.large, content, changes, head.Large)
	r.view = newView(content, modes, head.Files, head.Bytes)
	if r.view.Changed = head.paths(changes); r.view.Changed != nil {
		r.view.Since = since
	}
	return r.view, nil
}

// limitEntries limits how many entries all answers together may have. The tree is counted only when new ones may have made it
// too large.
func (r *Remote) limitEntries(content *core.Entry, changes []*core.Change) error {
	count := func(entry *core.Entry) (entries int) {
		Walk("", entry, func(string, *core.Entry) { entries++ })
		return entries
	}
	for _, change := range changes {
		r.entries += count(change.New)
	}
	if r.entries > maxEntries {
		r.entries = count(content)
	}
	if r.entries > maxEntries {
		return fmt.Errorf("more than %d entries", maxEntries)
	}
	return nil
}

// checkPath returns what is wrong with a path, which must be empty, or names separated by slashes.
func checkPath(name string) error {
	if len(name) > maxPathLength || strings.Count(name, "/") > maxDepth {
		return errors.New("the path is too long")
	}
	for part := range strings.SplitSeq(name, "/") {
		if name != "" && (part == "" || part == "." || part == ".." || strings.ContainsRune(part, 0)) {
			return fmt.Errorf("not a valid path: %q", name)
		}
	}
	return nil
}

// maxPathLength is the longest path that operating systems accept.
const maxPathLength = 4096

// applyChanges applies changes of the other end to a tree and validates the result, of which the entries themselves must be
// valid.
func applyChanges(content *core.Entry, changes []*core.Change) (result *core.Entry, err error) {
	defer func() {
		// The engine trusts that a change's folder is there.
		if recover() != nil {
			result, err = nil, errNoParent
		}
	}()
	if result, err = Apply(content, changes); err != nil || len(changes) <= maxNarrow {
		return result, err
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
	if err := receiveHead(in, &head, len(paths)); err != nil {
		return nil, nil, nil, invalidAnswer(err)
	}
	signatures, err := unpackMessages(in, newSignature, len(head.Needed))
	if err != nil {
		return nil, nil, nil, invalidAnswer(err)
	}
	if len(head.Needed) == 0 {
		return nil, nil, nil, nil
	}
	if len(signatures) != len(head.Needed) {
		return nil, nil, nil, invalidAnswer(errors.New("too few signatures"))
	}
	needed := make([]string, len(head.Needed))
	last := -1
	for i, at := range head.Needed {
		if at <= last || at >= len(paths) {
			return nil, nil, nil, invalidAnswer(errors.New("asks for what was not offered"))
		}
		if err := checkSignature(signatures[i]); err != nil {
			return nil, nil, nil, invalidAnswer(err)
		}
		needed[i], last = paths[at], at
	}
	return needed, signatures, rsync.NewEncodingReceiver(partEncoder{r.frames}), nil
}

// askJSON sends a request of a kind and reads an answer that is one message, with so many values at most.
func (r *Remote) askJSON(kind byte, body []byte, answer any, values int) error {
	in, err := r.ask(kind, body)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(in)
	if err == nil {
		err = decodeHead(raw, answer, values)
	}
	if err != nil {
		return invalidAnswer(err)
	}
	return nil
}

func (r *Remote) StageCopies(paths []string, digests [][]byte) ([]bool, error) {
	request, err := wire.Pack(stageRequest{Paths: paths, Digests: digests}, nil)
	if err != nil {
		return nil, err
	}
	var reply copiesAnswer
	if err := r.askJSON(frameCopies, request, &reply, len(paths)); err != nil {
		return nil, err
	}
	if len(reply.Had) != len(paths) {
		return nil, invalidAnswer(errors.New("not as many answers as paths"))
	}
	return reply.Had, nil
}

func (r *Remote) Supply(paths []string, signatures []*rsync.Signature, receiver rsync.Receiver) error {
	request, err := packMessages(supplyRequest{Paths: paths}, signatures)
	if err != nil {
		return err
	}
	if err := checkLength(frameSupply, request); err != nil {
		return err
	}
	r.pending.Store(frameSupply)
	if err := r.frames.Send(frameSupply, request); err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	source := &partDecoder{next: r.next, signatures: signatures}
	if err := rsync.DecodeToReceiver(source, uint64(len(paths)), receiver); err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	if kind, _, err := r.next(); err != nil || kind != framePartEnd {
		return fmt.Errorf("%w: contents do not end", ErrLost)
	}
	return nil
}

func (r *Remote) Transition(_ context.Context, changes []*core.Change, with Additions) (*Outcome, error) {
	if entries, depth := measure(changes); entries > maxEntries || depth > maxSentDepth {
		return nil, errTooLarge
	}
	request, err := packMessages(with, changes)
	if err != nil {
		return nil, err
	}
	in, err := r.ask(frameChange, request)
	if err != nil {
		return nil, err
	}
	var head changeAnswer
	if err := receiveHead(in, &head, len(with.Modes)); err != nil {
		return nil, invalidAnswer(err)
	}
	if head.Results != len(changes) {
		return nil, invalidAnswer(errors.New("not as many results as changes"))
	}
	results, err := unpackMessages(in, newArchive, head.Results)
	if err != nil || len(results) != head.Results {
		return nil, invalidAnswer(errors.New("fewer results than announced"))
	}
	outcome := &Outcome{Missing: head.Missing, Refused: onlyAsked(head.Refused, with.Modes)}
	for _, result := range results {
		if err := result.Content.EnsureValid(true); err != nil {
			return nil, invalidAnswer(err)
		}
		outcome.Results = append(outcome.Results, result.Content)
	}
	var nothing struct{}
	if err := wire.ReceiveHead(in, &nothing); err != nil {
		return nil, invalidAnswer(err)
	}
	if outcome.Problems, err = unpackMessages(in, newProblem, -1); err != nil {
		return nil, invalidAnswer(err)
	}
	return outcome, nil
}

func (r *Remote) SetModes(modes map[string]uint32) (map[string]string, error) {
	request, err := wire.Pack(modes, nil)
	if err != nil {
		return nil, err
	}
	var reply modesAnswer
	if err := r.askJSON(frameModes, request, &reply, len(modes)); err != nil {
		return nil, err
	}
	return onlyAsked(reply.Refused, modes), nil
}

// onlyAsked removes the paths that were not asked for.
func onlyAsked(refused map[string]string, modes map[string]uint32) map[string]string {
	maps.DeleteFunc(refused, func(path, _ string) bool {
		_, asked := modes[path]
		return !asked
	})
	return refused
}
