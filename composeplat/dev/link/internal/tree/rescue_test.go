package tree

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"composeplat/link/internal/beneath"
)

// opened is a folder to save files in.
func opened(t *testing.T) (folder *beneath.Folder, path string) {
	t.Helper()
	path = t.TempDir()
	folder, err := beneath.Open(path)
	must(t, err)
	t.Cleanup(func() { folder.Close() })
	return folder, path
}

func TestFilesAreSavedUnderTheirPaths(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		put(t, root, "file", "content")
		put(t, root, "deep/in/file", "deep")
		put(t, root, "deep/in/empty", "")
		put(t, root, "changed", "scanned")
		side := open()
		scan(t, side, true)
		put(t, root, "changed", "changed since")
		target, path := opened(t)
		put(t, path, "file", "in the way")
		paths := []string{"changed", "deep/in/empty", "deep/in/file", "file"}
		saved, err := Save(side, target, paths, [][]byte{digestOf("scanned"), digestOf(""), digestOf("deep"), digestOf("content")})
		must(t, err)
		if !slices.Equal(saved, []bool{false, true, true, true}) {
			t.Fatal(saved)
		}
		if contentOf(t, path, "file") != "content" || contentOf(t, path, "deep/in/file") != "deep" || contentOf(t, path, "deep/in/empty") != "" {
			t.Error("other contents")
		}
		// What is not what it was taken for is no copy of it.
		if _, err := os.Lstat(filepath.Join(path, "changed")); !os.IsNotExist(err) {
			t.Error(err)
		}
		info, err := os.Stat(filepath.Join(path, "file"))
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Error(info.Mode())
		}
	})
}

func TestAFileThatIsGoneIsNotSaved(t *testing.T) {
	onBothSides(t, func(t *testing.T, root string, open func(...string) Side) {
		put(t, root, "file", "content")
		side := open()
		scan(t, side, true)
		must(t, os.Remove(filepath.Join(root, "file")))
		target, path := opened(t)
		saved, err := Save(side, target, []string{"file"}, [][]byte{digestOf("content")})
		must(t, err)
		entries, failed := os.ReadDir(path)
		must(t, failed)
		if saved[0] || len(entries) != 0 {
			t.Fatal(saved, entries)
		}
	})
}

func TestASaveFromASideThatIsLostSaysSo(t *testing.T) {
	root := t.TempDir()
	put(t, root, "file", "content")
	side := served(t, root)
	scan(t, side, true)
	must(t, side.Close())
	target, _ := opened(t)
	if _, err := Save(side, target, []string{"file"}, [][]byte{digestOf("content")}); !errors.Is(err, ErrLost) {
		t.Fatal(err)
	}
}

// A path that leads out of the folder is not written to, whoever names it.
func TestASaveStaysInItsFolder(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	put(t, root, "link/file", "content")
	side := planted(t, root)
	scan(t, side, true)
	target, path := opened(t)
	must(t, os.Symlink(outside, filepath.Join(path, "link")))
	saved, err := Save(side, target, []string{"link/file"}, [][]byte{digestOf("content")})
	entries, failed := os.ReadDir(outside)
	must(t, failed)
	if err == nil && saved[0] || len(entries) != 0 {
		t.Fatal(saved, err, entries)
	}
}
