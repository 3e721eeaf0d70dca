package machine

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
)

var journaled = FolderConfig{Local: "/a", Remote: "/b"}

// saveNext saves the base that follows another one with a change.
func saveNext(t *testing.T, state string, before *base, change *core.Change, modes modePlan) *base {
	t.Helper()
	c := &cycle{folder: &folder{state: state, config: journaled, base: before, saved: time.Now()}}
	c.welcome.Volume = "one"
	next, err := c.nextBase([]*core.Change{change})
	must(t, err)
	if next.head.Modes = c.modesOfBase(); next.head.Modes == nil {
		next.head.Modes = map[string]uint32{}
	}
	for _, path := range modes.gone {
		delete(next.head.Modes, path)
	}
	maps.Copy(next.head.Modes, modes.set)
	must(t, c.saveBase(next, []*core.Change{change}, modes))
	return next
}

func sizeOf(t *testing.T, state, kind string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(state, recordName(kind, journaled)))
	if os.IsNotExist(err) {
		return 0
	}
	must(t, err)
	return info.Size()
}

// A changed file costs a few lines, however many files there are, and each base is found again.
func TestAJournalIsWrittenInsteadOfTheWholeBase(t *testing.T) {
	state, files := t.TempDir(), map[string]string{}
	for number := range 5000 {
		files[fmt.Sprintf("f%04d", number)] = aDigest
	}
	now := saveNext(t, state, nil, &core.Change{New: folderOf(files)}, modePlan{set: map[string]uint32{"f0000": 0o600}})
	whole := sizeOf(t, state, "base")
	wholeAgain := 0
	for number := range 3 * maxJournal {
		name := fmt.Sprintf("f%04d", number%7)
		change := &core.Change{Path: name, New: fileOf(strings.Repeat(string(rune('a'+number%26)), 32))}
		modes := modePlan{set: map[string]uint32{name: uint32(number % 0o777)}}
		if number%5 == 0 {
			change.New, modes = nil, modePlan{gone: []string{name}}
		}
		id := now.head.ID
		now = saveNext(t, state, now, change, modes)
		if now.head.ID != id {
			wholeAgain++
			if sizeOf(t, state, "journal") != 0 {
				t.Fatal("the journal of the base before is still there")
			}
		} else if sizeOf(t, state, "journal") > whole/10 {
			t.Fatalf("%d bytes", sizeOf(t, state, "journal"))
		}
		if number%50 == 0 {
			found := loadBase(state, journaled, "one")
			if !found.content.Equal(now.content, true) || !maps.Equal(found.head.Modes, now.head.Modes) {
				t.Fatalf("%v, and not %v", found.head.Modes, now.head.Modes)
			}
			now = found
		}
	}
	if wholeAgain < 2 || wholeAgain > 5 {
		t.Errorf("saved as a whole %d times", wholeAgain)
	}
}

func TestAJournalOfAnotherBaseIsNotApplied(t *testing.T) {
	state := t.TempDir()
	first := saveNext(t, state, nil, &core.Change{New: folderOf(map[string]string{"a": aDigest})}, modePlan{})
	saveNext(t, state, first, &core.Change{Path: "a"}, modePlan{})
	kept, err := os.ReadFile(filepath.Join(state, recordName("journal", journaled)))
	must(t, err)
	second := saveNext(t, state, nil, &core.Change{New: folderOf(map[string]string{"a": aDigest})}, modePlan{})
	must(t, os.WriteFile(filepath.Join(state, recordName("journal", journaled)), kept, 0o600))
	if found := loadBase(state, journaled, "one"); found == nil || !found.content.Equal(second.content, true) {
		t.Errorf("%+v", found)
	}
}

// Without its journal, a base is one that both sides had long ago: then a first sync, which loses nothing, is better.
func TestWithADamagedJournalThereIsNoBase(t *testing.T) {
	for name, damage := range map[string]func(path string){
		"cut":   func(path string) { must(t, os.Truncate(path, 50)) },
		"empty": func(path string) { must(t, os.Truncate(path, 0)) },
		"no place for its changes": func(path string) {
			state := filepath.Dir(path)
			lost := journal{changes: []*core.Change{{Path: "x/y", New: fileOf(aDigest)}}}
			must(t, lost.save(state, journaled, loadBase(state, journaled, "one").head.ID))
		},
		"other lengths": func(path string) {
			state := filepath.Dir(path)
			head := journalHead{Base: loadBase(state, journaled, "one").head.ID, Paths: []string{"a"}, Bytes: []int{9}}
			must(t, newRecord("journal", state, journaled).Save(head, nil))
		},
	} {
		state := t.TempDir()
		first := saveNext(t, state, nil, &core.Change{New: folderOf(map[string]string{"a": aDigest})}, modePlan{})
		saveNext(t, state, first, &core.Change{Path: "a"}, modePlan{})
		if loadBase(state, journaled, "one") == nil {
			t.Fatal("no base before")
		}
		damage(filepath.Join(state, recordName("journal", journaled)))
		if found := loadBase(state, journaled, "one"); found != nil {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestAChangeThatIsNotValidIsNotSaved(t *testing.T) {
	state := t.TempDir()
	first := saveNext(t, state, nil, &core.Change{New: folderOf(map[string]string{"a": aDigest})}, modePlan{})
	c := &cycle{folder: &folder{state: state, config: journaled, base: first, saved: time.Now()}}
	invalid := []*core.Change{{Path: "a", New: &core.Entry{Kind: 77}}}
	next, err := c.nextBase(invalid)
	must(t, err)
	if c.saveBase(next, invalid, modePlan{}) == nil || next.head.ID != "" {
		t.Error("saved")
	}
}
