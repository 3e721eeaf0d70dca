package tree

import (
	"bytes"
	"errors"
	"io"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"composeplat/link/internal/wire"
)

// What the frames of a tree stream are: each request has an answer of its own kind, or a failure.
const (
	frameScan    = 's'
	frameStage   = 't'
	framePart    = 'p'
	framePartEnd = 'q'
	frameSupply  = 'y'
	frameKeep    = 'k'
	frameChange  = 'x'
	frameModes   = 'm'
	frameFailure = 'f'
	frameChanged = 'c'
	frameTrouble = 'u'
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
}

type stageRequest struct {
	Paths   []string `json:"paths"`
	Digests [][]byte `json:"digests"`
}

// stageAnswer is followed by as many signatures.
type stageAnswer struct {
	Needed []int `json:"needed"`
}

type keepAnswer struct {
	Had []bool `json:"had"`
}

// supplyRequest is followed by as many signatures.
type supplyRequest struct {
	Paths []string `json:"paths"`
}

// changeAnswer is followed by the results, each in an archive because it may be nothing, and then by the problems.
type changeAnswer struct {
	Results int  `json:"results"`
	Missing bool `json:"missing"`
}

type modesAnswer struct {
	Refused map[string]string `json:"refused,omitempty"`
}

// The frames have their own limit, and a whole tree may be one message.
var unlimited = protodelim.UnmarshalOptions{MaxSize: -1}

// packed writes a JSON head and then messages.
func packed[M proto.Message](head any, messages []M) ([]byte, error) {
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

// unpack reads what packed has written: the messages until the end, or as many as most.
func unpack[M proto.Message](from *bytes.Reader, fresh func() M, most int) ([]M, error) {
	var messages []M
	for most < 0 || len(messages) < most {
		message := fresh()
		if err := unlimited.UnmarshalFrom(from, message); errors.Is(err, io.EOF) {
			return messages, nil
		} else if err != nil {
			return nil, err
		}
		messages = append(messages, message)
	}
	return messages, nil
}

func newChange() *core.Change        { return &core.Change{} }
func newArchive() *core.Archive      { return &core.Archive{} }
func newProblem() *core.Problem      { return &core.Problem{} }
func newSignature() *rsync.Signature { return &rsync.Signature{} }

// parts carries contents over a stream.
type parts struct{ frames *wire.Frames }

func (p parts) Encode(part *rsync.Transmission) error {
	body, err := proto.Marshal(part)
	if err != nil {
		return err
	}
	return p.frames.Write(framePart, body)
}

func (p parts) Finalize() error { return p.frames.Send(framePartEnd, nil) }

// partSource reads contents from wherever frames of parts come out.
type partSource struct {
	next func() (byte, []byte, error)
}

func (p partSource) Decode(part *rsync.Transmission) error {
	kind, body, err := p.next()
	if err != nil {
		return err
	}
	if kind != framePart {
		return errors.New("contents end too early")
	}
	return proto.Unmarshal(body, part)
}

func (p partSource) Finalize() error { return nil }
