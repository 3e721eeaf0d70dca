package machine

import (
	"slices"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"google.golang.org/protobuf/proto"

	"composeplat/link/internal/tree"
)

// An intent is what a cycle was about to do when it was cut off. How much of it was done can be seen at the sides; without
// it, what we had carried over ourselves would look like a change of the other side, and so like a conflict.
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
	return recordOf("intent", state, folder).Save(head, entries)
}

func dropIntent(state string, folder FolderConfig) { recordOf("intent", state, folder).Drop() }

// loadIntent finds nothing where it is damaged or of another volume: then what was done counts as changed.
func loadIntent(state string, folder FolderConfig, volume string) *intent {
	var head intentHead
	rest, has := recordOf("intent", state, folder).Load(&head)
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

// honored is the base with what was done of an intent: what a side has now just as it was to be.
func honored(ancestor *core.Entry, changes []*core.Change, now *core.Entry) *core.Entry {
	for _, change := range changes {
		ancestor = honor(ancestor, change.Path, change.New, at(now, change.Path))
	}
	return ancestor
}

func honor(ancestor *core.Entry, path string, wanted, now *core.Entry) *core.Entry {
	known := at(ancestor, path)
	switch {
	case wanted == nil && now == nil && known != nil, isLeaf(wanted) && wanted.Equal(now, false):
		return applied(ancestor, path, wanted)
	case !isFolder(wanted) || !isFolder(now):
		return ancestor
	}
	if !isFolder(known) {
		ancestor = applied(ancestor, path, &core.Entry{Kind: core.EntryKind_Directory})
	}
	for name, child := range wanted.Contents {
		ancestor = honor(ancestor, tree.Join(path, name), child, now.Contents[name])
	}
	return ancestor
}

func applied(ancestor *core.Entry, path string, entry *core.Entry) *core.Entry {
	result, err := core.Apply(ancestor, []*core.Change{{Path: path, New: entry}})
	if err != nil {
		return ancestor
	}
	return result
}
