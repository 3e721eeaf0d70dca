package single

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"composeplat/link/internal/wire"
)

// What the frames of a file stream are.
const (
	frameState = 's'
	frameWrite = 'w'
	frameDone  = 'd'
)

// An Order is to write contents, if the file is still what the machine takes it for. Keep is to save a copy of that.
type Order struct {
	Had     string `json:"had"`
	Mode    uint32 `json:"mode"`
	Keep    bool   `json:"keep"`
	Content []byte `json:"-"`
}

// Done is what became of an Order: Stale when the file had changed, which a State is going to tell.
type Done struct {
	Stale bool   `json:"stale,omitempty"`
	Kept  string `json:"kept,omitempty"`
	Error string `json:"error,omitempty"`
}

func unpack(body []byte, head any) ([]byte, error) {
	content, err := wire.Unpack(body, head)
	if err == nil && len(content) > Most {
		return nil, fmt.Errorf("longer than %d MiB", Most>>20)
	}
	return content, err
}

// Serve tells a machine of the file, and does what it orders. Copies that fit nowhere else go to the place.
func Serve(path, place string, stream io.ReadWriteCloser) error {
	frames := wire.NewFrames(stream)
	done := make(chan struct{})
	defer close(done)
	go Follow(path, done, func(state State) {
		if body, err := wire.Pack(state, state.Content); err == nil {
			_ = frames.Send(frameState, body)
		}
	})
	for {
		kind, body, err := frames.Read()
		if err != nil {
			return err
		}
		var order Order
		if kind != frameWrite {
			return fmt.Errorf("unknown request %q", kind)
		}
		if order.Content, err = unpack(body, &order); err != nil {
			return err
		}
		if err := frames.SendJSON(frameDone, obey(path, place, order)); err != nil {
			return err
		}
	}
}

func obey(path, place string, order Order) Done {
	now := Read(path)
	if now.Problem != "" {
		return Done{Error: now.Problem}
	}
	if now.Digest != order.Had {
		return Done{Stale: true}
	}
	var result Done
	if order.Keep && now.Exists {
		name, err := spare(ConflictName(path, time.Now()), now.Content, os.FileMode(now.Mode))
		if err != nil {
			name, err = spare(filepath.Join(place, filepath.Base(ConflictName(path, time.Now()))), now.Content, 0o600)
		}
		if err != nil {
			return Done{Error: err.Error()}
		}
		result.Kept = name
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return Done{Error: err.Error()}
	}
	if err := Write(path, order.Content, order.Mode); err != nil {
		result.Error = err.Error()
	}
	return result
}

// spare puts contents into a file of their own: where the name is taken, with a number after it.
func spare(name string, content []byte, mode os.FileMode) (string, error) {
	for number, free := 2, name; ; number++ {
		file, err := os.OpenFile(free, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			free = fmt.Sprintf("%s-%d", name, number)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = file.Write(content)
		if err = errors.Join(err, file.Close()); err != nil {
			_ = os.Remove(free)
			return "", err
		}
		return free, nil
	}
}

// ConflictName is what the copy of a file that lost is called.
func ConflictName(path string, now time.Time) string {
	return path + ".conflict-" + now.Format("20060102-150405")
}

// Far is the file at the other end of a stream.
type Far struct {
	frames *wire.Frames
	States chan State
	dones  chan Done
}

// NewFar reads what the stream says until it ends: then States is closed.
func NewFar(stream io.ReadWriteCloser) *Far {
	f := &Far{frames: wire.NewFrames(stream), States: make(chan State, 1), dones: make(chan Done, 1)}
	go f.read()
	return f
}

func (f *Far) read() {
	defer close(f.States)
	defer close(f.dones)
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
			// What was said of the content is not believed.
			state.Mode &= 0o777
			if state.Exists && state.Problem == "" {
				state.Digest = Digest(state.Content)
			}
			select {
			case <-f.States: // only the newest counts
			default:
			}
			f.States <- state
		case frameDone:
			var done Done
			if err := json.Unmarshal(body, &done); err != nil {
				return
			}
			select {
			case f.dones <- done:
			default: // nobody has asked
				return
			}
		}
	}
}

// Order has the file written.
func (f *Far) Order(order Order) (Done, error) {
	body, err := wire.Pack(order, order.Content)
	if err != nil {
		return Done{}, err
	}
	if err := f.frames.Send(frameWrite, body); err != nil {
		return Done{}, err
	}
	done, open := <-f.dones
	if !open {
		return Done{}, io.ErrUnexpectedEOF
	}
	return done, nil
}

func (f *Far) Close() error { return f.frames.Close() }
