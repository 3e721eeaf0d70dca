package machine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/term"

	"composeplat/link/internal/wire"
)

const maxPendingInput = 64 << 10

// sessionError is why a session can't be started: another link would not help.
type sessionError string

func (n sessionError) Error() string { return string(n) }

// errNoReader means that nobody reads the output any more, as of `platform up | head`.
var errNoReader = errors.New("nobody reads the output")

const errInputLost sessionError = "the program was started again in a new container, without the input that it had read before"

// A session is this machine's side of a command that runs in the container. It survives lost links.
type session struct {
	id          string
	config      *Config
	input       io.Reader
	output      io.Writer
	errors      io.Writer
	interrupted chan struct{}

	lock       sync.Mutex
	changed    *sync.Cond
	savedState *term.State
	pending    []byte // what is typed and not yet known to have come through
	at         int64  // where pending begins in all that was typed
	sent       int64
	ended      bool
	shown      int64
	frames     *wire.Frames
}

func newSession(config *Config) *session {
	s := &session{
		id: rand.Text(), config: config, input: os.Stdin, output: os.Stdout, errors: os.Stderr,
		interrupted: make(chan struct{}, 1),
	}
	s.changed = sync.NewCond(&s.lock)
	return s
}

func (s *session) isAttached() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.frames != nil
}

// restore resets the terminal to its state before makeRaw.
func (s *session) restore() {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.savedState != nil {
		_ = term.Restore(int(os.Stdin.Fd()), s.savedState)
		s.savedState = nil
	}
}

func (s *session) makeRaw() {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.config.Terminal && s.savedState == nil && s.input == os.Stdin && term.IsTerminal(int(os.Stdin.Fd())) {
		s.savedState, _ = term.MakeRaw(int(os.Stdin.Fd()))
	}
}

// readInput reads input, and waits while maxPendingInput is not acknowledged.
func (s *session) readInput() {
	buffer := make([]byte, 16<<10)
	for {
		s.lock.Lock()
		for len(s.pending) >= maxPendingInput && (s.frames != nil || !s.config.Terminal) {
			s.changed.Wait()
		}
		s.lock.Unlock()
		n, err := s.input.Read(buffer)
		s.lock.Lock()
		if s.frames == nil && s.config.Terminal && bytes.IndexByte(buffer[:n], 3) >= 0 {
			select {
			case s.interrupted <- struct{}{}:
			default:
			}
		} else if len(s.pending) < maxPendingInput {
			s.pending = append(s.pending, buffer[:n]...)
		}
		s.ended = s.ended || err != nil
		s.changed.Broadcast()
		s.lock.Unlock()
		if err != nil {
			return
		}
	}
}

func terminalSize() (rows, columns uint16) {
	for _, file := range []*os.File{os.Stdout, os.Stdin, os.Stderr} {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return uint16(height), uint16(width)
		}
	}
	return 24, 80
}

// run attaches to the session, and returns its exit status, or the error that ended the stream.
func (s *session) run(ctx context.Context, link *wire.Link) (int, error) {
	rows, columns := terminalSize()
	s.lock.Lock()
	seen := s.shown
	s.lock.Unlock()
	stream, err := openStream(ctx, link, "session", wire.Session{
		ID: s.id, Command: s.config.Command, Directory: s.config.Directory, Environment: s.config.Environment,
		Terminal: s.config.Terminal, Rows: rows, Columns: columns, Seen: seen,
	})
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	var reply wire.AttachReply
	if err := wire.Receive(stream, &reply); err != nil {
		return 0, err
	}
	if reply.Error != "" {
		return 0, sessionError(reply.Error)
	}
	if reply.New && s.hasLostInput() {
		return 0, errInputLost
	}
	s.makeRaw()
	frames := wire.NewFrames(stream, wire.SessionLimits.Lookup)
	s.attach(frames, reply)
	defer s.detach()
	go s.sendInput(frames)
	go s.followSize(ctx, frames)
	return s.writeOutput(frames)
}

// hasLostInput reports whether a program that is started again lacks what the one before has read: a part of a file, for
// example. What is typed is for the program that has shown something.
func (s *session) hasLostInput() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	isTyped := s.config.Terminal || s.input == os.Stdin && term.IsTerminal(int(os.Stdin.Fd()))
	return !isTyped && s.at > 0
}

func (s *session) attach(frames *wire.Frames, reply wire.AttachReply) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if reply.New {
		s.at = 0
		if s.shown > 0 {
			s.pending = nil
		}
	}
	s.shown = reply.Start
	s.dropReceived(reply.Received)
	s.sent = s.at
	s.frames = frames
	s.changed.Broadcast()
}

// dropReceived drops acknowledged input, of which an agent has no more than was sent. The lock must be held.
func (s *session) dropReceived(received int64) {
	if passed := received - s.at; passed > 0 && passed <= int64(len(s.pending)) && received <= s.sent {
		s.pending = append([]byte(nil), s.pending[passed:]...)
		s.at = received
	}
	s.changed.Broadcast()
}

func (s *session) detach() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.frames = nil
	s.changed.Broadcast()
}

func (s *session) sendInput(frames *wire.Frames) {
	over := false
	for {
		s.lock.Lock()
		for s.frames == frames && s.sent == s.at+int64(len(s.pending)) && (!s.ended || over) {
			s.changed.Wait()
		}
		if s.frames != frames {
			s.lock.Unlock()
			return
		}
		next := bytes.Clone(s.pending[s.sent-s.at:])
		s.sent += int64(len(next))
		ended := s.ended
		s.lock.Unlock()
		if len(next) > 0 && frames.Send(wire.FrameInput, next) != nil {
			return
		}
		if ended && len(next) == 0 {
			over = true
			if frames.Send(wire.FrameInputEnd, nil) != nil {
				return
			}
		}
	}
}

func (s *session) followSize(ctx context.Context, frames *wire.Frames) {
	changed := make(chan os.Signal, 1)
	defer notifyResize(changed)()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			rows, columns := terminalSize()
			if frames.SendJSON(wire.FrameSize, [2]uint16{rows, columns}) != nil {
				return
			}
		}
	}
}

func (s *session) writeOutput(frames *wire.Frames) (int, error) {
	for {
		kind, body, err := frames.Read()
		if err != nil {
			return 0, err
		}
		switch kind {
		case wire.FrameOutput, wire.FrameStderr:
			to := s.output
			if kind == wire.FrameStderr {
				to = s.errors
			}
			if _, err := to.Write(body); errors.Is(err, syscall.EPIPE) {
				return 0, errNoReader
			}
			s.lock.Lock()
			s.shown += int64(len(body))
			s.lock.Unlock()
		case wire.FrameReceived:
			var received int64
			if json.Unmarshal(body, &received) == nil {
				s.lock.Lock()
				s.dropReceived(received)
				s.lock.Unlock()
			}
		case wire.FrameExit:
			var status int
			if err := json.Unmarshal(body, &status); err != nil {
				return 0, err
			}
			return status, nil
		}
	}
}
