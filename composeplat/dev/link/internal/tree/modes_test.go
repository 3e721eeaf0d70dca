package tree

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/beneath"
)

func TestModesAreFoundByPath(t *testing.T) {
	modes := Modes{}.with(map[string]uint32{"a": 0o600, "a/b": 0o640, "a/b/c": 0o644}, nil)
	for name, want := range map[string]uint32{"a": 0o600, "a/b": 0o640, "a/b/c": 0o644} {
		if mode, has := modes.Get(name); !has || mode != want {
			t.Errorf("%s: %o", name, mode)
		}
	}
	for _, name := range []string{"", "b", "a/c", "a/b/c/d", "../a", "/a"} {
		if mode, has := modes.Get(name); has {
			t.Errorf("%q: %o", name, mode)
		}
	}
	if mode, has := (Modes{}).Get("a"); has || mode != 0 {
		t.Error(mode)
	}
}

func TestWhatIsSetIsNotGone(t *testing.T) {
	before := Modes{}.with(map[string]uint32{"a": 0o600, "b": 0o600}, nil)
	after := before.with(map[string]uint32{"a": 0o644}, []string{"a", "b", "never"})
	if found := maps.Collect(after.All()); !maps.Equal(found, map[string]uint32{"a": 0o644}) {
		t.Error(found)
	}
}

// Views are kept while others are made of them: Modes that were returned once never change.
func TestModesBeforeAreNotChanged(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	known, flat := Modes{}, map[string]uint32{}
	for range 500 {
		before, flatBefore := known, maps.Clone(flat)
		set, gone := map[string]uint32{}, []string{}
		for range random.IntN(4) {
			name := fmt.Sprintf("d%d/f%d", random.IntN(3), random.IntN(5))
			if random.IntN(3) == 0 {
				gone = append(gone, name)
				delete(flat, name)
			}
		}
		for range random.IntN(4) {
			name := fmt.Sprintf("d%d/f%d", random.IntN(3), random.IntN(5))
			set[name], flat[name] = uint32(random.IntN(512)), 0
			flat[name] = set[name]
		}
		known = before.with(set, gone)
		if found := maps.Collect(known.All()); !maps.Equal(found, flat) {
			t.Fatalf("%v, and not %v", found, flat)
		}
		if found := maps.Collect(before.All()); !maps.Equal(found, flatBefore) {
			t.Fatalf("changed: %v, and not %v", found, flatBefore)
		}
		if known.Equal(before) != maps.Equal(flat, flatBefore) {
			t.Fatalf("%v and %v", flat, flatBefore)
		}
	}
}

// Folders without modes are not kept, else two Modes with the same paths would differ.
func TestEmptyFoldersOfModesAreDropped(t *testing.T) {
	modes := Modes{}.with(map[string]uint32{"a/b": 0o600}, nil).with(nil, []string{"a/b"})
	if !modes.Equal(Modes{}) || len(slices.Collect(modes.paths())) != 0 {
		t.Error(modes)
	}
}

func TestWalkingModesCanStop(t *testing.T) {
	modes := Modes{}.with(map[string]uint32{"a/b": 1, "a/c": 2, "d": 3}, nil)
	seen := 0
	for range modes.All() {
		seen++
		break
	}
	for range modes.paths() {
		seen++
		break
	}
	if seen != 2 {
		t.Error(seen)
	}
}

// The probe leaves nothing behind, and finds permissions where there are some.
func TestFilesCanLoseAPermission(t *testing.T) {
	root := t.TempDir()
	folder, err := beneath.Open(root)
	must(t, err)
	defer folder.Close()
	if !canBeNotExecutable(folder) {
		t.Error("not here")
	}
	entries, err := folder.Entries()
	must(t, err)
	if len(entries) != 0 {
		t.Error(entries)
	}
}

// A container's file system without permissions is known by the first scan, and its modes count for nothing.
func TestARemoteWithoutModes(t *testing.T) {
	content := &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{"a": fileOf("x")}}
	head := scanAnswer{Modes: map[string]uint32{"a": 0o777}, WithoutModes: true}
	remote := answering(t, frames(frameScan, body(t, head, &core.Change{New: content})))
	if !remote.HasModes() {
		t.Error("known too early")
	}
	view := scan(t, remote, true)
	if remote.HasModes() || len(modesOf(view)) != 0 {
		t.Error(modesOf(view))
	}
}

// What a container's file system says once counts, whatever it says later.
func TestARemoteStaysWithoutModes(t *testing.T) {
	content := &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{"a": fileOf("x")}}
	remote := answered(t, func(number int, _ byte) []byte {
		return body(t, scanAnswer{Modes: map[string]uint32{"a": uint32(number)}, WithoutModes: number == 0}, &core.Change{New: content})
	})
	for range 3 {
		view := scan(t, remote, true)
		if remote.HasModes() || len(modesOf(view)) != 0 {
			t.Error(modesOf(view))
		}
	}
}

// The mount of a container's volume translates names: those that Windows refuses are taken there, and nowhere else.
func TestNamesOnAVolumeWithoutModes(t *testing.T) {
	for _, inContainer := range []bool{false, true} {
		source, root := t.TempDir(), t.TempDir()
		put(t, source, "a:b", "x")
		from, to := planted(t, source), planted(t, root)
		if inContainer {
			to.ProbeModesInContainer()
		}
		to.withoutModes = true
		scan(t, from, true)
		scan(t, to, true)
		outcome := transfer(t, from, to, &core.Change{Path: "a:b", New: fileOf("x")})
		if isRefused := len(outcome.Problems) > 0; isRefused == inContainer {
			t.Errorf("in a container %v: %v", inContainer, outcome.Problems)
		}
	}
}
