package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"composeplat/link/internal/beneath"
)

// area is a staging area in a folder of its own.
func area(t *testing.T) (staging *stagingArea, folder string) {
	t.Helper()
	root := t.TempDir()
	place, err := beneath.Find(filepath.Join(root, "state", "staging"), root)
	must(t, err)
	return newStagingArea(place), filepath.Join(root, "state", "staging")
}

// stage writes contents into an area, in two parts.
func stage(t *testing.T, staging *stagingArea, name, content string) {
	t.Helper()
	sink, err := staging.Sink(name)
	must(t, err)
	for _, part := range []string{content[:len(content)/2], content[len(content)/2:]} {
		n, err := sink.Write([]byte(part))
		must(t, err)
		if n != len(part) {
			t.Fatalf("%d bytes of %d", n, len(part))
		}
	}
	must(t, sink.Close())
}

func TestStagedContentsAreFoundByPathAndDigest(t *testing.T) {
	staging, _ := area(t)
	must(t, staging.begin())
	stage(t, staging, "file", "content")
	stage(t, staging, "file", "other")
	for name, want := range map[string]struct {
		path, content string
		found         bool
	}{
		"the contents":         {"file", "content", true},
		"others of the path":   {"file", "other", true},
		"contents of no path":  {"elsewhere", "content", false},
		"contents of no file":  {"file", "nothing", false},
		"half of the contents": {"file", "con", false},
	} {
		if staging.contains(want.path, digestOf(want.content)) != want.found {
			t.Errorf("%s: %v", name, !want.found)
		}
		path, err := staging.Provide(want.path, digestOf(want.content))
		must(t, err)
		content, err := os.ReadFile(path)
		if !want.found {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %q, %v", name, path, err)
			}
			continue
		}
		if err != nil || string(content) != want.content {
			t.Errorf("%s: %q", name, content)
		}
	}
}

func TestNothingIsStagedBeforeTheBeginAndAfterTheEnd(t *testing.T) {
	staging, folder := area(t)
	if _, err := staging.Sink("file"); err == nil {
		t.Error("staged before")
	}
	must(t, staging.begin())
	stage(t, staging, "file", "content")
	// A second begin forgets nothing: what came before a cut need not come again.
	must(t, staging.begin())
	if !staging.contains("file", digestOf("content")) {
		t.Error("forgotten")
	}
	late, err := staging.Sink("late")
	must(t, err)
	staging.end()
	if _, err := os.Lstat(folder); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
	if staging.contains("file", digestOf("content")) {
		t.Error("remembered")
	}
	if _, err := staging.Provide("file", digestOf("content")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := staging.Sink("file"); err == nil {
		t.Error("staged after")
	}
	_ = late.Close()
	staging.end()
}

func TestWhatAnotherProcessHasLeftIsRemoved(t *testing.T) {
	staging, folder := area(t)
	put(t, folder, "deep/1", "left by a process that was killed")
	must(t, staging.begin())
	entries, err := os.ReadDir(folder)
	must(t, err)
	if len(entries) != 0 {
		t.Fatal(entries)
	}
	info, err := os.Stat(folder)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Error(info.Mode())
	}
}

func TestALinkInPlaceOfTheStagingFolderIsNotFollowed(t *testing.T) {
	staging, folder := area(t)
	outside := t.TempDir()
	put(t, outside, "file", "outside")
	must(t, os.MkdirAll(filepath.Dir(folder), 0o755))
	must(t, os.Symlink(outside, folder))
	must(t, staging.begin())
	stage(t, staging, "file", "content")
	staging.end()
	entries, err := os.ReadDir(outside)
	must(t, err)
	if len(entries) != 1 || contentOf(t, outside, "file") != "outside" {
		t.Fatal(entries)
	}
}

func TestAFolderThatCanNotBeMadeIsAnError(t *testing.T) {
	staging, folder := area(t)
	must(t, os.WriteFile(filepath.Dir(folder), nil, 0o600))
	if err := staging.begin(); !errors.Is(err, beneath.ErrLink) {
		t.Fatal(err)
	}
}

func TestContentsThatCouldNotBeWrittenAreNotStaged(t *testing.T) {
	staging, folder := area(t)
	must(t, staging.begin())
	made, err := staging.Sink("file")
	must(t, err)
	// A device that has no room takes the place of the file.
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	must(t, err)
	file := made.(*sink)
	must(t, file.file.Close())
	file.file = full
	if _, err := made.Write([]byte("content")); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := made.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if staging.contains("file", digestOf("content")) || staging.contains("file", digestOf("")) {
		t.Error("staged")
	}
	entries, err := os.ReadDir(folder)
	must(t, err)
	if len(entries) != 0 {
		t.Error(entries)
	}
}
