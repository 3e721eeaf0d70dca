package tree

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"composeplat/link/internal/wire"
)

// Kinds of frames on a tree stream: a request is answered by a frame of its own kind, or by a failure.
const (
	frameScan       = 's'
	frameStage      = 't'
	framePart       = 'p'
	framePartEnd    = 'q'
	frameSupply     = 'y'
	frameCopies     = 'k'
	frameChange     = 'x'
	frameModes      = 'm'
	frameReceive    = 'b'
	framePut        = 'd'
	frameOpen       = 'o'
	frameNext       = 'n'
	frameKeep       = 'g'
	frameEnd        = 'e'
	frameFailure    = 'f'
	frameChanged    = 'c'
	frameWatchError = 'u'
)

// limits are the maximum lengths of the frames on a tree stream.
var limits = wire.Limits{
	frameScan: wire.MaxBulk, frameStage: wire.MaxBulk, framePart: wire.MaxChunk, framePartEnd: 0,
	frameSupply: wire.MaxBulk, frameCopies: wire.MaxBulk, frameChange: wire.MaxBulk, frameModes: wire.MaxBulk,
	frameReceive: wire.MaxBulk, framePut: maxPieceFrame, frameOpen: wire.MaxBulk, frameNext: maxPieceFrame,
	frameKeep: wire.MaxBulk, frameEnd: wire.MaxHead,
	frameFailure: wire.MaxChunk, frameChanged: 0, frameWatchError: wire.MaxChunk,
}

// errTooLarge is reported instead of a frame that the other end would refuse: the link would be lost, again and again.
var errTooLarge = errors.New("too many files, or too long paths, to be synced: exclude some of them in .stignore")

// checkLength returns errTooLarge if a frame of a kind must not be so long.
func checkLength(kind byte, body []byte) error {
	if limit, known := limits.Lookup(kind); known && uint64(len(body)) > uint64(limit) {
		return errTooLarge
	}
	return nil
}

// measure returns how many entries changes have, and how deep their folders are nested.
func measure(changes []*core.Change) (entries, depth int) {
	var visit func(entry *core.Entry, at int)
	visit = func(entry *core.Entry, at int) {
		entries, depth = entries+1, max(depth, at)
		for _, inside := range entry.Contents {
			visit(inside, at+1)
		}
	}
	for _, change := range changes {
		entries++
		start := 0
		if change.Path != "" {
			start = strings.Count(change.Path, "/") + 1
		}
		if change.New != nil {
			visit(change.New, start)
		}
	}
	return entries, depth
}

const (
	// maxEntries is how many files, folders and links one message may hold: each takes far more memory than bytes.
	maxEntries = 1_000_000
	// maxDepth is how deep folders may be nested; operating systems limit paths anyway.
	maxDepth = 500
	// maxSentDepth is how deep they are in what is sent: the other end counts what is around them too.
	maxSentDepth = maxDepth - 5
	// maxBlock is the maximum block size of an rsync signature: a block is held in memory.
	maxBlock = 64 << 10
)

type scanRequest struct {
	Full bool `json:"full"`
}

// scanAnswer is followed by the changes since the answer before it.
type scanAnswer struct {
	Modes map[string]uint32 `json:"modes,omitempty"`
	Gone  []string          `json:"gone,omitempty"`
	Files uint64            `json:"files"`
	Bytes uint64            `json:"bytes"`
	// WithoutModes means that the file system keeps no permissions.
	WithoutModes bool `json:"withoutModes,omitempty"`
	// Large are the sizes of the large files among the changes.
	Large map[string]uint64 `json:"large,omitempty"`
}

type stageRequest struct {
	Paths   []string `json:"paths"`
	Digests [][]byte `json:"digests"`
}

// stageAnswer is followed by as many signatures.
type stageAnswer struct {
	Needed []int `json:"needed"`
}

type copiesAnswer struct {
	Had []bool `json:"had"`
}

// supplyRequest is followed by as many signatures.
type supplyRequest struct {
	Paths []string `json:"paths"`
}

// receiveRequest asks for the signature of the file at the path, which follows the answer. Put requests send the pieces.
type receiveRequest struct {
	Path   string `json:"path"`
	Digest []byte `json:"digest"`
}

// receiveAnswer is followed by a signature, unless the contents are staged already.
type receiveAnswer struct {
	Staged bool `json:"staged"`
}

// pieceHead is followed by the operations of a piece.
type pieceHead struct {
	Digest []byte `json:"digest,omitempty"`
	IsLast bool   `json:"last"`
}

type putAnswer struct {
	Staged bool `json:"staged"`
}

// openRequest is followed by a signature. Next requests get the pieces.
type openRequest struct {
	Path   string `json:"path"`
	Digest []byte `json:"digest"`
}

type nextRequest struct {
	Digest []byte `json:"digest"`
	Bytes  int    `json:"bytes"`
}

type keepRequest struct {
	Digests [][]byte `json:"digests"`
}

// changeAnswer is followed by the results, each in an archive because it may be nothing, and then by the problems.
type changeAnswer struct {
	Results int               `json:"results"`
	Missing bool              `json:"missing"`
	Refused map[string]string `json:"refused,omitempty"`
}

type modesAnswer struct {
	Refused map[string]string `json:"refused,omitempty"`
}

// receiveHead reads the head of an answer, of which a list or an object may have so many values: each takes far more memory
// than bytes.
func receiveHead(in *bytes.Reader, head any, values int) error {
	raw, err := wire.ReceiveRaw(in)
	if err != nil {
		return err
	}
	return decodeHead(raw, head, values)
}

func decodeHead(raw []byte, head any, values int) error {
	if countMore(raw) > values+maxFields {
		return fmt.Errorf("more than %d values", values)
	}
	return json.Unmarshal(raw, head)
}

// maxFields is how many fields a head may have beside the one with values.
const maxFields = 8

// countMore counts the values of JSON that follow others: the commas that are in no text.
func countMore(raw []byte) (more int) {
	isText := false
	for at := 0; at < len(raw); at++ {
		switch {
		case raw[at] == '"':
			isText = !isText
		case isText && raw[at] == '\\':
			at++
		case !isText && raw[at] == ',':
			more++
		}
	}
	return more
}

// packMessages returns a JSON head followed by messages.
func packMessages[M proto.Message](head any, messages []M) ([]byte, error) {
	var out bytes.Buffer
	if err := wire.Send(&out, head); err != nil {
		return nil, err
	}
	for _, message := range messages {
		if _, err := protodelim.MarshalTo(&out, message); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// unpackMessages reads what packed has written: the messages until the end, or as many as most.
func unpackMessages[M proto.Message](from *bytes.Reader, create func() M, limit int) ([]M, error) {
	var messages []M
	entries := 0
	for (limit < 0 || len(messages) < limit) && from.Len() > 0 {
		length, err := binary.ReadUvarint(from)
		if err != nil || length > uint64(from.Len()) {
			return nil, errors.New("a message is cut off")
		}
		raw := make([]byte, length)
		if _, err := io.ReadFull(from, raw); err != nil {
			return nil, err
		}
		message := create()
		if entries += countEntries(message, raw); entries > maxEntries {
			return nil, fmt.Errorf("more than %d entries", maxEntries)
		}
		if err := proto.Unmarshal(raw, message); err != nil {
			return nil, err
		}
		messages = append(messages, message)
	}
	return messages, nil
}

// countEntries counts the entries in a message before they take memory. The message itself is one; a message that is
// nested too deep counts as too many.
func countEntries(message proto.Message, raw []byte) int {
	switch message.(type) {
	case *core.Change:
		return 1 + countInFields(raw, 2, 3, 0)
	case *core.Archive:
		return 1 + countInFields(raw, 1, 1, 0)
	case *rsync.Signature:
		if hasShortHash(raw) {
			return maxEntries + 1
		}
	}
	return 1
}

const (
	fieldHashes protowire.Number = 3
	// minHash is the length of a block's SHA-1. A hash without one takes fifty times its bytes.
	minHash = 20
)

func hasShortHash(raw []byte) bool {
	for len(raw) > 0 {
		number, kind, length := protowire.ConsumeTag(raw)
		if length < 0 {
			return false
		}
		raw = raw[length:]
		if body, length := protowire.ConsumeBytes(raw); number == fieldHashes && kind == protowire.BytesType && length >= 0 && len(body) < minHash {
			return true
		}
		if length = protowire.ConsumeFieldValue(number, kind, raw); length < 0 {
			return false
		}
		raw = raw[length:]
	}
	return false
}

// countInFields counts the entries in the fields first to last of a message, whose values are entries or contain some.
func countInFields(raw []byte, first, last protowire.Number, depth int) (entries int) {
	if depth > 2*maxDepth {
		return maxEntries + 1
	}
	for len(raw) > 0 && entries <= maxEntries {
		number, kind, length := protowire.ConsumeTag(raw)
		if length < 0 {
			return entries
		}
		raw = raw[length:]
		if kind == protowire.BytesType && number >= first && number <= last {
			if body, length := protowire.ConsumeBytes(raw); length >= 0 {
				entries += countInField(body, number, depth)
			}
		}
		if length = protowire.ConsumeFieldValue(number, kind, raw); length < 0 {
			return entries
		}
		raw = raw[length:]
	}
	return entries
}

// fieldContents is the field of an entry that holds its entries, each a message of a name and an entry.
const fieldContents, fieldEntry = 5, 2

func countInField(body []byte, number protowire.Number, depth int) int {
	if number == fieldContents {
		return countInFields(body, fieldEntry, fieldEntry, depth+1)
	}
	return 1 + countInFields(body, fieldContents, fieldContents, depth+1)
}

func newChange() *core.Change        { return &core.Change{} }
func newArchive() *core.Archive      { return &core.Archive{} }
func newProblem() *core.Problem      { return &core.Problem{} }
func newSignature() *rsync.Signature { return &rsync.Signature{} }
func newOperation() *rsync.Operation { return &rsync.Operation{} }

// partEncoder sends contents over a stream.
type partEncoder struct{ frames *wire.Frames }

func (p partEncoder) Encode(part *rsync.Transmission) error {
	body, err := proto.Marshal(part)
	if err != nil {
		return err
	}
	return p.frames.Write(framePart, body)
}

func (p partEncoder) Finalize() error { return p.frames.Send(framePartEnd, nil) }

// partDecoder reads the contents that a partEncoder sends. The signatures are those of the files that are replaced.
type partDecoder struct {
	next       func() (byte, []byte, error)
	signatures []*rsync.Signature
	file       int
}

func (p *partDecoder) Decode(part *rsync.Transmission) error {
	kind, body, err := p.next()
	if err != nil {
		return err
	}
	if kind != framePart {
		return errors.New("contents end too early")
	}
	if err := proto.Unmarshal(body, part); err != nil {
		return err
	}
	if err := p.check(part); err != nil {
		return err
	}
	if part.Done {
		p.file++
	}
	return nil
}

// check refuses blocks that the replaced file does not have: the engine would look for each of them.
func (p *partDecoder) check(part *rsync.Transmission) error {
	operation := part.Operation
	if operation == nil || len(operation.Data) > 0 || part.Done {
		return nil
	}
	blocks := uint64(0)
	if p.file < len(p.signatures) {
		blocks = uint64(len(p.signatures[p.file].Hashes))
	}
	if operation.Count > blocks || operation.Start > blocks-operation.Count {
		return errNoBlocks
	}
	return nil
}

func (p *partDecoder) Finalize() error { return nil }

// errNoBlocks means that the replaced file does not have so many blocks.
var errNoBlocks = errors.New("contents refer to blocks that do not exist")

// checkSignature returns what is wrong with a signature, by which contents are sent.
func checkSignature(signature *rsync.Signature) error {
	if signature.BlockSize > maxBlock || signature.LastBlockSize > maxBlock {
		return errors.New("a signature's blocks are too large")
	}
	return signature.EnsureValid()
}
