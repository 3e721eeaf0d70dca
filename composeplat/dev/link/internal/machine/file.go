package machine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/single"
	"composeplat/link/internal/tree"
	"composeplat/link/internal/wire"
)

// A file is synced by itself: its folder may belong to the image, where nothing can be staged or renamed.
type file struct {
	number   int
	config   FolderConfig
	state    string
	events   *Events
	problems problems
	place    *beneath.Place
	// withoutModes means that the file system here keeps no permissions.
	withoutModes bool
	flushes      chan chan struct{}
}

// flushDelay is how long it takes until a change in the container is reported, and a little more.
const flushDelay = 400 * time.Millisecond

// flush waits until all changes in the container before are here.
func (f *file) flush(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, 5*flushDelay)
	defer cancel()
	requestFlush(limited, f.flushes)
}

// run syncs until its stream ends. It calls ready after each comparison.
func (f *file) run(ctx context.Context, link *wire.Link, welcome wire.Welcome, ready func()) error {
	stream, err := openStream(ctx, link, "file", f.config.Remote)
	if err != nil {
		return err
	}
	far := single.NewRemote(stream)
	defer far.Close()
	local, err := f.find()
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	near := make(chan single.State, 1)
	m := &fileSync{file: f, remote: far, local: local, base: loadFileBase(f.state, f.config, welcome.Boot), first: true}
	go single.Follow(local, done, &m.pulls, func(state single.State) {
		select {
		case <-near: // only the newest counts
		default:
		}
		near <- state
	})
	if m.here, err = next(ctx, near); err != nil {
		return err
	}
	if m.there, err = next(ctx, far.States); err != nil {
		return err
	}
	again := time.NewTicker(longDelay)
	defer again.Stop()
	var flushed chan struct{}
	var quiet <-chan time.Time
	for {
		if err := m.run(); err != nil {
			return err
		}
		ready()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case state := <-near:
			m.observeHere(state)
		case state, open := <-far.States:
			if !open {
				return errors.New("the connection to the container is lost")
			}
			m.observeThere(state)
		case <-again.C:
		case flushed = <-f.flushes:
			quiet = time.After(flushDelay)
		case <-quiet:
			close(flushed)
		}
	}
}

// find resolves the path of the file once: changes that the container makes later don't lead elsewhere.
func (f *file) find() (beneath.Place, error) {
	if f.place != nil {
		return *f.place, nil
	}
	found, err := beneath.Find(f.config.Local, f.config.Within)
	if err != nil {
		return found, err
	}
	f.place = &found
	if folder, err := found.Folder(); err == nil {
		f.withoutModes = !tree.KeepsModes(folder)
		folder.Close()
	}
	return found, nil
}

func next(ctx context.Context, states <-chan single.State) (single.State, error) {
	select {
	case <-ctx.Done():
		return single.State{}, ctx.Err()
	case state, open := <-states:
		if !open {
			return state, errors.New("the connection to the container is lost")
		}
		return state, nil
	}
}

// A fileSync holds the states of both ends of a file.
type fileSync struct {
	*file
	remote      *single.Remote
	local       beneath.Place
	base        fileBase
	here, there single.State
	first       bool
	// pushes and pulls count the writes there and here.
	pushes uint64
	pulls  atomic.Uint64
}

// observeHere takes a state of the file here, unless it is older than the last write: the next one follows.
func (m *fileSync) observeHere(state single.State) {
	if state.Writes >= m.pulls.Load() {
		m.here = state
	}
}

// observeThere does so for the container. The agent is not trusted: a number that it makes up delays its own file alone.
func (m *fileSync) observeThere(state single.State) {
	if state.Writes >= m.pushes {
		m.there = state
	}
}

func (m *fileSync) run() error {
	var found []problem
	for _, end := range []struct {
		side  string
		state single.State
	}{{"local", m.here}, {"container", m.there}} {
		if end.state.Problem != "" {
			found = append(found, problem{end.side, "", end.state.Problem})
		}
	}
	var err error
	if len(found) == 0 {
		var side, why string
		if side, why, err = m.match(); why != "" {
			found = append(found, problem{side, "", why})
		}
	}
	m.problems.observe(found)
	return err
}

// adoptMode gives the file here the container's mode, if its file system keeps none.
func (m *fileSync) adoptMode() {
	switch {
	case !m.withoutModes || !m.here.Exists:
	case m.base.Digest != "":
		m.here.Mode = m.base.Mode
	case m.there.Exists:
		m.here.Mode = m.there.Mode
	default:
		m.here.Mode = modeWithoutModes
	}
}

// match makes both ends equal. A deletion is never synced.
func (m *fileSync) match() (side, why string, err error) {
	m.adoptMode()
	here, there := m.here, m.there
	if m.base.Sent != "" && there.Digest == m.base.Sent {
		m.base.Digest, m.base.Mode = there.Digest, there.Mode
	}
	known := m.base.Digest != ""
	same := here.Digest == there.Digest && here.Mode == there.Mode
	hereNew := here.Digest != m.base.Digest || here.Mode != m.base.Mode
	thereNew := there.Digest != m.base.Digest || there.Mode != m.base.Mode
	switch {
	case !here.Exists && !there.Exists:
		return "", "", nil
	case here.Exists && there.Exists && same:
		return "", "", m.saveAgreed(here)
	case m.config.OneWay && !here.Exists:
		return "", "", nil
	case m.config.OneWay:
	case !here.Exists && known || !there.Exists && known && !hereNew:
		return "", "", nil
	case !here.Exists || there.Exists && known && !hereNew && thereNew:
		return m.pull()
	}
	lost := !m.config.OneWay && known && there.Exists && there.Digest != m.base.Digest && there.Digest != here.Digest
	began := time.Now()
	m.base.Sent = here.Digest
	if err := m.base.save(m.state, m.config); err != nil {
		return "local", err.Error(), nil
	}
	done, err := m.remote.Write(single.WriteRequest{Expected: there.Digest, Mode: here.Mode, Keep: lost, Content: here.Content})
	if err != nil || done.Stale {
		return "", "", err
	}
	if done.Error != "" {
		return "container", done.Error, nil
	}
	m.pushes++
	if done.Kept != "" {
		m.events.Emit("conflict", Event{"folder": m.number, "path": "", "kept_as": done.Kept})
	}
	m.there = here
	m.emitSynced(began, 1, 0)
	return "", "", m.saveAgreed(here)
}

func (m *fileSync) pull() (side, why string, err error) {
	began := time.Now()
	if now := single.Read(m.local); now.Digest != m.here.Digest {
		m.here = now
		return "", "", nil
	}
	if err := m.local.MakeFolder(0o777); err != nil {
		return "local", err.Error(), nil
	}
	switch err := single.Write(m.local, m.there.Content, m.there.Mode, m.here.Digest); {
	case errors.Is(err, single.ErrChanged):
		m.here = single.Read(m.local)
		return "", "", nil
	case err != nil:
		return "local", err.Error(), nil
	}
	m.pulls.Add(1)
	m.here = m.there
	m.emitSynced(began, 0, 1)
	return "", "", m.saveAgreed(m.there)
}

func (m *fileSync) emitSynced(began time.Time, there, here int) {
	m.events.Emit("synced", Event{"folder": m.number, "first": m.first, "seconds": time.Since(began).Seconds(),
		"to_container": there, "to_local": here})
	m.first = false
}

func (m *fileSync) saveAgreed(state single.State) error {
	if m.first {
		m.emitSynced(time.Now(), 0, 0)
	}
	if m.base.Digest == state.Digest && m.base.Mode == state.Mode {
		return nil
	}
	m.base.Digest, m.base.Mode, m.base.Sent = state.Digest, state.Mode, ""
	return m.base.save(m.state, m.config)
}
