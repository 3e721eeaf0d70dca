// Package disktest gives tests a file system of their own, which may lose its power.
package disktest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// New mounts a file system, and returns its folder. After a lost power, it would have what lost returns.
func New(t *testing.T) (folder string, lost func() string) {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, 32<<20))
	if output, err := exec.Command("mke2fs", "-q", "-t", "ext4", image).CombinedOutput(); err != nil {
		t.Skipf("can't make a file system: %v %s", err, output)
	}
	return mount(t, image), func() string {
		t.Helper()
		must(t, exec.Command("cp", image, image+".lost").Run())
		return mount(t, image+".lost")
	}
}

func mount(t *testing.T, image string) string {
	t.Helper()
	folder := image + ".mounted"
	must(t, os.Mkdir(folder, 0o755))
	if output, err := exec.Command("mount", "-o", "loop", image, folder).CombinedOutput(); err != nil {
		t.Skipf("can't mount a file system: %v %s", err, output)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", folder).Run() })
	return folder
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
