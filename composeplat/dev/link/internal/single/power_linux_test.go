package single

import (
	"os"
	"path/filepath"
	"testing"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/disktest"
)

// The copy of a file that loses a conflict is whole after a lost power, also if its name alone has come to the disk with the
// file that replaced it.
func TestTheCopyOfALoserSurvivesALostPower(t *testing.T) {
	disk, lost := disktest.New(t)
	path := filepath.Join(disk, "conf")
	must(t, os.WriteFile(path, []byte("theirs"), 0o644))
	place, err := beneath.Find(path, "")
	must(t, err)
	result := write(place, t.TempDir(), WriteRequest{Expected: Digest([]byte("theirs")), Mode: 0o644, Keep: true, Content: []byte("ours")})
	if !result.IsDone() {
		t.Fatal(result)
	}
	after := lost()
	for name, content := range map[string]string{"conf": "ours", filepath.Base(result.Kept): "theirs"} {
		if found, err := os.ReadFile(filepath.Join(after, name)); string(found) != content {
			t.Errorf("%s: %q %v", name, found, err)
		}
	}
}
