package machine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"

	"composeplat/link/internal/wire"
)

const mostInput = 64 << 10

// noSession is why a session can't be had at all: another link would not help.
type noSession string

func (n noSession) Error() string { return string(n) }

// A session shows one command that runs in the container, over one link after another.
type session struct {
	id          string
	config      *Config
	input       io.Reader
	output      io.Writer
	errors      io.Writer
	interrupted chan struct{}

	lock    sync.Mutex
	moved   *sync.Cond
	before  *term.State
	pending []byte // what is typed and not yet known to have come through
	at      int64  // where pending begins in all that was typed
	sent    int64
	ended   bool
	seen    int64
	frames  *wire.Frames
}

func newSession(config *Config) *session {
	s := &session{
		id: rand.Text(), config: config, input: os.Stdin, output: os.Stdout, errors: os.Stderr,
		interrupted: make(chan struct{}, 1),
	}
	s.moved = sync.NewCond(&s.lock)
	return s
}

func (s *session) attached() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.frames != nil
}

// restore gives the terminal back as it was found.
func (s *session) restore() {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.before != nil {
		_ = term.Restore(int(os.Stdin.Fd()), s.before)
		s.before = nil
	}
}

func (s *session) raw() {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.config.Terminal && s.before == nil && s.input == os.Stdin && term.IsTerminal(int(os.Stdin.Fd())) {
		s.before, _ = term.MakeRaw(int(os.Stdin.Fd()))
	}
}

// read takes what is typed, no more than may be under way.
func (s *session) read() {
	buffer := make([]byte, 16<<10)
	for {
		s.lock.Lock()
		for len(s.pending) >= mostInput && (s.frames != nil || !s.config.Terminal) {
			s.moved.Wait()
		}
		s.lock.Unlock()
		n, err := s.input.Read(buffer)
		s.lock.Lock()
		if s.frames == nil && s.config.Terminal && bytes.IndexByte(buffer[:n], 3) >= 0 {
			select {
			case s.interrupted <- struct{}{}:
			default:
			}
		} else if len(s.pending) < mostInput {
			s.pending = append(s.pending, buffer[:n]...)
		}
		s.ended = s.ended || err != nil
		s.moved.Broadcast()
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

// run attaches to the session, and returns its status, or the error that has cut it off.
func (s *session) run(ctx context.Context, link *wire.Link) (int, error) {
	rows, columns := terminalSize()
	s.lock.Lock()
	seen := s.seen
	s.lock.Unlock()
	stream, err := openStream(ctx, link, "session", wire.Session{
		ID: s.id, Command: s.config.Command, Directory: s.config.Directory, Environment: s.config.Environment,
		Terminal: s.config.Terminal, Rows: rows, Columns: columns, Seen: seen,
	})
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	var reply wire.Attached
	if err := wire.Receive(stream, &reply); err != nil {
		return 0, err
	}
	if reply.Error != "" {
		return 0, noSession(reply.Error)
	}
	s.raw()
	frames := wire.NewFrames(stream, wire.SessionLimits.Of)
	s.begin(frames, reply)
	defer s.leave()
	go s.send(frames)
	go s.follow(ctx, frames)
	return s.show(frames)
}

func (s *session) begin(frames *wire.Frames, reply wire.Attached) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if reply.New {
		s.at = 0
		if s.seen > 0 {
			s.pending = nil
		}
	}
	s.seen = reply.Start
	s.forget(reply.Heard)
	s.sent = s.at
	s.frames = frames
	s.moved.Broadcast()
}

// forget drops input that has come through. It must be called with the lock held.
func (s *session) forget(heard int64) {
	if passed := heard - s.at; passed > 0 && passed <= int64(len(s.pending)) {
		s.pending = append([]byte(nil), s.pending[passed:]...)
		s.at = heard
	}
	s.moved.Broadcast()
}

func (s *session) leave() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.frames = nil
	s.moved.Broadcast()
}

func (s *session) send(frames *wire.Frames) {
	over := false
	for {
		s.lock.Lock()
		for s.frames == frames && s.sent == s.at+int64(len(s.pending)) && (!s.ended || over) {
			s.moved.Wait()
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

func (s *session) follow(ctx context.Context, frames *wire.Frames) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
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

func (s *session) show(frames *wire.Frames) (int, error) {
	for {
		kind, body, err := frames.Read()
		if err != nil {
			return 0, err
		}
		switch kind {
		case wire.FrameOutput, wire.FrameErrors:
			to := s.output
			if kind == wire.FrameErrors {
				to = s.errors
			}
			_, _ = to.Write(body)
			s.lock.Lock()
			s.seen += int64(len(body))
			s.lock.Unlock()
		case wire.FrameHeard:
			var heard int64
			if json.Unmarshal(body, &heard) == nil {
				s.lock.Lock()
				s.forget(heard)
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
