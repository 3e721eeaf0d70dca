// Package wire is what the machine and the container say to each other: one carrier, cut into streams that each
// begin with an Open. It knows neither files nor processes.
package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mutagen-io/mutagen/pkg/multiplexing"
)

// greeting is told first by both ends: whatever else comes out of an exec is not an agent.
const greeting = "composeplat link 1\n"

const (
	Heartbeat    = 2 * time.Second
	MostSilence  = 6 * time.Second
	window       = 256 << 10
	greetingTime = 15 * time.Second
)

// How long messages may be, in bytes: what the other end sends takes no more memory than that, whatever it is.
const (
	maxMessage = 8 << 20
	// MaxHead is for what is read before anything is known of who sends it.
	MaxHead = 4 << 10
	// MaxPiece is for frames that come one after another, such as output and contents of files.
	MaxPiece = 256 << 10
	// MaxBulk is for frames that are answers: one of them is under way at a time.
	MaxBulk = 128 << 20
)

// A Limit says how long a frame of a kind may be. A kind that is not expected ends the stream.
type Limit func(kind byte) (bytes uint32, expected bool)

// Limits is a Limit that is always the same.
type Limits map[byte]uint32

func (l Limits) Of(kind byte) (bytes uint32, expected bool) {
	bytes, expected = l[kind]
	return bytes, expected
}

// An Open heads each stream and says what it is for.
type Open struct {
	Kind string          `json:"kind"`
	Body json.RawMessage `json:"body,omitempty"`
}

// Hello is the first message of the control stream, which the machine opens.
type Hello struct {
	Link    string `json:"link"`
	Session string `json:"session"`
}

// Welcome answers a Hello. Fresh is a volume that no machine has synced with yet.
type Welcome struct {
	Boot   string `json:"boot"`
	Volume string `json:"volume"`
	Fresh  bool   `json:"fresh"`
	Alive  bool   `json:"alive"`
	Taken  bool   `json:"taken,omitempty"` // another link has been served since this one
	Error  string `json:"error,omitempty"`
}

// Notice is any later message of the control stream.
type Notice struct {
	Taken   bool   `json:"taken,omitempty"`   // to the machine: another link is served now
	Used    bool   `json:"used,omitempty"`    // to the container: the first sync of every folder is over
	End     bool   `json:"end,omitempty"`     // to the container: hang up on the session
	Signal  int    `json:"signal,omitempty"`  // to the container: for the session
	Reverse int    `json:"reverse,omitempty"` // to the machine: a port that can't be listened at, and why
	Why     string `json:"why,omitempty"`
}

// Folder opens a tree stream.
type Folder struct {
	Root    string   `json:"root"`
	Ignores []string `json:"ignores"`
}

// Session opens a session stream. Seen is how much of its output has come through already.
type Session struct {
	ID          string            `json:"id"`
	Command     []string          `json:"command"`
	Directory   string            `json:"directory"`
	Environment map[string]string `json:"environment"`
	Terminal    bool              `json:"terminal"`
	Rows        uint16            `json:"rows"`
	Columns     uint16            `json:"columns"`
	Seen        int64             `json:"seen"`
}

// Attached answers a Session: Heard is how much input has come through, Start where the output goes on.
type Attached struct {
	New   bool   `json:"new"`
	Heard int64  `json:"heard"`
	Start int64  `json:"start"`
	Error string `json:"error,omitempty"`
}

// What the frames of a session stream are.
const (
	FrameInput    = 'i'
	FrameInputEnd = 'e'
	FrameSize     = 'w'
	FrameHeard    = 'h'
	FrameOutput   = 'o'
	FrameErrors   = 'r'
	FrameExit     = 'x'
)

// SessionLimits is how long the frames of a session stream may be.
var SessionLimits = Limits{
	FrameInput: MaxPiece, FrameInputEnd: 0, FrameSize: MaxHead, FrameHeard: MaxHead,
	FrameOutput: MaxPiece, FrameErrors: MaxPiece, FrameExit: MaxHead,
}

// Link is a carrier that is cut into streams.
type Link struct {
	*multiplexing.Multiplexer
}

// Start greets the other end over the carrier and makes a Link of it.
func Start(carrier io.ReadWriteCloser, machine bool) (*Link, error) {
	timer := time.AfterFunc(greetingTime, func() { carrier.Close() })
	defer timer.Stop()
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(carrier, greeting)
		sent <- err
	}()
	heard := make([]byte, len(greeting))
	n, err := io.ReadFull(carrier, heard)
	if string(heard[:n]) != greeting[:n] {
		carrier.Close()
		return nil, fmt.Errorf("not an agent of this version answers: %q", heard[:n])
	}
	if err != nil {
		carrier.Close()
		return nil, fmt.Errorf("no agent answers: %w", err)
	}
	if err := <-sent; err != nil {
		carrier.Close()
		return nil, fmt.Errorf("can't reach the agent: %w", err)
	}
	return &Link{multiplexing.Multiplex(multiplexing.NewCarrierFromStream(carrier), machine, &multiplexing.Configuration{
		StreamReceiveWindow:             window,
		WriteBufferCount:                8,
		AcceptBacklog:                   256,
		HeartbeatTransmitInterval:       Heartbeat,
		MaximumHeartbeatReceiveInterval: MostSilence,
	})}, nil
}

// Why tells what ended a Link.
func (l *Link) Why() error {
	if err := l.InternalError(); err != nil {
		return err
	}
	return errors.New("closed")
}

// Send writes a message with its length before it.
func Send(to io.Writer, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = to.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// Receive reads what Send has written, and not a byte more.
func Receive(from io.Reader, message any) error { return ReceiveAtMost(from, message, maxMessage) }

// ReceiveAtMost reads a message of so many bytes at most.
func ReceiveAtMost(from io.Reader, message any, most uint32) error {
	body, err := receive(from, most)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, message)
}

func receive(from io.Reader, most uint32) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > most {
		return nil, fmt.Errorf("a message of %d bytes is too long", length)
	}
	// The buffer grows with what comes: a length alone must not take memory.
	var body bytes.Buffer
	if n, err := io.CopyN(&body, from, int64(length)); err != nil {
		if n > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return body.Bytes(), nil
}

// Pack is a message, with bytes after it.
func Pack(message any, rest []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := Send(&out, message); err != nil {
		return nil, err
	}
	out.Write(rest)
	return out.Bytes(), nil
}

// Unpack reads what Pack has made, and gives the bytes after the message.
func Unpack(packed []byte, message any) (rest []byte, err error) {
	in := bytes.NewReader(packed)
	if err := ReceiveHead(in, message); err != nil {
		return nil, err
	}
	return packed[len(packed)-in.Len():], nil
}

// ReceiveHead reads the message that a frame begins with; the frame's own length bounds it.
func ReceiveHead(from *bytes.Reader, message any) error {
	return ReceiveAtMost(from, message, uint32(min(from.Len(), MaxBulk)))
}

// Frames reads and writes kinds with bodies; writes may come from several goroutines.
type Frames struct {
	stream io.ReadWriteCloser
	limit  Limit
	in     *bufio.Reader
	out    *bufio.Writer
	lock   sync.Mutex
}

func NewFrames(stream io.ReadWriteCloser, limit Limit) *Frames {
	return &Frames{stream: stream, limit: limit, in: bufio.NewReaderSize(stream, 64<<10), out: bufio.NewWriterSize(stream, 64<<10)}
}

// Write leaves a frame in the buffer, to go out with the next Flush.
func (f *Frames) Write(kind byte, body []byte) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	if err := f.out.WriteByte(kind); err != nil {
		return err
	}
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(body)))
	if _, err := f.out.Write(head[:]); err != nil {
		return err
	}
	_, err := f.out.Write(body)
	return err
}

func (f *Frames) Flush() error {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.out.Flush()
}

// Send writes a frame and flushes.
func (f *Frames) Send(kind byte, body []byte) error {
	if err := f.Write(kind, body); err != nil {
		return err
	}
	return f.Flush()
}

// SendJSON writes a frame with a message in it and flushes.
func (f *Frames) SendJSON(kind byte, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return f.Send(kind, body)
}

func (f *Frames) Read() (kind byte, body []byte, err error) {
	if kind, err = f.in.ReadByte(); err != nil {
		return 0, nil, err
	}
	most, expected := f.limit(kind)
	if !expected {
		return 0, nil, fmt.Errorf("a frame %q is not expected", kind)
	}
	body, err = receive(f.in, most)
	return kind, body, err
}

func (f *Frames) Close() error { return f.stream.Close() }
