package machine

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/tree"
)

// saveReplaced saves the container's files that the plan replaces into the data folder of this machine, and reports that
// once. A file that can't be saved is not replaced in this cycle.
func (c *cycle) saveReplaced(made *plan) (again bool, err error) {
	if len(made.replaced) == 0 {
		return false, nil
	}
	path := filepath.Join(c.state, "replaced", fmt.Sprintf("%s-%d", time.Now().Format("20060102-150405.000"), c.number))
	place, err := beneath.Find(path, c.state)
	if err != nil {
		return true, err
	}
	defer place.Close()
	if err := place.Make(0o700); err != nil {
		return true, err
	}
	folder, err := place.Open()
	if err != nil {
		return true, err
	}
	defer folder.Close()
	saved, err := saveAll(c.remote, folder, made.replaced)
	if err != nil {
		return true, err
	}
	for _, loser := range made.replaced {
		if !saved[loser.to] {
			again = true
			made.there = removeChange(made.there, loser.winner)
		}
	}
	if len(saved) > 0 {
		c.events.Emit("replaced", Event{"folder": c.number, "files": len(saved), "kept_as": path})
	}
	return again, nil
}

// saveAll saves files, and links as files that contain their target.
func saveAll(from tree.Side, folder *beneath.Folder, all []conflictCopy) (saved map[string]bool, err error) {
	var paths []string
	var digests [][]byte
	saved = map[string]bool{}
	for _, loser := range all {
		if loser.entry.Kind == core.EntryKind_File {
			paths, digests = append(paths, loser.to), append(digests, loser.entry.Digest)
		} else if saveLink(folder, loser) == nil {
			saved[loser.to] = true
		}
	}
	if len(paths) == 0 {
		return saved, nil
	}
	had, err := tree.Save(from, folder, paths, digests)
	for i, path := range paths {
		if err == nil && had[i] {
			saved[path] = true
		}
	}
	return saved, err
}

func saveLink(folder *beneath.Folder, link conflictCopy) error {
	name := link.to + ".link"
	if err := folder.MakeFolders(strings.TrimPrefix(path.Dir("/"+name), "/"), 0o700); err != nil {
		return err
	}
	file, err := folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(link.entry.Target + "\n")
	return err
}
