// Package wire is the protocol between this machine and the agent in the container. It owns the greeting, the streams
// that one carrier is multiplexed into, the messages that open them, frames, their compression, and the limits of their sizes.
//
// It must not know files, processes or Kubernetes: both ends use it, and only one of them has each of these.
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
	"sync/atomic"
	"time"

	"github.com/mutagen-io/mutagen/pkg/multiplexing"
)

// Both ends send greeting first: any other output of an exec does not come from an agent.
const greeting = "composeplat link 4\n"

const (
	Heartbeat  = 2 * time.Second
	MaxSilence = 6 * time.Second
	// silenceCheck is how often a Link looks whether something has come.
	silenceCheck = 500 * time.Millisecond
	// receiveWindow is how much of a stream may be under way: with 50 ms there and back, 40 MB a second. Memory is used only
	// for bytes that wait to be read.
	receiveWindow   = 2 << 20
	greetingTimeout = 15 * time.Second
)

// Maximum lengths in bytes. The other end is not trusted: a message never takes more memory than its limit.
const (
	maxMessage = 8 << 20
	// MaxHead is for messages that are read before anything is known about their sender.
	MaxHead = 4 << 10
	// MaxChunk is for frames of which many follow each other, such as output and file contents.
	MaxChunk = 256 << 10
	// MaxBulk is for answers, of which one at a time is in flight.
	MaxBulk = 128 << 20
)

// A Limit returns the maximum length of a frame of a kind. A kind that is not expected ends the stream.
type Limit func(kind byte) (bytes uint32, expected bool)

// Limits are the maximum lengths by kind, for streams on which they never change.
type Limits map[byte]uint32

func (l Limits) Lookup(kind byte) (bytes uint32, expected bool) {
	bytes, expected = l[kind]
	return bytes, expected
}

// Open is the first message of each stream and names its purpose.
type Open struct {
	Kind string          `json:"kind"`
	Body json.RawMessage `json:"body,omitempty"`
}

// Hello is the first message of the control stream, which the machine opens. Source names the folders that it syncs: those
// of a project on a machine.
type Hello struct {
	Link    string `json:"link"`
	Session string `json:"session"`
	Source  string `json:"source,omitempty"`
}

// Welcome answers a Hello. Fresh means that no machine has completed a sync with the volume yet. Boot and Volume are others
// than before where another source was synced meanwhile.
type Welcome struct {
	Boot      string `json:"boot"`
	Volume    string `json:"volume"`
	Fresh     bool   `json:"fresh"`
	Alive     bool   `json:"alive"`
	TakenOver bool   `json:"taken,omitempty"` // another machine's link has replaced this one
	Error     string `json:"error,omitempty"`
}

// Notice is any later message of the control stream.
type Notice struct {
	TakenOver bool   `json:"taken,omitempty"`   // to the machine: another machine's link has replaced this one
	Synced    bool   `json:"used,omitempty"`    // to the container: the first sync of every folder is complete
	End       bool   `json:"end,omitempty"`     // to the container: hang up the session
	Signal    int    `json:"signal,omitempty"`  // to the container: signal number to send to the session
	Reverse   int    `json:"reverse,omitempty"` // to the machine: a port that the container can't listen on; Why has the reason
	Why       string `json:"why,omitempty"`
}

// Folder opens a tree stream.
type Folder struct {
	Root    string   `json:"root"`
	Ignores []string `json:"ignores"`
}

// Session opens a session stream. Seen is how many bytes of its output the machine already has.
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

// AttachReply answers a Session or a Folder. Received is how many bytes of input the session has got, Start the offset
// at which its output continues.
type AttachReply struct {
	New      bool   `json:"new"`
	Received int64  `json:"received"`
	Start    int64  `json:"start"`
	Error    string `json:"error,omitempty"`
}

// Kinds of frames on a session stream.
const (
	FrameInput    = 'i'
	FrameInputEnd = 'e'
	FrameSize     = 'w'
	FrameReceived = 'h'
	FrameOutput   = 'o'
	FrameStderr   = 'r'
	FrameExit     = 'x'
)

// SessionLimits are the maximum lengths of the frames on a session stream.
var SessionLimits = Limits{
	FrameInput: MaxChunk, FrameInputEnd: 0, FrameSize: MaxHead, FrameReceived: MaxHead,
	FrameOutput: MaxChunk, FrameStderr: MaxChunk, FrameExit: MaxHead,
}

// Link is a carrier that is multiplexed into streams.
type Link struct {
	*multiplexing.Multiplexer
	silent atomic.Bool
}

// A countingCarrier counts what is read: any byte shows that the other end is there. A heartbeat alone would not, as it
// waits behind what was sent before, on a slow line for longer than MaxSilence.
type countingCarrier struct {
	io.ReadWriteCloser
	count atomic.Int64
}

func (c *countingCarrier) Read(into []byte) (int, error) {
	n, err := c.ReadWriteCloser.Read(into)
	c.count.Add(int64(n))
	return n, err
}

// closeWhenSilent closes a Link after MaxSilence in which nothing was read. It counts checks, and not the time: a process
// that was suspended must first read what has come meanwhile.
func (l *Link) closeWhenSilent(carrier *countingCarrier) {
	ticker := time.NewTicker(silenceCheck)
	defer ticker.Stop()
	before, silent := int64(0), time.Duration(0)
	for silent < MaxSilence {
		select {
		case <-l.Closed():
			return
		case <-ticker.C:
		}
		if now := carrier.count.Load(); now != before {
			before, silent = now, 0
		} else {
			silent += silenceCheck
		}
	}
	l.silent.Store(true)
	l.Close()
}

// ErrNotAnAgent means that the other end has not sent the greeting.
var ErrNotAnAgent = errors.New("the other end is not an agent of this version")

// Start exchanges greetings over the carrier and returns the Link. It closes the carrier when that fails.
func Start(carrier io.ReadWriteCloser, machine bool) (*Link, error) {
	timer := time.AfterFunc(greetingTimeout, func() { carrier.Close() })
	defer timer.Stop()
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(carrier, greeting)
		sent <- err
	}()
	answer := make([]byte, len(greeting))
	n, err := io.ReadFull(carrier, answer)
	if string(answer[:n]) != greeting[:n] {
		carrier.Close()
		return nil, fmt.Errorf("%w, it sent %q", ErrNotAnAgent, answer[:n])
	}
	if err != nil {
		carrier.Close()
		return nil, fmt.Errorf("the agent does not answer: %w", err)
	}
	if err := <-sent; err != nil {
		carrier.Close()
		return nil, fmt.Errorf("can't send to the agent: %w", err)
	}
	counting := &countingCarrier{ReadWriteCloser: carrier}
	link := &Link{Multiplexer: multiplexing.Multiplex(multiplexing.NewCarrierFromStream(counting), machine,
		&multiplexing.Configuration{
			StreamReceiveWindow:       receiveWindow,
			WriteBufferCount:          8,
			AcceptBacklog:             256,
			HeartbeatTransmitInterval: Heartbeat,
		})}
	go link.closeWhenSilent(counting)
	return link, nil
}

// Err returns what ended a Link.
func (l *Link) Err() error {
	if l.silent.Load() {
		return fmt.Errorf("nothing was received for %s", MaxSilence)
	}
	if err := l.InternalError(); err != nil {
		return err
	}
	return errors.New("closed")
}

// Send writes a message, preceded by its length.
func Send(to io.Writer, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = to.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// Receive reads a message that Send has written, and no byte after it.
func Receive(from io.Reader, message any) error { return ReceiveAtMost(from, message, maxMessage) }

// ReceiveAtMost reads a message of at most limit bytes.
func ReceiveAtMost(from io.Reader, message any, limit uint32) error {
	body, err := receive(from, limit)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, message)
}

func receive(from io.Reader, limit uint32) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > limit {
		return nil, fmt.Errorf("a message of %d bytes is too long, at most %d are allowed", length, limit)
	}
	// The buffer grows with the bytes that arrive: a length alone must not take memory.
	var body bytes.Buffer
	if n, err := io.CopyN(&body, from, int64(length)); err != nil {
		if n > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return body.Bytes(), nil
}

// Pack returns a message followed by rest.
func Pack(message any, rest []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := Send(&out, message); err != nil {
		return nil, err
	}
	out.Write(rest)
	return out.Bytes(), nil
}

// Unpack reads the message of a Pack and returns the bytes after it.
func Unpack(packed []byte, message any) (rest []byte, err error) {
	in := bytes.NewReader(packed)
	if err := ReceiveHead(in, message); err != nil {
		return nil, err
	}
	return packed[len(packed)-in.Len():], nil
}

// ReceiveHead reads the message at the start of a frame; its limit is the frame's length.
func ReceiveHead(from *bytes.Reader, message any) error {
	return ReceiveAtMost(from, message, uint32(min(from.Len(), MaxBulk)))
}

// ReceiveRaw reads the message at the start of a frame as it is.
func ReceiveRaw(from *bytes.Reader) ([]byte, error) {
	return receive(from, uint32(min(from.Len(), MaxBulk)))
}

// Frames reads and writes frames, each a kind and a body, on a stream. Several goroutines may write.
type Frames struct {
	stream io.Closer
	limit  Limit
	in     *bufio.Reader
	out    *bufio.Writer
	lock   sync.Mutex
}

func NewFrames(stream io.ReadWriteCloser, limit Limit) *Frames {
	return newFrames(stream, stream, stream, limit)
}

// NewCompressedFrames is for streams with contents of files. It is not for output, of which a compressed window would hold any
// amount: a command would run far ahead of what its user has seen.
func NewCompressedFrames(stream io.ReadWriteCloser, limit Limit) *Frames {
	return newFrames(stream, &blockReader{from: stream}, &blockWriter{to: stream}, limit)
}

func newFrames(stream io.Closer, in io.Reader, out io.Writer, limit Limit) *Frames {
	return &Frames{stream: stream, limit: limit, in: bufio.NewReaderSize(in, maxBlock), out: bufio.NewWriterSize(out, maxBlock)}
}

// Write buffers a frame until the next Flush.
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

// Send writes a frame and flushes the buffer.
func (f *Frames) Send(kind byte, body []byte) error {
	if err := f.Write(kind, body); err != nil {
		return err
	}
	return f.Flush()
}

// SendJSON sends a frame whose body is the message as JSON.
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
	limit, expected := f.limit(kind)
	if !expected {
		return 0, nil, fmt.Errorf("unexpected frame %q", kind)
	}
	body, err = receive(f.in, limit)
	return kind, body, err
}

func (f *Frames) Close() error { return f.stream.Close() }
