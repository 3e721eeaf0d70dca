package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// links are both ends of a Link over a pipe.
func links(t *testing.T) (machine, agent *Link) {
	t.Helper()
	near, far := net.Pipe()
	return linksOver(t, near, far)
}

func linksOver(t *testing.T, near, far io.ReadWriteCloser) (machine, agent *Link) {
	t.Helper()
	var failed error
	var other sync.WaitGroup
	other.Go(func() { agent, failed = Start(far, false) })
	machine, err := Start(near, true)
	other.Wait()
	must(t, errors.Join(err, failed))
	t.Cleanup(func() {
		machine.Close()
		agent.Close()
	})
	return machine, agent
}

func TestStreamsCarryMessagesInBothDirections(t *testing.T) {
	machine, agent := links(t)
	answered := make(chan error, 1)
	go func() {
		stream, err := agent.AcceptStream(t.Context())
		if err != nil {
			answered <- err
			return
		}
		var open Open
		if err := Receive(stream, &open); err != nil {
			answered <- err
			return
		}
		answered <- Send(stream, Welcome{Volume: open.Kind + string(open.Body)})
	}()
	stream, err := machine.OpenStream(t.Context())
	must(t, err)
	must(t, Send(stream, Open{Kind: "control", Body: json.RawMessage(`7`)}))
	var welcome Welcome
	must(t, Receive(stream, &welcome))
	must(t, <-answered)
	if welcome.Volume != "control7" {
		t.Fatalf("%+v", welcome)
	}
}

func TestErrSaysWhyALinkHasEnded(t *testing.T) {
	machine, agent := links(t)
	if err := machine.Err(); err == nil || err.Error() != "closed" {
		t.Errorf("a link without an error: %v", err)
	}
	agent.Close()
	select {
	case <-machine.Closed():
	case <-time.After(60 * time.Second):
		t.Fatal("the end is not noticed")
	}
	if err := machine.Err(); err == nil || err.Error() == "closed" {
		t.Errorf("a link that the other end closed: %v", err)
	}
}

// A slowCarrier sends so many bytes a second, and keeps as many as a slow line does. It can be made to send nothing more.
type slowCarrier struct {
	io.ReadWriteCloser
	queue chan []byte
	ended chan struct{}
	cut   func()
}

const slowPiece = 4096

func newSlowCarrier(carrier io.ReadWriteCloser, rate, kept int) *slowCarrier {
	ended := make(chan struct{})
	s := &slowCarrier{carrier, make(chan []byte, kept/slowPiece), ended, sync.OnceFunc(func() { close(ended) })}
	go func() {
		for {
			select {
			case piece := <-s.queue:
				time.Sleep(time.Duration(len(piece)) * time.Second / time.Duration(rate))
				if _, err := carrier.Write(piece); err != nil {
					return
				}
			case <-ended:
				return
			}
		}
	}()
	return s
}

func (s *slowCarrier) Write(from []byte) (int, error) {
	for rest := from; len(rest) > 0; {
		piece := bytes.Clone(rest[:min(slowPiece, len(rest))])
		select {
		case s.queue <- piece:
		case <-s.ended:
			return len(from), nil
		}
		rest = rest[len(piece):]
	}
	return len(from), nil
}

func (s *slowCarrier) Close() error {
	s.cut()
	return s.ReadWriteCloser.Close()
}

func TestALinkOverASlowLineStays(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	const rate = 50_000
	// A heartbeat takes 8 seconds behind what the line keeps.
	machine, agent := linksOver(t, newSlowCarrier(near, rate, 8*rate), far)
	go func() {
		stream, err := machine.OpenStream(t.Context())
		if err != nil {
			return
		}
		_, _ = stream.Write(make([]byte, 10*rate))
		_ = stream.CloseWrite()
	}()
	other, err := agent.AcceptStream(t.Context())
	must(t, err)
	n, err := io.Copy(io.Discard, other)
	if n != 10*rate || err != nil {
		t.Errorf("%d bytes have come, and then: %v, %v", n, err, agent.Err())
	}
}

func TestALinkThatIsSilentEnds(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	slow := newSlowCarrier(near, 1_000_000, slowPiece)
	_, agent := linksOver(t, slow, far)
	slow.cut()
	select {
	case <-agent.Closed():
	case <-time.After(2 * MaxSilence):
		t.Fatal("it stays")
	}
	if err := agent.Err(); err == nil || err.Error() != "nothing was received for 6s" {
		t.Error(err)
	}
}

// greeted is what Start makes of an other end that sends text and closes.
func greeted(t *testing.T, text string) (carrier net.Conn, err error) {
	t.Helper()
	near, far := net.Pipe()
	go io.Copy(io.Discard, far)
	go func() {
		io.WriteString(far, text)
		far.Close()
	}()
	link, err := Start(near, true)
	if err == nil {
		link.Close()
	}
	return near, err
}

func TestStartRefusesWhatIsNoAgentOfThisVersion(t *testing.T) {
	for text, message := range map[string]string{
		"composeplat link 1\n":             `the other end is not an agent of this version, it sent "composeplat link 1\n"`,
		"sh: platform-agent: not found\n":  `the other end is not an agent of this version, it sent "sh: platform-agent:"`,
		"bash":                             `the other end is not an agent of this version, it sent "bash"`,
		"":                                 "the agent does not answer: EOF",
		greeting[:5]:                       "the agent does not answer: unexpected EOF",
		strings.ToUpper(greeting) + "more": `the other end is not an agent of this version, it sent "COMPOSEPLAT LINK 4\n"`,
	} {
		carrier, err := greeted(t, text)
		if err == nil || err.Error() != message {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := carrier.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%q: the carrier is still open: %v", text, err)
		}
	}
}

// A carrier that can't be written to, whose other end has sent its greeting.
type readOnly struct{ net.Conn }

func (readOnly) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestStartFailsWhereTheGreetingCanNotBeSent(t *testing.T) {
	near, far := net.Pipe()
	go io.WriteString(far, greeting)
	_, err := Start(readOnly{near}, true)
	if err == nil || err.Error() != "can't send to the agent: broken pipe" {
		t.Fatal(err)
	}
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the carrier is still open: %v", err)
	}
}

func TestReceiveReadsNoByteAfterTheMessage(t *testing.T) {
	var stream bytes.Buffer
	must(t, Send(&stream, Hello{Link: "a", Session: "b"}))
	must(t, Send(&stream, Notice{Reverse: 80, Why: "taken"}))
	stream.WriteString("rest")
	var hello Hello
	var notice Notice
	must(t, Receive(&stream, &hello))
	must(t, Receive(&stream, &notice))
	if hello != (Hello{Link: "a", Session: "b"}) || notice != (Notice{Reverse: 80, Why: "taken"}) || stream.String() != "rest" {
		t.Fatalf("%+v, %+v, %q", hello, notice, stream.String())
	}
}

func TestMessagesAreBounded(t *testing.T) {
	message := strings.Repeat("x", 98)
	var stream bytes.Buffer
	for limit, fits := range map[uint32]bool{99: false, 100: true, 101: true} {
		stream.Reset()
		must(t, Send(&stream, message))
		var received string
		err := ReceiveAtMost(&stream, &received, limit)
		if (err == nil) != fits || fits && received != message {
			t.Errorf("at most %d: %v", limit, err)
		}
	}
	stream.Reset()
	must(t, Send(&stream, strings.Repeat("x", maxMessage)))
	var received string
	want := fmt.Sprintf("a message of %d bytes is too long, at most %d are allowed", maxMessage+2, maxMessage)
	if err := Receive(&stream, &received); err == nil || err.Error() != want {
		t.Error(err)
	}
}

func TestAMessageThatIsCutOffIsAnError(t *testing.T) {
	var stream bytes.Buffer
	must(t, Send(&stream, "message"))
	whole := stream.Bytes()
	for length := range whole {
		var message string
		err := Receive(bytes.NewReader(whole[:length]), &message)
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %q, %v", length, message, err)
		}
		// Only a stream that ends between messages has ended well.
		if cut := length > 4; cut && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes end well", length)
		}
	}
}

func TestAMessageThatIsNotJSONIsAnError(t *testing.T) {
	for _, body := range []string{"", "{", `{"link": 7}`, "[]"} {
		var hello Hello
		raw := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
		if err := Receive(bytes.NewReader(raw), &hello); err == nil {
			t.Errorf("%q is read as %+v", body, hello)
		}
	}
	if err := Send(io.Discard, func() {}); err == nil {
		t.Error("a function is sent")
	}
	if _, err := Pack(func() {}, nil); err == nil {
		t.Error("a function is packed")
	}
}

func TestWhatIsPackedIsUnpacked(t *testing.T) {
	packed, err := Pack("message", []byte("rest"))
	must(t, err)
	var message string
	rest, err := Unpack(packed, &message)
	must(t, err)
	if message != "message" || string(rest) != "rest" {
		t.Fatalf("%q and %q", message, rest)
	}
	for length := range len(packed) - len("rest") {
		if rest, err := Unpack(packed[:length], &message); err == nil {
			t.Fatalf("%d bytes are enough for %q", length, rest)
		}
	}
}

// A stream in memory that remembers whether it was closed.
type memory struct {
	bytes.Buffer
	closed bool
}

func (m *memory) Close() error {
	m.closed = true
	return nil
}

const kindA, kindB = 'a', 'b'

var testLimits = Limits{kindA: 10, kindB: 0}

func TestFramesKeepTheirKindAndBody(t *testing.T) {
	stream := &memory{}
	frames := NewFrames(stream, testLimits.Lookup)
	must(t, frames.Send(kindA, []byte("body")))
	must(t, frames.Send(kindB, nil))
	must(t, frames.SendJSON(kindA, 7))
	for _, want := range []struct {
		kind byte
		body string
	}{{kindA, "body"}, {kindB, ""}, {kindA, "7"}} {
		kind, body, err := frames.Read()
		must(t, err)
		if kind != want.kind || string(body) != want.body {
			t.Fatalf("%q %q, and not %q %q", kind, body, want.kind, want.body)
		}
	}
	if _, _, err := frames.Read(); err != io.EOF {
		t.Fatal(err)
	}
	if err := frames.SendJSON(kindA, func() {}); err == nil {
		t.Error("a function is sent")
	}
	must(t, frames.Close())
	if !stream.closed {
		t.Error("the stream is open")
	}
}

func TestFramesWaitForAFlush(t *testing.T) {
	stream := &memory{}
	frames := NewFrames(stream, testLimits.Lookup)
	must(t, frames.Write(kindA, []byte("body")))
	if stream.Len() != 0 {
		t.Fatalf("%d bytes before the flush", stream.Len())
	}
	must(t, frames.Flush())
	if stream.Len() != 9 {
		t.Fatalf("%d bytes after it", stream.Len())
	}
}

func TestFramesAreBoundedByTheirKind(t *testing.T) {
	for name, test := range map[string]struct {
		raw, message string
	}{
		"a kind that is not expected": {"c\x00\x00\x00\x00", `unexpected frame 'c'`},
		"a body that is too long":     {"a\x00\x00\x00\x0b", "a message of 11 bytes is too long, at most 10 are allowed"},
		"a body where none may be":    {"b\x00\x00\x00\x01x", "a message of 1 bytes is too long, at most 0 are allowed"},
		"a body that is cut off":      {"a\x00\x00\x00\x03ab", "unexpected EOF"},
		"a length that is cut off":    {"a\x00\x00", "unexpected EOF"},
	} {
		stream := &memory{}
		stream.WriteString(test.raw)
		if _, _, err := NewFrames(stream, testLimits.Lookup).Read(); err == nil || err.Error() != test.message {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Frames of several writers were mixed up if a head and its body could be written apart.
func TestFramesOfSeveralWritersStayWhole(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	writer, reader := NewFrames(near, testLimits.Lookup), NewFrames(far, testLimits.Lookup)
	const writers, each = 8, 50
	for number := range writers {
		go func() {
			for range each {
				if writer.Send(kindA, bytes.Repeat([]byte{byte('0' + number)}, number+1)) != nil {
					return
				}
			}
		}()
	}
	count := map[int]int{}
	for range writers * each {
		_, body, err := reader.Read()
		must(t, err)
		if strings.Trim(string(body), string(body[:1])) != "" || len(body) != int(body[0]-'0')+1 {
			t.Fatalf("mixed: %q", body)
		}
		count[len(body)]++
	}
	for length := 1; length <= writers; length++ {
		if count[length] != each {
			t.Errorf("%d frames of %d bytes", count[length], length)
		}
	}
}

func TestWritingToAStreamThatIsGoneFails(t *testing.T) {
	near, far := net.Pipe()
	far.Close()
	frames := NewFrames(near, testLimits.Lookup)
	if err := frames.Send(kindA, []byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if err := frames.Write(kindA, bytes.Repeat([]byte("x"), 128<<10)); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

func TestLimitsOfASession(t *testing.T) {
	for kind, want := range map[byte]uint32{FrameInput: MaxChunk, FrameOutput: MaxChunk, FrameStderr: MaxChunk, FrameInputEnd: 0} {
		if limit, expected := SessionLimits.Lookup(kind); limit != want || !expected {
			t.Errorf("%q: %d, %v", kind, limit, expected)
		}
	}
	if _, expected := SessionLimits.Lookup('?'); expected {
		t.Error("any kind is expected")
	}
}
