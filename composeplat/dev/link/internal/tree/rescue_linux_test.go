package tree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"composeplat/link/internal/beneath"
)

// A file that a full disk cuts short is no copy: the container's file would be replaced, and lost.
func TestOnAFullDiskNothingCountsAsSaved(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs to be root, to mount a small file system")
	}
	root, target := t.TempDir(), t.TempDir()
	must(t, unix.Mount("none", target, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
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
