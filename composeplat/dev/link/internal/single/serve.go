package single

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/wire"
)

// Kinds of frames on a file stream.
const (
	frameState  = 's'
	frameWrite  = 'w'
	frameResult = 'd'
)

// A WriteRequest replaces the file if it still has the expected digest. Keep saves a copy of it first.
type WriteRequest struct {
	Expected string `json:"had"`
	Mode     uint32 `json:"mode"`
	Keep     bool   `json:"keep"`
	Content  []byte `json:"-"`
}

// A WriteResult is the result of a WriteRequest. Stale means that the file has changed, of which a State follows.
type WriteResult struct {
	Stale bool   `json:"stale,omitempty"`
	Kept  string `json:"kept,omitempty"`
	Error string `json:"error,omitempty"`
}

// IsDone reports whether the file was replaced.
func (r WriteResult) IsDone() bool { return !r.Stale && r.Error == "" }

func unpack(body []byte, head any) ([]byte, error) {
	content, err := wire.Unpack(body, head)
	if err == nil && len(content) > MaxSize {
		return nil, fmt.Errorf("larger than %d MiB", MaxSize>>20)
	}
	return content, err
}

// limits are the maximum lengths of the frames on a file stream.
var limits = wire.Limits{frameState: MaxSize + wire.MaxHead, frameWrite: MaxSize + wire.MaxHead, frameResult: wire.MaxChunk}

// Serve sends the file's states and handles requests. Copies that can't be saved beside the file go to the folder spares.
func Serve(place beneath.Place, spares string, stream io.ReadWriteCloser) error {
	frames := wire.NewFrames(stream, limits.Lookup)
	done := make(chan struct{})
	defer close(done)
	var writes atomic.Uint64
	go Follow(place, done, &writes, func(state State) {
		if body, err := wire.Pack(state, state.Content); err == nil {
			_ = frames.Send(frameState, body)
		}
	})
	for {
		kind, body, err := frames.Read()
		if err != nil {
			return err
		}
		var order WriteRequest
		if kind != frameWrite {
			return fmt.Errorf("unexpected frame %q", kind)
		}
		if order.Content, err = unpack(body, &order); err != nil {
			return err
		}
		result := write(place, spares, order)
		if result.IsDone() {
			writes.Add(1)
		}
		if err := frames.SendJSON(frameResult, result); err != nil {
			return err
		}
	}
}

func write(place beneath.Place, spares string, order WriteRequest) WriteResult {
	now := Read(place)
	if now.Problem != "" {
		return WriteResult{Error: now.Problem}
	}
	if now.Digest != order.Expected {
		return WriteResult{Stale: true}
	}
	var result WriteResult
	if order.Keep && now.Exists {
		name, err := saveCopy(place, spares, now)
		if err != nil {
			return WriteResult{Error: err.Error()}
		}
		result.Kept = name
	}
	if err := place.MakeFolder(0o777); err != nil {
		return WriteResult{Error: explain(place, err)}
	}
	switch err := Write(place, order.Content, order.Mode, order.Expected); {
	case errors.Is(err, ErrChanged):
		result.Stale = true
	case err != nil:
		result.Error = explain(place, err)
	}
	return result
}

// explain returns the reason of a failed write.
func explain(place beneath.Place, err error) string {
	if !errors.Is(err, fs.ErrPermission) {
		return err.Error()
	}
	return fmt.Sprintf("user %d of the container may write neither this file nor its folder %s: give one of them to this user in the image",
		os.Getuid(), filepath.Dir(place.String()))
}

// saveCopy saves a copy of the file beside it, or else in the folder spares.
func saveCopy(place beneath.Place, spares string, now State) (string, error) {
	name := ConflictName(place.Name(), time.Now())
	folder, err := place.Folder()
	if err == nil {
		defer folder.Close()
		var kept string
		if kept, err = CreateSpare(folder, name, now.Content, fs.FileMode(now.Mode)); err == nil {
			return filepath.Join(filepath.Dir(place.String()), kept), nil
		}
	}
	other, err := beneath.Open(spares)
	if err != nil {
		return "", err
	}
	defer other.Close()
	kept, err := CreateSpare(other, name, now.Content, 0o600)
	return filepath.Join(spares, kept), err
}

// CreateSpare creates a file with contents, with a number after its name if that exists. It is on the disk before the other
// file is replaced.
func CreateSpare(folder *beneath.Folder, name string, content []byte, mode fs.FileMode) (string, error) {
	for number, free := 2, name; ; number++ {
		err := createFile(folder, free, content, mode)
		if err == nil {
			folder.Flush(free, true)
		}
		if !errors.Is(err, fs.ErrExist) {
			return free, err
		}
		free = fmt.Sprintf("%s-%d", name, number)
	}
}

// maxStem is how much of a name its copy keeps: file systems take names of 255 bytes, and a number may follow.
const maxStem = 220

// AppendToName returns a path with an end after its name, of which a long one loses the rest.
func AppendToName(path, end string) string {
	if name := path[strings.LastIndexByte(path, '/')+1:]; len(name) > maxStem {
		path = strings.TrimSuffix(path, name) + strings.ToValidUTF8(name[:maxStem], "")
	}
	return path + end
}

// ConflictName is the name for the copy of a file that lost a conflict.
func ConflictName(path string, now time.Time) string {
	return AppendToName(path, ".conflict-"+now.Format("20060102-150405"))
}

// Remote is the file at the other end of a stream.
type Remote struct {
	frames  *wire.Frames
	States  chan State
	results chan WriteResult
}

// NewRemote reads the stream until it ends: then States is closed.
func NewRemote(stream io.ReadWriteCloser) *Remote {
	f := &Remote{frames: wire.NewFrames(stream, limits.Lookup), States: make(chan State, 1), results: make(chan WriteResult, 1)}
	go f.read()
	return f
}

func (f *Remote) read() {
	defer close(f.States)
	defer close(f.results)
	for {
		kind, body, err := f.frames.Read()
		if err != nil {
			return
		}
		switch kind {
		case frameState:
			var state State
			if state.Content, err = unpack(body, &state); err != nil {
				return
			}
			// The agent is not trusted: the digest is computed here.
			state.Mode &= 0o777
			if state.Exists && state.Problem == "" {
				state.Digest = Digest(state.Content)
			}
			select {
			case <-f.States: // only the newest counts
			default:
			}
			f.States <- state
		case frameResult:
			var done WriteResult
			if err := json.Unmarshal(body, &done); err != nil {
				return
			}
			select {
			case f.results <- done:
			default: // nothing was requested
				return
			}
		}
	}
}

// Write sends a request and waits for its result.
func (f *Remote) Write(order WriteRequest) (WriteResult, error) {
	body, err := wire.Pack(order, order.Content)
	if err != nil {
		return WriteResult{}, err
	}
	if err := f.frames.Send(frameWrite, body); err != nil {
		return WriteResult{}, err
	}
	done, open := <-f.results
	if !open {
		return WriteResult{}, io.ErrUnexpectedEOF
	}
	return done, nil
}

func (f *Remote) Close() error { return f.frames.Close() }
