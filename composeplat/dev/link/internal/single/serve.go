package single

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"composeplat/link/internal/beneath"
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

// limits is how long the frames of a file stream may be.
var limits = wire.Limits{frameState: Most + wire.MaxHead, frameWrite: Most + wire.MaxHead, frameDone: wire.MaxPiece}

// Serve tells a machine of the file, and does what it orders. Copies that fit nowhere else go to the spares.
func Serve(place beneath.Place, spares string, stream io.ReadWriteCloser) error {
	frames := wire.NewFrames(stream, limits.Of)
	done := make(chan struct{})
	defer close(done)
	go Follow(place, done, func(state State) {
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
		if err := frames.SendJSON(frameDone, obey(place, spares, order)); err != nil {
			return err
		}
	}
}

func obey(place beneath.Place, spares string, order Order) Done {
	now := Read(place)
	if now.Problem != "" {
		return Done{Error: now.Problem}
	}
	if now.Digest != order.Had {
		return Done{Stale: true}
	}
	var result Done
	if order.Keep && now.Exists {
		name, err := keep(place, spares, now)
		if err != nil {
			return Done{Error: err.Error()}
		}
		result.Kept = name
	}
	if err := place.MakeFolder(0o777); err != nil {
		return Done{Error: err.Error()}
	}
	if err := Write(place, order.Content, order.Mode); err != nil {
		result.Error = err.Error()
	}
	return result
}

// keep saves a copy of the file: beside it, or where that can't be, among the spares.
func keep(place beneath.Place, spares string, now State) (string, error) {
	name := ConflictName(place.Name(), time.Now())
	folder, err := place.Folder()
	if err == nil {
		defer folder.Close()
		var kept string
		if kept, err = spare(folder, name, now.Content, fs.FileMode(now.Mode)); err == nil {
			return filepath.Join(filepath.Dir(place.String()), kept), nil
		}
	}
	other, err := beneath.Open(spares)
	if err != nil {
		return "", err
	}
	defer other.Close()
	kept, err := spare(other, name, now.Content, 0o600)
	return filepath.Join(spares, kept), err
}

// spare puts contents into a file of their own: where the name is taken, with a number after it.
func spare(folder *beneath.Folder, name string, content []byte, mode fs.FileMode) (string, error) {
	for number, free := 2, name; ; number++ {
		err := put(folder, free, content, mode)
		if !errors.Is(err, fs.ErrExist) {
			return free, err
		}
		free = fmt.Sprintf("%s-%d", name, number)
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
	f := &Far{frames: wire.NewFrames(stream, limits.Of), States: make(chan State, 1), dones: make(chan Done, 1)}
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
