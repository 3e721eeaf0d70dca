//go:build !windows

package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"composeplat/link/internal/wire"
)

const (
	maxKeptOutput   = 256 << 10 // bytes of output that are kept for the next link
	detachedTimeout = 10 * time.Minute
	killTimeout     = 5 * time.Second
	drainTimeout    = 200 * time.Millisecond
	// maxLeftOutput is more than two full pipes, and the last piece that was read of them.
	maxLeftOutput = 256 << 10
	defaultPath   = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// A session is a running command. It survives lost links.
type session struct {
	id       string
	terminal bool
	pid      int
	input    *os.File
	master   *os.File

	lock    sync.Mutex
	changed *sync.Cond
	output  []chunk
	start   int64
	end     int64
	// held counts the outputs that wait for a slow viewer.
	held        int
	received    int64
	exit        *int
	viewer      *viewer
	hangUpTimer *time.Timer
	hangUpOnce  sync.Once

	// inputLock is held while input is written: that of a new viewer comes after what is left of the one before.
	inputLock sync.Mutex
}

type chunk struct {
	kind byte
	body []byte
}

// A viewer is the stream that is attached to a session. A newer one replaces it.
type viewer struct {
	frames *wire.Frames
	at     int64
	gone   bool
}

// startSession starts a session's command.
func startSession(r *reaper, wanted wire.Session) (*session, error) {
	environment := mergeEnvironment(os.Environ(), wanted.Environment)
	directory, err := checkDirectory(wanted.Directory)
	if err != nil {
		return nil, err
	}
	arguments := wanted.Command
	if len(arguments) == 0 {
		if arguments = findShell(); arguments == nil {
			return nil, errors.New("the image has no shell, neither /bin/bash nor /bin/sh: name a command to run")
		}
	}
	program, err := findProgram(arguments[0], environment, directory)
	if err != nil {
		return nil, err
	}
	s := &session{id: wanted.ID, terminal: wanted.Terminal}
	s.changed = sync.NewCond(&s.lock)
	command := &exec.Cmd{Path: program, Args: arguments, Dir: directory, Env: environment}
	outputs, theirs, err := s.openStreams(command, wanted)
	if err != nil {
		return nil, err
	}
	ended, err := r.start(command)
	closeAll(theirs)
	if err != nil {
		closeAll(append(outputs, s.input))
		return nil, fmt.Errorf("can't run %s: %w", arguments[0], err)
	}
	s.pid = command.Process.Pid
	var read sync.WaitGroup
	for i, file := range outputs {
		kind := byte(wire.FrameOutput)
		if i == 1 {
			kind = wire.FrameStderr
		}
		read.Go(func() { s.readOutput(kind, file) })
	}
	go s.waitForExit(ended, &read)
	return s, nil
}

// openStreams gives a command a terminal, or three pipes. Outputs are the ends to read from, standard error second; theirs
// are the command's ends, which must be closed after its start.
func (s *session) openStreams(command *exec.Cmd, wanted wire.Session) (outputs, theirs []*os.File, err error) {
	if wanted.Terminal {
		master, terminal, err := pty.Open()
		if err != nil {
			return nil, nil, fmt.Errorf("can't make a terminal: %w", err)
		}
		_ = pty.Setsize(master, &pty.Winsize{Rows: wanted.Rows, Cols: wanted.Columns})
		command.Stdin, command.Stdout, command.Stderr = terminal, terminal, terminal
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		s.input, s.master = master, master
		return []*os.File{master}, []*os.File{terminal}, nil
	}
	pipes := make([]*os.File, 0, 6)
	for range 3 {
		from, to, err := os.Pipe()
		if err != nil {
			closeAll(pipes)
			return nil, nil, err
		}
		pipes = append(pipes, from, to)
	}
	command.Stdin, command.Stdout, command.Stderr = pipes[0], pipes[3], pipes[5]
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	s.input = pipes[1]
	return []*os.File{pipes[2], pipes[4]}, []*os.File{pipes[0], pipes[3], pipes[5]}, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}

func mergeEnvironment(base []string, added map[string]string) []string {
	result := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, over := added[name]
		return over
	})
	for name, value := range added {
		result = append(result, name+"="+value)
	}
	return result
}

func checkDirectory(directory string) (string, error) {
	if directory == "" {
		return "", nil
	}
	if info, err := os.Stat(directory); err != nil {
		return "", fmt.Errorf("can't use the working directory %s: %w", directory, err)
	} else if !info.IsDir() {
		return "", fmt.Errorf("can't use the working directory %s: not a directory", directory)
	}
	return directory, nil
}

func findShell() []string {
	for _, candidate := range []string{"/bin/bash", "/bin/sh"} {
		if info, err := os.Stat(candidate); err == nil && info.Mode().Perm()&0o111 != 0 {
			return []string{candidate}
		}
	}
	return nil
}

// findProgram looks up a program on the PATH of the environment that it will have.
func findProgram(name string, environment []string, directory string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) && directory != "" {
			name = filepath.Join(directory, name)
		}
		return name, nil
	}
	path := defaultPath
	for _, entry := range environment {
		if value, is := strings.CutPrefix(entry, "PATH="); is {
			path = value
		}
	}
	for _, folder := range filepath.SplitList(path) {
		candidate := filepath.Join(folder, name)
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("%s not found in the container, on PATH %s", name, path)
}

// readOutput keeps the command's output. It waits for an attached viewer that is slow, and does not wait without one.
func (s *session) readOutput(kind byte, from *os.File) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			s.lock.Lock()
			s.held++
			for s.viewer != nil && s.end-s.viewer.at+int64(n) > maxKeptOutput {
				s.changed.Wait()
			}
			s.held--
			s.output = append(s.output, chunk{kind, slices.Clone(buffer[:n])})
			s.end += int64(n)
			for s.end-s.start > maxKeptOutput {
				s.start += int64(len(s.output[0].body))
				s.output = s.output[1:]
			}
			s.changed.Broadcast()
			s.lock.Unlock()
		}
		if err != nil {
			return
		}
	}
}

func (s *session) waitForExit(ended <-chan syscall.WaitStatus, read *sync.WaitGroup) {
	status := <-ended
	s.drain(read)
	code := status.ExitStatus()
	if status.Signaled() {
		code = 128 + int(status.Signal())
	}
	s.lock.Lock()
	s.exit = &code
	s.input.Close()
	s.changed.Broadcast()
	s.lock.Unlock()
}

// drain waits until the output of a command that has ended is read, however long a slow viewer takes. A background process
// may hold the output open for ever, and keep writing: nothing is waited for after a moment without output, or after as
// much as the command can have left.
func (s *session) drain(read *sync.WaitGroup) {
	all := make(chan struct{})
	go func() {
		read.Wait()
		close(all)
	}()
	s.lock.Lock()
	end := s.end
	s.lock.Unlock()
	for before, most := end, end+maxLeftOutput; ; before = end {
		select {
		case <-all:
			return
		case <-time.After(drainTimeout):
		}
		s.lock.Lock()
		held := s.held
		end = s.end
		s.lock.Unlock()
		if held == 0 && end == before || end > most {
			return
		}
	}
}

// attach serves a stream until it ends or another one replaces it.
func (s *session) attach(stream io.ReadWriteCloser, wanted wire.Session, fresh bool) error {
	v := &viewer{frames: wire.NewFrames(stream, wire.SessionLimits.Lookup)}
	s.lock.Lock()
	if s.viewer != nil {
		s.viewer.gone = true
	}
	if s.hangUpTimer != nil {
		s.hangUpTimer.Stop()
		s.hangUpTimer = nil
	}
	v.at = s.start
	if !fresh {
		v.at = min(max(wanted.Seen, s.start), s.end)
	}
	s.viewer = v
	reply := wire.AttachReply{New: fresh, Received: s.received, Start: v.at}
	s.changed.Broadcast()
	s.lock.Unlock()
	defer s.detach(v)
	if err := wire.Send(stream, reply); err != nil {
		return err
	}
	if !fresh && s.terminal {
		// Full-screen programs draw everything again when the size changes.
		s.resize(max(wanted.Rows, 2)-1, wanted.Columns)
		s.resize(wanted.Rows, wanted.Columns)
	}
	go s.handleInput(v)
	return s.sendOutput(v)
}

func (s *session) detach(v *viewer) {
	s.lock.Lock()
	defer s.lock.Unlock()
	v.gone = true
	v.frames.Close()
	if s.viewer == v {
		s.viewer = nil
		s.hangUpTimer = time.AfterFunc(detachedTimeout, s.hangUp)
	}
	s.changed.Broadcast()
}

// detachViewer detaches the stream, so that hanging up is not sent to it as the command's own exit.
func (s *session) detachViewer() {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.viewer != nil {
		s.viewer.gone = true
		s.viewer = nil
	}
	s.changed.Broadcast()
}

func (s *session) sendOutput(v *viewer) error {
	for {
		s.lock.Lock()
		for v.at == s.end && s.exit == nil && !v.gone {
			s.changed.Wait()
		}
		var next []chunk
		at := s.start
		for _, piece := range s.output {
			size := int64(len(piece.body))
			if at+size > v.at {
				next = append(next, chunk{piece.kind, piece.body[max(0, v.at-at):]})
			}
			at += size
		}
		upTo, exit, gone := s.end, s.exit, v.gone
		s.lock.Unlock()
		if gone {
			return nil
		}
		for _, piece := range next {
			if err := v.frames.Write(piece.kind, piece.body); err != nil {
				return err
			}
		}
		if err := v.frames.Flush(); err != nil {
			return err
		}
		s.lock.Lock()
		v.at = upTo
		s.changed.Broadcast()
		done := exit != nil && s.end == upTo
		s.lock.Unlock()
		if done {
			if err := v.frames.SendJSON(wire.FrameExit, *exit); err != nil {
				return err
			}
			// The machine closes the stream when it has read the exit status.
			s.lock.Lock()
			for !v.gone {
				s.changed.Wait()
			}
			s.lock.Unlock()
			return nil
		}
	}
}

func (s *session) handleInput(v *viewer) {
	defer s.detach(v)
	for {
		kind, body, err := v.frames.Read()
		if err != nil {
			return
		}
		switch kind {
		case wire.FrameInput:
			received := s.writeInput(body)
			if v.frames.SendJSON(wire.FrameReceived, received) != nil {
				return
			}
		case wire.FrameInputEnd:
			if !s.terminal {
				s.closeInput()
			}
		case wire.FrameSize:
			var size [2]uint16
			if json.Unmarshal(body, &size) == nil {
				s.resize(size[0], size[1])
			}
		}
	}
}

// writeInput counts input before it is written: the command may answer, and the link be lost, before the write returns, and
// the machine must not send it again.
func (s *session) writeInput(body []byte) int64 {
	s.inputLock.Lock()
	defer s.inputLock.Unlock()
	s.lock.Lock()
	s.received += int64(len(body))
	received := s.received
	s.lock.Unlock()
	_, _ = s.input.Write(body)
	return received
}

// closeInput waits for input that the viewer before has left to be written.
func (s *session) closeInput() {
	s.inputLock.Lock()
	defer s.inputLock.Unlock()
	s.input.Close()
}

func (s *session) resize(rows, columns uint16) {
	if s.master != nil && rows > 0 && columns > 0 {
		_ = pty.Setsize(s.master, &pty.Winsize{Rows: rows, Cols: columns})
	}
}

func (s *session) isRunning() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.exit == nil
}

func (s *session) signal(number syscall.Signal) {
	if s.isRunning() {
		_ = syscall.Kill(-s.pid, number)
	}
}

// hangUp ends all processes in the command's process group, and returns when they have ended.
func (s *session) hangUp() {
	s.hangUpOnce.Do(s.endGroup)
}

func (s *session) endGroup() {
	_ = syscall.Kill(-s.pid, syscall.SIGHUP)
	_ = syscall.Kill(-s.pid, syscall.SIGCONT)
	for until := time.Now().Add(killTimeout); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if !s.isRunning() {
			break
		}
	}
	_ = syscall.Kill(-s.pid, syscall.SIGKILL)
}
