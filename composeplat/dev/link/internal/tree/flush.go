package tree

import (
	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/beneath"
)

// maxFlushed is how many files are flushed one by one: each waits for the disk.
const maxFlushed = 8

// flush writes to the disk what changes have made: after a lost power, a file that counts as synced would have its old
// contents or none, and that would come back as a change of this side.
func (t *Tree) flush(changes []*core.Change, results []*core.Entry) {
	var files, folders []string
	for i, change := range changes {
		if results[i].Equal(change.Old, true) {
			continue
		}
		folders = append(folders, parentPath(change.Path))
		Walk(change.Path, results[i], func(name string, entry *core.Entry) {
			if entry.Kind == core.EntryKind_File {
				files = append(files, name)
			} else if isFolder(entry) {
				folders = append(folders, name)
			}
		})
	}
	flushFiles(t.root, files)
	if len(files) == 0 && len(folders) > 0 {
		t.root.Flush(folders[len(folders)-1], true)
	}
}

// flushFiles writes files to the disk. Of many, the last one takes the others with it: file systems have one journal for all.
func flushFiles(folder *beneath.Folder, names []string) {
	for number, name := range names {
		folder.Flush(name, len(names) <= maxFlushed || number == len(names)-1)
	}
}
