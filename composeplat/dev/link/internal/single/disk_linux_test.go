package single

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"composeplat/link/internal/beneath"
)

// A full disk leaves the file as it was.
func TestAFullDiskLeavesTheFile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs to be root, to mount a small file system")
	}
	root := t.TempDir()
	must(t, unix.Mount("none", root, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	path := filepath.Join(root, "conf")
	must(t, os.WriteFile(path, []byte(strings.Repeat("old", 1000)), 0o644))
	place, err := beneath.Find(path, "")
	must(t, err)
	err = Write(place, []byte(strings.Repeat("new", 100_000)), 0o644, Digest([]byte(strings.Repeat("old", 1000))))
	if err == nil {
		t.Fatal("no error")
	}
	content, _ := os.ReadFile(path)
	if string(content) != strings.Repeat("old", 1000) {
		t.Fatalf("%d bytes that begin with %.9q", len(content), content)
	}
}
