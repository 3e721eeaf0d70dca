package machine

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/single"
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
	var links []conflictCopy
	for _, loser := range all {
		if loser.entry.Kind == core.EntryKind_File {
			paths, digests = append(paths, loser.to), append(digests, loser.entry.Digest)
		} else {
			links = append(links, loser)
		}
	}
	saved = map[string]bool{}
	if len(paths) > 0 {
		had, err := tree.Save(from, folder, paths, digests)
		if err != nil {
			return nil, err
		}
		for i, path := range paths {
			saved[path] = had[i]
		}
	}
	saveLinks(folder, links, saved)
	maps.DeleteFunc(saved, func(_ string, had bool) bool { return !had })
	return saved, nil
}

// saveLinks saves links after the files, which keep their paths: of links, those in folders come first, as a folder can
// have the name that the file of a link would get.
func saveLinks(folder *beneath.Folder, links []conflictCopy, saved map[string]bool) {
	slices.SortFunc(links, func(left, right conflictCopy) int {
		return cmp.Compare(strings.Count(right.to, "/"), strings.Count(left.to, "/"))
	})
	for _, link := range links {
		saved[link.to] = saveLink(folder, link) == nil
	}
}

func saveLink(folder *beneath.Folder, link conflictCopy) error {
	name := single.AppendToName(link.to, ".link")
	if err := folder.MakeFolders(strings.TrimPrefix(path.Dir("/"+name), "/"), 0o700); err != nil {
		return err
	}
	_, err := single.CreateSpare(folder, name, []byte(link.entry.Target+"\n"), 0o600)
	return err
}
