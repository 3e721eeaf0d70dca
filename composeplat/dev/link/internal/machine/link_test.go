//go:build !windows

package machine

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"composeplat/link/internal/tree"
	"composeplat/link/internal/wire"
)

// silent is an agent that never sends anything.
type silent struct{ opened chan struct{} }

func (s silent) open(context.Context) (io.ReadWriteCloser, string, error) {
	near, _ := net.Pipe()
	close(s.opened)
	return near, "silent", nil
}

func TestASilentAgentDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	opened := make(chan struct{})
	w.dialer = silent{opened}
	w.start()
	<-opened
	began := time.Now()
	w.up.signals <- syscall.SIGTERM
	w.ends(128 + int(syscall.SIGTERM))
	if passed := time.Since(began); passed > 5*time.Second {
		t.Fatalf("ends after %v", passed)
	}
}

// linkTo is a link to an agent that answers as the test wants.
func linkTo(t *testing.T, agent func(*wire.Link)) *wire.Link {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		if link, err := wire.Start(far, false); err == nil {
			agent(link)
		}
	}()
	link, err := wire.Start(near, true)
	must(t, err)
	t.Cleanup(func() { link.Close() })
	return link
}

func (w *world) folder() *folder {
	made, err := newFolder(0, w.config.Folders[0], w.config.State, NewEvents(w))
	must(w.t, err)
	w.t.Cleanup(made.close)
	return made
}

// anything is what an agent of a test reads.
func anything(byte) (bytes uint32, expected bool) { return wire.MaxBulk, true }

func TestAFolderThatLosesItsAgentIsNotReady(t *testing.T) {
	t.Parallel()
	folder := newWorld(t).folder()
	link := linkTo(t, func(link *wire.Link) {
		stream, err := link.AcceptStream(context.Background())
		var head wire.Open
		if err != nil || wire.Receive(stream, &head) != nil || wire.Send(stream, wire.AttachReply{}) != nil {
			return
		}
		frames := wire.NewCompressedFrames(stream, anything)
		if _, _, err := frames.Read(); err == nil {
			_ = frames.Send('?', nil)
		}
	})
	err := folder.run(context.Background(), link, wire.Welcome{}, func() { t.Error("it is ready") })
	if !errors.Is(err, tree.ErrLost) {
		t.Fatal(err)
	}
}

func TestNothingIsFlushedOverALostLink(t *testing.T) {
	t.Parallel()
	u := &client{folders: []*folder{newWorld(t).folder()}}
	link := linkTo(t, func(*wire.Link) {})
	link.Close()
	began := time.Now()
	u.flush(context.Background(), link)
	if passed := time.Since(began); passed > flushTimeout/2 {
		t.Fatalf("waits %v", passed)
	}
}

func TestTheEndOfAComplaintIsKept(t *testing.T) {
	stderr := &tail{}
	for _, text := range []string{strings.Repeat("a", maxTailLength), strings.Repeat("b", maxTailLength-1), "c\n"} {
		n, err := stderr.Write([]byte(text))
		must(t, err)
		equal(t, len(text), n)
	}
	equal(t, strings.Repeat("b", maxTailLength-2)+"c", stderr.String())
}
