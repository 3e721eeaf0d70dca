package single

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"composeplat/link/internal/beneath"
)

// The copy of a file that loses a conflict is whole after a lost power, also if its name alone has come to the disk with the
// file that replaced it.
func TestTheCopyOfALoserSurvivesALostPower(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	must(t, os.WriteFile(disk, nil, 0o600))
	must(t, os.Truncate(disk, 32<<20))
	if output, err := exec.Command("mke2fs", "-q", "-t", "ext4", disk).CombinedOutput(); err != nil {
		t.Skipf("can't make a file system: %v %s", err, output)
	}
	mount := func(disk string) string {
		folder := disk + ".mounted"
		must(t, os.Mkdir(folder, 0o755))
		if output, err := exec.Command("mount", "-o", "loop", disk, folder).CombinedOutput(); err != nil {
			t.Skipf("can't mount a file system: %v %s", err, output)
		}
		t.Cleanup(func() { _ = exec.Command("umount", "-l", folder).Run() })
		return folder
	}
	path := filepath.Join(mount(disk), "conf")
	must(t, os.WriteFile(path, []byte("theirs"), 0o644))
	place, err := beneath.Find(path, "")
	must(t, err)
	result := write(place, t.TempDir(), WriteRequest{Expected: Digest([]byte("theirs")), Mode: 0o644, Keep: true, Content: []byte("ours")})
	if !result.IsDone() {
		t.Fatal(result)
	}
	must(t, exec.Command("cp", disk, disk+".lost").Run())
	lost := mount(disk + ".lost")
	for name, content := range map[string]string{"conf": "ours", filepath.Base(result.Kept): "theirs"} {
		if found, err := os.ReadFile(filepath.Join(lost, name)); string(found) != content {
			t.Errorf("%s: %q %v", name, found, err)
		}
	}
}
