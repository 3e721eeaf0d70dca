package machine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"composeplat/link/internal/wire"
)

// Agents that answer late, or with too much.

// The command of the session before has ended when the next one begins: its ports are free then.
func TestSessionsDoNotOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held := filepath.Join(w.root, "held")
	w.config.Folders = nil
	w.config.Command = []string{"sh", "-c", fmt.Sprintf(
		`trap 'sleep 1; rmdir %s; exit 0' HUP TERM; mkdir %s || exit 7; while :; do sleep 0.05; done`, held, held)}
	w.start()
	w.eventually("it runs", func() bool {
		_, err := os.Stat(held)
		return err == nil
	})
	first := w.status
	w.startAgainst() // takes over
	select {
	case status := <-w.status:
		t.Errorf("the next command ended with %d", status)
		w.up = nil
	case <-time.After(3 * time.Second):
	}
	<-first
}

// A complainer is an agent that has a problem with whatever it gets, and with much else.
type complainer struct{}

func (complainer) open(context.Context) (io.ReadWriteCloser, string, error) {
	return acceptStreams(func(_ *wire.Link, stream wire.Conn) { go complain(stream) }), "complainer", nil
}

func complain(stream wire.Conn) {
	var head wire.Open
	if wire.Receive(stream, &head) != nil {
		return
	}
	switch head.Kind {
	case "control":
		var hello wire.Hello
		_ = wire.Receive(stream, &hello)
		_ = wire.Send(stream, wire.Welcome{Volume: "one", Boot: "boot"})
	case "tree":
		_ = wire.Send(stream, wire.AttachReply{})
		frames := wire.NewCompressedFrames(stream, anything)
		for {
			kind, body, err := frames.Read()
			if err != nil {
				return
			}
			var reply []byte
			switch kind {
			case 's':
				reply = packedFor(map[string]any{}, &core.Change{New: &core.Entry{Kind: core.EntryKind_Directory}})
			case 'x':
				in := bytes.NewReader(body)
				var nothing struct{}
				_ = wire.ReceiveHead(in, &nothing)
				var results, problems []proto.Message
				for in.Len() > 0 {
					change := &core.Change{}
					if protodelim.UnmarshalFrom(in, change) != nil {
						break
					}
					results = append(results, &core.Archive{})
				}
				for number := range 20_000 {
					problems = append(problems, &core.Problem{Path: fmt.Sprint(number), Error: "no"})
				}
				reply = append(packedFor(map[string]any{"results": len(results)}, results...), packedFor(struct{}{}, problems...)...)
			default:
				reply = []byte("{}")
			}
			if frames.Send(kind, reply) != nil {
				return
			}
		}
	}
}

// A container that can't write anything does not fill the terminal.
func TestProblemsOfChangesAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("file"), "x")
	w.dialer = complainer{}
	w.startAgainst()
	time.Sleep(4 * time.Second)
	if count := w.count("problem"); count > 2*maxProblems {
		t.Errorf("%d problems are reported", count)
	}
}
