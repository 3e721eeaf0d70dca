package tree

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"composeplat/link/internal/beneath"
)

// watchRounds are enough to find a folder that is not watched, by experience.
const watchRounds = 15

// Every folder is watched, however folders were moved.
func TestEveryFolderIsWatched(t *testing.T) {
	for round := range watchRounds {
		root := t.TempDir()
		place, err := beneath.Find(root, "")
		must(t, err)
		ignorer, err := NewIgnorer(nil)
		must(t, err)
		watch := NewWatch(place, ignorer)
		random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
		name := func() string {
			path := root
			for range 1 + random.IntN(3) {
				path = filepath.Join(path, fmt.Sprintf("d%d", random.IntN(3)))
			}
			return path
		}
		for range 150 {
			switch random.IntN(5) {
			case 0, 1:
				_ = os.MkdirAll(name(), 0o755)
			case 2:
				_ = os.RemoveAll(name())
			default:
				to := name()
				if random.IntN(2) == 0 {
					_ = os.MkdirAll(filepath.Dir(to), 0o755)
				}
				_ = os.Rename(name(), to)
			}
			if random.IntN(4) == 0 {
				time.Sleep(time.Duration(random.IntN(1000)) * time.Microsecond)
			}
		}
		drain(watch)
		var folders []string
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && path != root {
				folders = append(folders, path)
			}
			return nil
		})
		watch.TakeTouched()
		for _, folder := range folders {
			must(t, os.WriteFile(filepath.Join(folder, "file"), nil, 0o644))
		}
		touched, all := watch.TakeTouched()
		isSeen := func(folder string) bool { return all || touched[relative(root, folder)] }
		isMissed := func(folder string) bool { return !isSeen(folder) }
		for end := time.Now().Add(deadline / 4); slices.ContainsFunc(folders, isMissed) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
			more, any := watch.TakeTouched()
			maps.Copy(touched, more)
			all = all || any
		}
		for _, folder := range folders {
			if isMissed(folder) {
				t.Errorf("round %d: %s is not watched", round, relative(root, folder))
			}
		}
		if problem := watch.Error(); problem != "" {
			t.Error(problem)
		}
		watch.Close()
	}
}

func relative(root, path string) string {
	below, _ := filepath.Rel(root, path)
	return filepath.ToSlash(below)
}
