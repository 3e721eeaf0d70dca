package tree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"
	"google.golang.org/protobuf/proto"

	"composeplat/link/internal/wire"
)

// answering is a Remote whose agent answers one request so.
func answering(t *testing.T, answer func(frames *wire.Frames) error) *Remote {
	t.Helper()
	remote, far := remoteTo(t)
	go func() {
		frames := wire.NewCompressedFrames(far, limits.Lookup)
		if _, _, err := frames.Read(); err == nil {
			_ = answer(frames)
		}
	}()
	return remote
}

// body is an answer's head, and messages after it.
func body[M proto.Message](t *testing.T, head any, messages ...M) []byte {
	t.Helper()
	packed, err := packMessages(head, messages)
	must(t, err)
	return packed
}

func frames(kind byte, body []byte) func(*wire.Frames) error {
	return func(frames *wire.Frames) error { return frames.Send(kind, body) }
}

func TestAFailureIsToldAndTheLinkGoesOn(t *testing.T) {
	remote := answering(t, func(frames *wire.Frames) error {
		if err := frames.Send(frameFailure, []byte("no space left on device")); err != nil {
			return err
		}
		if _, _, err := frames.Read(); err != nil {
			return err
		}
		packed, err := wire.Pack(scanAnswer{}, nil)
		return errors.Join(err, frames.Send(frameScan, packed))
	})
	_, err := remote.Scan(t.Context(), true)
	if err == nil || err.Error() != "no space left on device" || isLost(err) {
		t.Fatal(err)
	}
	_, err = remote.Scan(t.Context(), true)
	must(t, err)
}

func TestWhatIsReportedIsKeptUntilItIsAskedFor(t *testing.T) {
	remote := answering(t, func(frames *wire.Frames) error {
		for range 3 {
			if err := frames.Send(frameChanged, nil); err != nil {
				return err
			}
		}
		if err := frames.Send(frameWatchError, []byte("too many folders")); err != nil {
			return err
		}
		packed, err := wire.Pack(scanAnswer{}, nil)
		return errors.Join(err, frames.Send(frameScan, packed))
	})
	_, err := remote.Scan(t.Context(), false)
	must(t, err)
	if len(remote.Changed()) != 1 || remote.WatchError() != "too many folders" {
		t.Fatalf("%d, %q", len(remote.Changed()), remote.WatchError())
	}
}

func TestAScanIsMergedIntoTheViewBefore(t *testing.T) {
	remote := answering(t, func(frames *wire.Frames) error {
		first, err := packMessages(scanAnswer{Modes: map[string]uint32{"a": 0o644, "b": 0o600}, Files: 2, Bytes: 7},
			[]*core.Change{{New: &core.Entry{Contents: map[string]*core.Entry{"a": fileOf("a"), "b": fileOf("b")}}}})
		if err = errors.Join(err, frames.Send(frameScan, first)); err != nil {
			return err
		}
		if _, _, err := frames.Read(); err != nil {
			return err
		}
		second, err := packMessages(scanAnswer{Modes: map[string]uint32{"a": 0o600}, Gone: []string{"b"}, Files: 1, Bytes: 3},
			[]*core.Change{{Path: "b"}})
		return errors.Join(err, frames.Send(frameScan, second))
	})
	before := scan(t, remote, true)
	after := scan(t, remote, false)
	if listed(before) != "a File, b File" || before.Files != 2 || before.Bytes != 7 || modesOf(before)["b"] != 0o600 {
		t.Errorf("%+v", before)
	}
	if listed(after) != "a File" || after.Files != 1 || after.Bytes != 3 || len(modesOf(after)) != 1 || modesOf(after)["a"] != 0o600 {
		t.Errorf("%+v", after)
	}
}

// What an agent answers is not valid, or not an answer to what was asked.
func TestInvalidAnswersEndTheLink(t *testing.T) {
	paths, digests := []string{"a", "b"}, [][]byte{digestOf("a"), digestOf("b")}
	changes := []*core.Change{{Path: "a", New: fileOf("a")}}
	stage := func(remote *Remote) error { _, _, _, err := remote.Stage(paths, digests); return err }
	copies := func(remote *Remote) error { _, err := remote.StageCopies(paths, digests); return err }
	transition := func(remote *Remote) error {
		_, err := remote.Transition(context.Background(), changes, Additions{})
		return err
	}
	modes := func(remote *Remote) error { _, err := remote.SetModes(map[string]uint32{"a": 1}); return err }
	look := func(remote *Remote) error { _, err := remote.Scan(context.Background(), true); return err }
	signature := &rsync.Signature{}
	large := &rsync.Signature{BlockSize: 1 << 30, LastBlockSize: 1, Hashes: []*rsync.BlockHash{{Strong: make([]byte, 20)}}}
	invalid := &core.Archive{Content: &core.Entry{Kind: 77}}
	fine := &core.Archive{Content: fileOf("a")}
	for name, test := range map[string]struct {
		ask     func(*Remote) error
		kind    byte
		answer  []byte
		message string
	}{
		"scan: no head":                    {look, frameScan, nil, "EOF"},
		"scan: not JSON":                   {look, frameScan, []byte("\x00\x00\x00\x01{"), "unexpected end of JSON"},
		"scan: half a message":             {look, frameScan, append(body[*core.Change](t, scanAnswer{}), 9), "a message is cut off"},
		"scan: not a message":              {look, frameScan, append(body[*core.Change](t, scanAnswer{}), 1, 0xff), "cannot parse"},
		"scan: a path of nothing":          {look, frameScan, body(t, scanAnswer{}, &core.Change{Path: "a//b"}), "not a valid path"},
		"scan: a path too long":            {look, frameScan, body(t, scanAnswer{}, &core.Change{Path: strings.Repeat("x", maxPathLength+1)}), "too long"},
		"scan: a path too deep":            {look, frameScan, body(t, scanAnswer{}, &core.Change{Path: strings.Repeat("x/", maxDepth+1) + "x"}), "too long"},
		"scan: another kind":               {look, frameModes, nil, "unexpected frame"},
		"scan: contents":                   {look, framePart, nil, "unexpected frame"},
		"stage: no head":                   {stage, frameStage, nil, "EOF"},
		"stage: too few signatures":        {stage, frameStage, body(t, stageAnswer{Needed: []int{0, 1}}, signature), "too few signatures"},
		"stage: what was not offered":      {stage, frameStage, body(t, stageAnswer{Needed: []int{2}}, signature), "asks for what was not offered"},
		"stage: below the first":           {stage, frameStage, body(t, stageAnswer{Needed: []int{-1}}, signature), "asks for what was not offered"},
		"stage: the same twice":            {stage, frameStage, body(t, stageAnswer{Needed: []int{0, 0}}, signature, signature), "asks for what was not offered"},
		"stage: blocks too large":          {stage, frameStage, body(t, stageAnswer{Needed: []int{0}}, large), "blocks are too large"},
		"stage: half a signature":          {stage, frameStage, append(body[*rsync.Signature](t, stageAnswer{Needed: []int{0}}), 200, 1), "a message is cut off"},
		"copies: not JSON":                 {copies, frameCopies, []byte("had"), "invalid character"},
		"copies: too few":                  {copies, frameCopies, []byte(`{"had": [true]}`), "not as many answers as paths"},
		"copies: too many":                 {copies, frameCopies, []byte(`{"had": [true, true, true]}`), "not as many answers as paths"},
		"transition: no head":              {transition, frameChange, nil, "EOF"},
		"transition: no results":           {transition, frameChange, body[*core.Archive](t, changeAnswer{}), "not as many results as changes"},
		"transition: fewer than announced": {transition, frameChange, body[*core.Archive](t, changeAnswer{Results: 1}), "fewer results than announced"},
		"transition: an invalid result":    {transition, frameChange, body(t, changeAnswer{Results: 1}, invalid), "unknown"},
		"transition: no problems":          {transition, frameChange, body(t, changeAnswer{Results: 1}, fine), "EOF"},
		"transition: half a problem": {transition, frameChange, slices.Concat(body(t, changeAnswer{Results: 1}, fine),
			body[*core.Problem](t, struct{}{}), []byte{9}), "a message is cut off"},
		"modes: not JSON": {modes, frameModes, []byte("refused"), "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.ask(answering(t, frames(test.kind, test.answer)))
			if !isLost(err) || !strings.Contains(err.Error(), test.message) {
				t.Fatal(err)
			}
		})
	}
}

func TestOnlyAnswersAboutWhatWasAskedAreTaken(t *testing.T) {
	answer, err := json.Marshal(modesAnswer{Refused: map[string]string{"a": "not allowed", "../b": "made up"}})
	must(t, err)
	remote := answering(t, frames(frameModes, answer))
	refused, err := remote.SetModes(map[string]uint32{"a": 0o600})
	must(t, err)
	if fmt.Sprint(refused) != "map[a:not allowed]" {
		t.Fatal(refused)
	}
}

func TestOnlyModesThatWentWithAChangeAreRefused(t *testing.T) {
	head := changeAnswer{Results: 1, Refused: map[string]string{"a": "not allowed", "../b": "made up"}}
	answer := slices.Concat(body(t, head, &core.Archive{Content: fileOf("a")}), body[*core.Problem](t, struct{}{}))
	remote := answering(t, frames(frameChange, answer))
	outcome, err := remote.Transition(t.Context(), []*core.Change{{Path: "a", New: fileOf("a")}}, Additions{Modes: map[string]uint32{"a": 0o600}})
	must(t, err)
	if fmt.Sprint(outcome.Refused) != "map[a:not allowed]" {
		t.Fatal(outcome.Refused)
	}
}

func TestProblemsOfATransitionAreTaken(t *testing.T) {
	answer := slices.Concat(body(t, changeAnswer{Results: 2, Missing: true}, &core.Archive{Content: fileOf("a")}, &core.Archive{}),
		body(t, struct{}{}, &core.Problem{Path: "b", Error: "no"}))
	remote := answering(t, frames(frameChange, answer))
	outcome, err := remote.Transition(t.Context(), []*core.Change{{Path: "a", New: fileOf("a")}, {Path: "b", Old: fileOf("b")}}, Additions{})
	must(t, err)
	if len(outcome.Results) != 2 || !HaveSameContent(outcome.Results[0], fileOf("a")) || outcome.Results[1] != nil ||
		!outcome.Missing || len(outcome.Problems) != 1 || outcome.Problems[0].Path != "b" {
		t.Fatalf("%+v", outcome)
	}
}

func TestContentsThatAreNotValidEndTheLink(t *testing.T) {
	part := func(message *rsync.Transmission) []byte {
		raw, err := proto.Marshal(message)
		must(t, err)
		return raw
	}
	done := part(&rsync.Transmission{Done: true})
	beyond := part(&rsync.Transmission{Operation: &rsync.Operation{Start: 5, Count: 1}})
	for name, test := range map[string]struct {
		send    func(*wire.Frames) error
		message string
	}{
		"no parts":          {frames(framePartEnd, nil), "contents end too early"},
		"not a message":     {frames(framePart, []byte{0xff}), "cannot parse"},
		"blocks of nowhere": {frames(framePart, beyond), "contents refer to blocks that do not exist"},
		"an answer instead": {frames(frameScan, nil), "unexpected frame"},
		"a failure":         {frames(frameFailure, []byte("no")), "contents end too early"},
		"more than was asked": {func(frames *wire.Frames) error {
			for range 3 {
				if err := frames.Send(framePart, done); err != nil {
					return err
				}
			}
			return nil
		}, "contents do not end"},
	} {
		t.Run(name, func(t *testing.T) {
			target, _ := opened(t)
			_, err := Save(answering(t, test.send), target, []string{"a"}, [][]byte{digestOf("a")})
			if !isLost(err) || !strings.Contains(err.Error(), test.message) {
				t.Fatal(err)
			}
		})
	}
}

// Problems are shown to the user: their length is the agent's choice no more.
func TestALongProblemIsShortened(t *testing.T) {
	rules, err := newRules(nil)
	must(t, err)
	long := &core.Entry{Kind: core.EntryKind_Problematic, Problem: strings.Repeat("ä", 1000)}
	short := rules.restrict("file", long)
	if len(short.Problem) > maxProblemLength || len(short.Problem) < maxProblemLength-1 || !strings.HasPrefix(long.Problem, short.Problem) {
		t.Fatalf("%d bytes", len(short.Problem))
	}
	if same := rules.restrict("file", &core.Entry{Kind: core.EntryKind_Problematic, Problem: "short"}); same.Problem != "short" {
		t.Error(same)
	}
}

func TestPathsOfAnAgentAreNamesWithSlashesBetween(t *testing.T) {
	for path, valid := range map[string]bool{
		"": true, "a": true, "a/b": true, "..a/b..": true, "a b": true, "/": false, "a/": false, "/a": false, "a//b": false,
		".": false, "a/.": false, "..": false, "a/../b": false, "a\x00": false, strings.Repeat("x", maxPathLength): true,
	} {
		if err := checkPath(path); (err == nil) != valid {
			t.Errorf("%.20q: %v", path, err)
		}
	}
}
