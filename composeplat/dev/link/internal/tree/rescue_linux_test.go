package tree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"golang.org/x/sys/unix"

	"composeplat/link/internal/beneath"
)

// smallDisk is a folder on a file system of 64 KiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs to be root, to mount a small file system")
	}
	folder := t.TempDir()
	must(t, unix.Mount("none", folder, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
	return folder
}

// The problem of a file that can't be staged is the disk's, and not that it is missing in the staging area.
func TestTheProblemOfAFullDisk(t *testing.T) {
	source, root := t.TempDir(), smallDisk(t)
	large := strings.Repeat("large", 40_000)
	put(t, source, "large", large)
	from, to := planted(t, source), planted(t, root)
	scan(t, from, true)
	scan(t, to, true)
	change := &core.Change{Path: "large", New: fileOf(large)}
	with, err := to.Transition(t.Context(), []*core.Change{change}, Additions{Contents: map[string][]byte{"large": []byte(large)}})
	must(t, err)
	for how, outcome := range map[string]*Outcome{"before": transfer(t, from, to, change), "with the change": with} {
		if len(outcome.Problems) != 1 || outcome.Problems[0].Error != "its contents can't be written: no space left on device" {
			t.Error(how, outcome.Problems)
		}
	}
	// The next problem has another reason.
	outcome, err := to.Transition(t.Context(), []*core.Change{change}, Additions{})
	must(t, err)
	if len(outcome.Problems) != 1 || outcome.Problems[0].Error != "its contents have changed on their way" {
		t.Error(outcome.Problems)
	}
}

// Where the staging area is on another disk, the problem is the same one each time, and so is reported once it has lasted.
func TestTheProblemOfAFullDiskStays(t *testing.T) {
	source, root := t.TempDir(), smallDisk(t)
	large := strings.Repeat("large", 40_000)
	put(t, source, "large", large)
	from := planted(t, source)
	scan(t, from, true)
	place, err := beneath.Find(root, "")
	must(t, err)
	staging, err := beneath.Find(filepath.Join(t.TempDir(), "staging"), "")
	must(t, err)
	to, err := NewTree(place, nil, staging, nil)
	must(t, err)
	t.Cleanup(func() { to.Close() })
	scan(t, to, true)
	for range 3 {
		outcome := transfer(t, from, to, &core.Change{Path: "large", New: fileOf(large)})
		expected := "unable to create file: unable to copy file contents: write a temporary file: no space left on device"
		if len(outcome.Problems) != 1 || outcome.Problems[0].Error != expected {
			t.Fatal(outcome.Problems)
		}
	}
}

// A file that a full disk cuts short is no copy: the container's file would be replaced, and lost.
func TestOnAFullDiskNothingCountsAsSaved(t *testing.T) {
	root, target := t.TempDir(), smallDisk(t)
	large, small := strings.Repeat("large", 40_000), strings.Repeat("small", 1000)
	put(t, root, "large", large)
	put(t, root, "small", small)
	side := planted(t, root)
	scan(t, side, true)
	folder, err := beneath.Open(target)
	must(t, err)
	t.Cleanup(func() { folder.Close() })
	saved, err := Save(side, folder, []string{"large", "small"}, [][]byte{digestOf(large), digestOf(small)})
	must(t, err)
	if !slices.Equal(saved, []bool{false, false}) {
		info, err := os.Stat(filepath.Join(target, "small"))
		t.Fatal(saved, info, err)
	}
}
