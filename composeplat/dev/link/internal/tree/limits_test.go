package tree

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"

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

// repeated is an answer that begins and ends with texts, and has as many parts between as make it long.
func repeated(begin string, part func(number int) string, end string) []byte {
	var body bytes.Buffer
	body.WriteString("\x00\x00\x00\x00" + begin)
	for number := 0; body.Len() < 48<<20; number++ {
		body.WriteString(part(number))
	}
	body.WriteString(end)
	binary.BigEndian.PutUint32(body.Bytes(), uint32(body.Len()-4))
	return body.Bytes()
}

// A few bytes of an answer were values that take up to forty times that.
func TestAnswersOfManyValuesTakeNoMemory(t *testing.T) {
	digest := make([]byte, 20)
	reason := func(number int) string { return fmt.Sprintf(`"%x":"",`, number) }
	hashes, err := packMessages(stageAnswer{Needed: []int{0}}, []*rsync.Signature{})
	must(t, err)
	signature := append(binary.AppendUvarint(nil, 24<<20), bytes.Repeat([]byte{3<<3 | 2, 0}, 12<<20)...)
	for name, attack := range map[string]struct {
		answer []byte
		ask    func(*Remote) error
	}{
		"modes": {
			repeated(`{"modes":{`, func(number int) string { return fmt.Sprintf(`"%x" :1,`, number) }, `"":1}}`),
			func(r *Remote) (err error) { _, err = r.Scan(context.Background(), true); return err },
		},
		"needed": {
			repeated(`{"needed":[`, func(int) string { return "0," }, "0]}"),
			func(r *Remote) (err error) { _, _, _, err = r.Stage([]string{"a"}, [][]byte{digest}); return err },
		},
		"copies": {
			repeated(`{"had":[`, func(int) string { return "true," }, "true]}")[4:],
			func(r *Remote) (err error) { _, err = r.StageCopies([]string{"a"}, [][]byte{digest}); return err },
		},
		"refused modes": {
			repeated(`{"refused":{`, reason, `"":""}}`)[4:],
			func(r *Remote) (err error) { _, err = r.SetModes(map[string]uint32{"a": 0o600}); return err },
		},
		"refused modes of changes": {
			repeated(`{"refused":{`, reason, `"":""}}`),
			func(r *Remote) (err error) { _, err = r.Transition(context.Background(), nil, Additions{}); return err },
		},
		"hashes": {
			append(hashes, signature...),
			func(r *Remote) (err error) { _, _, _, err = r.Stage([]string{"a"}, [][]byte{digest}); return err },
		},
	} {
		t.Run(name, func(t *testing.T) {
			remote := answered(t, func(int, byte) []byte { return attack.answer })
			var err error
			used := peak(func() { err = attack.ask(remote) })
			isRefused := errors.Is(err, ErrLost) && strings.Contains(err.Error(), "more than")
			if !isRefused || used > uint64(8*len(attack.answer)) {
				t.Errorf("%d MiB for an answer of %d MiB, %v", used>>20, len(attack.answer)>>20, err)
			}
		})
	}
}

func TestHeadsHaveAsManyValuesAsTheyMay(t *testing.T) {
	for text, values := range map[string]int{
		`{}`: 0, `7`: 0, `{"a":1}`: 0, `{"a":1,"b":2}`: 1, `["a,b","c\",d",{},",\\",0]`: 4, `"a,`: 0, `"a\`: 0,
	} {
		if counted := countMore([]byte(text)); counted != values {
			t.Errorf("%s: %d", text, counted)
		}
	}
}

func TestSignaturesWithWholeHashesAreTaken(t *testing.T) {
	whole := &rsync.BlockHash{Weak: 1, Strong: make([]byte, 20)}
	for fine, hashes := range map[bool][]*rsync.BlockHash{true: {whole, whole}, false: {whole, {Weak: 1, Strong: []byte{1}}}} {
		body, err := packMessages(struct{}{}, []*rsync.Signature{{BlockSize: 2, LastBlockSize: 1, Hashes: hashes}})
		must(t, err)
		in := bytes.NewReader(body)
		must(t, wire.ReceiveHead(in, &struct{}{}))
		if found, err := unpackMessages(in, newSignature, 1); (err == nil) != fine || fine && len(found[0].Hashes) != 2 {
			t.Errorf("%v: %v, %v", fine, found, err)
		}
	}
}
