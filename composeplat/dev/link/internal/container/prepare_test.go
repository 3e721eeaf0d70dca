//go:build !windows

package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), mode))
}

func holds(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	found, err := os.ReadFile(path)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if string(found) != content || info.Mode().Perm() != mode {
		t.Fatalf("%s holds %q with %v", path, found, info.Mode())
	}
}

func TestInstall(t *testing.T) {
	root := t.TempDir()
	must(t, Install(filepath.Join(root, "bin"), []string{filepath.Join(root, "run"), filepath.Join(root, "src/0")}))
	info, err := os.Stat(filepath.Join(root, "bin", Name))
	must(t, err)
	if info.Mode().Perm() != 0o755 || info.Size() == 0 {
		t.Fatal(info.Mode(), info.Size())
	}
	for _, folder := range []string{"run", "src/0"} {
		info, err := os.Stat(filepath.Join(root, folder))
		must(t, err)
		if info.Mode().Perm() != 0o777 {
			t.Fatal(folder, info.Mode())
		}
	}
}

// The image may have names of any length that file systems take.
func TestSeedCopiesLongNames(t *testing.T) {
	root := t.TempDir()
	source, target := filepath.Join(root, "image"), filepath.Join(root, "volume")
	for _, length := range []int{250, 251, 255} {
		write(t, filepath.Join(source, strings.Repeat("n", length)), "content", 0o640)
	}
	must(t, Seed(filepath.Join(root, "marker"), source, target))
	for _, length := range []int{250, 251, 255} {
		holds(t, filepath.Join(target, strings.Repeat("n", length)), "content", 0o640)
	}
	if entries, err := os.ReadDir(target); err != nil || len(entries) != 3 {
		t.Error(entries, err)
	}
}

func TestSeedCopiesTheImageOnce(t *testing.T) {
	root := t.TempDir()
	source, target, marker := filepath.Join(root, "image"), filepath.Join(root, "volume"), filepath.Join(root, "marker")
	write(t, filepath.Join(source, "closed/run"), "program", 0o750)
	must(t, os.Chmod(filepath.Join(source, "closed"), 0o500))
	must(t, os.Symlink("closed/run", filepath.Join(source, "link")))
	// What an interrupted seed has left is written over.
	write(t, filepath.Join(target, "closed/run"), "half", 0o600)
	must(t, Seed(marker, source, target))
	holds(t, filepath.Join(target, "closed/run"), "program", 0o750)
	holds(t, filepath.Join(target, "link"), "program", 0o750)
	info, err := os.Stat(filepath.Join(target, "closed"))
	must(t, err)
	if info.Mode().Perm() != 0o500 {
		t.Fatal(info.Mode())
	}
	id, err := os.ReadFile(marker)
	must(t, err)
	write(t, filepath.Join(target, "closed/run"), "edited", 0o750)
	must(t, Seed(marker, source, target))
	holds(t, filepath.Join(target, "closed/run"), "edited", 0o750)
	again, err := os.ReadFile(marker)
	must(t, err)
	if len(id) < 20 || string(id) != string(again) {
		t.Fatalf("%q, %q", id, again)
	}
}

func TestSeedOfWhatIsNotThereIsEmpty(t *testing.T) {
	root := t.TempDir()
	must(t, Seed(filepath.Join(root, "marker"), filepath.Join(root, "none"), filepath.Join(root, "volume")))
	entries, err := os.ReadDir(filepath.Join(root, "volume"))
	must(t, err)
	if len(entries) != 0 {
		t.Fatal(entries)
	}
}
