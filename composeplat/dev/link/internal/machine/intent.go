package machine

import (
	"slices"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"google.golang.org/protobuf/proto"

	"composeplat/link/internal/tree"
)

// An intent holds the changes that a cycle is about to make. If the cycle is interrupted, the next one compares it with both
// sides: without it, changes that were made already would look like changes of the other side, and so like conflicts.
type intent struct {
	here, there []*core.Change
}

type intentHead struct {
	Volume string   `json:"volume"`
	Here   []string `json:"here"`
	There  []string `json:"there"`
	Bytes  []int    `json:"bytes"`
}

func (i *intent) save(state string, folder FolderConfig, volume string) error {
	head := intentHead{Volume: volume}
	var entries []byte
	for _, list := range []struct {
		changes []*core.Change
		paths   *[]string
	}{{i.here, &head.Here}, {i.there, &head.There}} {
		for _, change := range list.changes {
			raw, err := proto.Marshal(&core.Archive{Content: change.New})
			if err != nil {
				return err
			}
			*list.paths = append(*list.paths, change.Path)
			head.Bytes = append(head.Bytes, len(raw))
			entries = append(entries, raw...)
		}
	}
	return newRecord("intent", state, folder).Save(head, entries)
}

func dropIntent(state string, folder FolderConfig) { newRecord("intent", state, folder).Drop() }

// loadIntent returns nil if there is none, or if it is damaged or of another volume.
func loadIntent(state string, folder FolderConfig, volume string) *intent {
	var head intentHead
	rest, has := newRecord("intent", state, folder).Load(&head)
	if !has || head.Volume != volume || len(head.Bytes) != len(head.Here)+len(head.There) {
		return nil
	}
	found := &intent{}
	for number, path := range slices.Concat(head.Here, head.There) {
		length := head.Bytes[number]
		archive := &core.Archive{}
		if length < 0 || length > len(rest) || proto.Unmarshal(rest[:length], archive) != nil || archive.EnsureValid(true) != nil {
			return nil
		}
		rest = rest[length:]
		change := &core.Change{Path: path, New: archive.Content}
		if number < len(head.Here) {
			found.here = append(found.here, change)
		} else {
			found.there = append(found.there, change)
		}
	}
	return found
}

// applyDone returns the base with those changes of an intent that a side has already.
func applyDone(ancestor *core.Entry, changes []*core.Change, now *core.Entry) *core.Entry {
	for _, change := range changes {
		ancestor = applyDoneAt(ancestor, change.Path, change.New, findEntry(now, change.Path))
	}
	return ancestor
}

func applyDoneAt(ancestor *core.Entry, path string, wanted, now *core.Entry) *core.Entry {
	known := findEntry(ancestor, path)
	switch {
	case wanted == nil && now == nil && known != nil, isLeaf(wanted) && wanted.Equal(now, false):
		return applyChange(ancestor, path, wanted)
	case !isFolder(wanted) || !isFolder(now):
		return ancestor
	}
	if !isFolder(known) {
		ancestor = applyChange(ancestor, path, &core.Entry{Kind: core.EntryKind_Directory})
	}
	for name, child := range wanted.Contents {
		ancestor = applyDoneAt(ancestor, tree.Join(path, name), child, now.Contents[name])
	}
	return ancestor
}

func applyChange(ancestor *core.Entry, path string, entry *core.Entry) *core.Entry {
	result, err := core.Apply(ancestor, []*core.Change{{Path: path, New: entry}})
	if err != nil {
		return ancestor
	}
	return result
}
