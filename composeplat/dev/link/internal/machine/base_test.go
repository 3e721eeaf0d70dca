package machine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
)

const aDigest = "00000000000000000000000000000000"

func TestABaseIsFoundForItsVolumeAlone(t *testing.T) {
	state, folder := t.TempDir(), FolderConfig{Local: "/a", Remote: "/b"}
	content := folderOf(map[string]string{"file": aDigest})
	head := baseHead{Volume: "one", Local: "/a", Remote: "/b", Modes: map[string]uint32{"file": 0o640}}
	must(t, (&base{head: head, content: content}).save(state, folder))
	found := loadBase(state, folder, "one")
	if found == nil || found.head.Modes["file"] != 0o640 || !found.content.Equal(content, true) {
		t.Fatalf("found %+v", found)
	}
	equal(t, nil, loadBase(state, folder, "other"))
	equal(t, nil, loadBase(state, FolderConfig{Local: "/a", Remote: "/other"}, "one"))
}

func TestABaseThatIsNotValidIsNeitherSavedNorFound(t *testing.T) {
	state, folder := t.TempDir(), FolderConfig{Local: "/a", Remote: "/b"}
	invalid := &base{head: baseHead{Volume: "one", Local: "/a", Remote: "/b"}, content: &core.Entry{Kind: 77}}
	if invalid.save(state, folder) == nil {
		t.Fatal("saved")
	}
	must(t, newRecord("base", state, folder).Save(invalid.head, []byte("not a tree")))
	equal(t, nil, loadBase(state, folder, "one"))
}

func TestAnIntentWithOtherLengthsIsNotFound(t *testing.T) {
	state, folder := t.TempDir(), FolderConfig{Local: "/a", Remote: "/b"}
	for _, lengths := range [][]int{nil, {-1}, {1}, {0, 0}} {
		must(t, newRecord("intent", state, folder).Save(intentHead{Volume: "one", Paths: []string{"a"}, Bytes: lengths}, nil))
		equal(t, nil, loadIntent(state, folder, "one"))
	}
}

func TestACacheIsFound(t *testing.T) {
	state, folder := t.TempDir(), FolderConfig{Local: "/a", Remote: "/b"}
	equal(t, nil, loadCache(state, folder))
	must(t, saveCache(state, folder, &core.Cache{Entries: map[string]*core.CacheEntry{}}))
	if loadCache(state, folder) == nil {
		t.Fatal("no cache")
	}
	must(t, os.WriteFile(filepath.Join(state, recordName("cache", folder)), nil, 0o600))
	equal(t, nil, loadCache(state, folder))
}

func TestAFilesBaseHoldsForOneLifeOfTheContainer(t *testing.T) {
	state, folder := t.TempDir(), FolderConfig{Local: "/a", Remote: "/b", File: true}
	known := fileBase{Boot: "one", Digest: "d", Mode: 0o600, Sent: "s"}
	must(t, known.save(state, folder))
	equal(t, known, loadFileBase(state, folder, "one"))
	equal(t, fileBase{Boot: "two"}, loadFileBase(state, folder, "two"))
}
