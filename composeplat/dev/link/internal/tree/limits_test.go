package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/wire"
)

// answered is a Remote whose other end answers each request with the result of answer.
func answered(t *testing.T, answer func(number int, kind byte) []byte) *Remote {
	t.Helper()
	remote, far := remoteTo(t)
	go func() {
		frames := wire.NewCompressedFrames(far, limits.Lookup)
		for number := 0; ; number++ {
			kind, _, err := frames.Read()
			if err != nil || frames.Send(kind, answer(number, kind)) != nil {
				return
			}
		}
	}()
	return remote
}

// An answer's modes take no more memory than its entries may.
func TestModesOfAnAnswer(t *testing.T) {
	var body bytes.Buffer
	body.WriteString(`{"modes":{"a":1`)
	for number := 0; body.Len() < 120<<20; number++ {
		fmt.Fprintf(&body, `,"%x":1`, number)
	}
	body.WriteString("}}")
	raw := append([]byte{byte(body.Len() >> 24), byte(body.Len() >> 16), byte(body.Len() >> 8), byte(body.Len())}, body.Bytes()...)
	remote := answered(t, func(int, byte) []byte { return raw })
	var err error
	var view *View
	used := peak(func() { view, err = remote.Scan(context.Background(), true) })
	runtime.KeepAlive(view)
	if !errors.Is(err, ErrLost) {
		t.Errorf("%d MiB for an answer of %d MiB, %v", used>>20, len(raw)>>20, err)
	}
}

// The entries of a folder are limited, however many answers they come in.
func TestEntriesOfManyAnswers(t *testing.T) {
	remote := answered(t, func(number int, kind byte) []byte {
		if number == 0 {
			body, _ := packMessages(scanAnswer{}, []*core.Change{{New: &core.Entry{Kind: core.EntryKind_Directory}}})
			return body
		}
		contents := map[string]*core.Entry{}
		for i := range 200_000 {
			contents[fmt.Sprint(i)] = &core.Entry{Kind: core.EntryKind_Untracked}
		}
		body, _ := packMessages(scanAnswer{}, []*core.Change{{Path: fmt.Sprint(number), New: &core.Entry{Kind: core.EntryKind_Directory, Contents: contents}}})
		return body
	})
	var err error
	for range 12 {
		if _, err = remote.Scan(context.Background(), false); err != nil {
			break
		}
	}
	count := 0
	Walk("", remote.view.Content, func(string, *core.Entry) { count++ })
	if !errors.Is(err, ErrLost) {
		t.Errorf("%d entries are taken", count)
	}
}
