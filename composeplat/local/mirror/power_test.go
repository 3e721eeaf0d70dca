package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mounted mounts a file system from a file.
func mounted(t *testing.T, disk string) string {
	t.Helper()
	folder := disk + ".mounted"
	os.Mkdir(folder, 0o755)
	if output, err := exec.Command("mount", "-o", "loop", disk, folder).CombinedOutput(); err != nil {
		t.Skipf("can't mount a file system: %v %s", err, output)
	}
	t.Cleanup(func() { exec.Command("umount", "-l", folder).Run() })
	return folder
}

// A layer in the cache is whole after a lost power: the node would refuse one that is cut off at each pull.
func TestTheCacheSurvivesALostPower(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	os.WriteFile(disk, nil, 0o600)
	os.Truncate(disk, 32<<20)
	if output, err := exec.Command("mke2fs", "-q", "-t", "ext4", disk).CombinedOutput(); err != nil {
		t.Skipf("can't make a file system: %v %s", err, output)
	}
	registry := newRegistry(t)
	blob := strings.Repeat("0123456789", 50_000)
	digest := registry.push([]byte(blob))
	node := newNode(t, registry)
	use := func(folder string) {
		node.mirror.cache, _ = openCache(folder, 1<<30)
		node.mirror.downloads = newDownloads(node.mirror.cache)
	}
	folder := mounted(t, disk)
	use(folder)
	node.get("blobs/" + digest)
	for left := 100; left > 0 && len(list(filepath.Join(folder, blobs))) == 0; left-- {
		time.Sleep(20 * time.Millisecond)
	}
	// Names come to the disk some seconds after they are made, here at once, and contents up to half a minute later.
	other, _ := os.Create(filepath.Join(folder, "other"))
	other.WriteString("x")
	other.Sync()
	other.Close()
	exec.Command("cp", disk, disk+".lost").Run()
	use(mounted(t, disk+".lost"))
	if response, found := node.get("blobs/" + digest); string(found) != blob {
		t.Errorf("%s: %d bytes", response.Status, len(found))
	}
}
