package machine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"google.golang.org/protobuf/proto"

	"composeplat/link/internal/tree"
)

// A journal holds how a base differs from the one that was saved last: a save of a file does not write the whole tree.
type journal struct {
	changes []*core.Change
	modes   map[string]uint32
	gone    map[string]bool
}

// maxJournal is how many entries and modes a journal may hold: it is written as a whole too.
const maxJournal = 200

type journalHead struct {
	// Base is the ID of the saved base.
	Base  string            `json:"base"`
	Paths []string          `json:"paths"`
	Bytes []int             `json:"bytes"`
	Modes map[string]uint32 `json:"modes"`
	Gone  []string          `json:"gone"`
}

// with returns the journal with the changes of one more cycle.
func (j journal) with(changes []*core.Change, modes modePlan) journal {
	next := journal{slices.Concat(j.changes, changes), map[string]uint32{}, map[string]bool{}}
	maps.Copy(next.modes, j.modes)
	maps.Copy(next.gone, j.gone)
	for _, path := range modes.gone {
		delete(next.modes, path)
		next.gone[path] = true
	}
	for path, mode := range modes.set {
		delete(next.gone, path)
		next.modes[path] = mode
	}
	return next
}

func (j journal) size() int {
	size := len(j.modes) + len(j.gone)
	for _, change := range j.changes {
		size += 1 + int(change.New.Count())
	}
	return size
}

func (j journal) save(state string, folder FolderConfig, id string) error {
	for _, change := range j.changes {
		if err := change.New.EnsureValid(true); err != nil {
			return fmt.Errorf("the new base is not valid: %w", err)
		}
	}
	paths, lengths, entries, err := packChanges(j.changes)
	if err != nil {
		return err
	}
	head := journalHead{Base: id, Paths: paths, Bytes: lengths, Modes: j.modes, Gone: slices.Collect(maps.Keys(j.gone))}
	return newRecord("journal", state, folder).Save(head, entries)
}

var errDamagedJournal = errors.New("the journal is damaged")

// loadJournal returns an empty journal if there is none for a base.
func loadJournal(state string, folder FolderConfig, id string) (journal, error) {
	var head journalHead
	saved := newRecord("journal", state, folder)
	if !saved.Exists() {
		return journal{}, nil
	}
	entries, has := saved.Load(&head)
	if !has {
		return journal{}, errDamagedJournal
	}
	if id == "" || head.Base != id {
		return journal{}, nil
	}
	changes, ok := unpackChanges(head.Paths, head.Bytes, entries)
	if !ok {
		return journal{}, errDamagedJournal
	}
	return journal{}.with(changes, modePlan{set: head.Modes, gone: head.Gone}), nil
}

// applyTo returns the base after the changes of the journal.
func (j journal) applyTo(saved *base) (*base, error) {
	content := saved.content
	for _, change := range j.changes {
		var err error
		if content, err = tree.Apply(content, []*core.Change{change}); err != nil {
			return nil, err
		}
	}
	for path := range j.gone {
		delete(saved.head.Modes, path)
	}
	maps.Copy(saved.head.Modes, j.modes)
	return &base{head: saved.head, content: content, journal: j}, nil
}

// saveAfter saves a base that follows another one with some changes: as a whole, or as a longer journal.
func (b *base) saveAfter(before *base, changes []*core.Change, modes modePlan, state string, folder FolderConfig) error {
	if before != nil && before.head.ID != "" {
		if next := before.journal.with(changes, modes); next.size() <= maxJournal {
			b.head.ID, b.journal = before.head.ID, next
			return next.save(state, folder, b.head.ID)
		}
	}
	b.head.ID, b.journal = rand.Text(), journal{}
	if err := b.save(state, folder); err != nil {
		return err
	}
	// Should it stay, it has the ID of another base.
	newRecord("journal", state, folder).Drop()
	return nil
}

// packChanges returns the paths of changes and their new entries.
func packChanges(changes []*core.Change) (paths []string, lengths []int, entries []byte, err error) {
	for _, change := range changes {
		raw, err := proto.Marshal(&core.Archive{Content: change.New})
		if err != nil {
			return nil, nil, nil, err
		}
		paths, lengths, entries = append(paths, change.Path), append(lengths, len(raw)), append(entries, raw...)
	}
	return paths, lengths, entries, nil
}

// unpackChanges reads the output of packChanges.
func unpackChanges(paths []string, lengths []int, entries []byte) (changes []*core.Change, ok bool) {
	if len(paths) != len(lengths) {
		return nil, false
	}
	for number, path := range paths {
		length := lengths[number]
		archive := &core.Archive{}
		if length < 0 || length > len(entries) || proto.Unmarshal(entries[:length], archive) != nil || archive.EnsureValid(true) != nil {
			return nil, false
		}
		entries = entries[length:]
		changes = append(changes, &core.Change{Path: path, New: archive.Content})
	}
	return changes, true
}
