package single

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"composeplat/link/internal/beneath"
	"composeplat/link/internal/wire"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func place(t *testing.T, path, within string) beneath.Place {
	t.Helper()
	found, err := beneath.Find(path, within)
	must(t, err)
	return found
}

func TestALyingAgentsStateIsNotBelieved(t *testing.T) {
	near, far := net.Pipe()
	file := NewRemote(near)
	defer file.Close()
	go func() {
		body, err := wire.Pack(State{Exists: true, Digest: "made up", Mode: 0o104755}, []byte("content"))
		if err == nil {
			_ = wire.NewFrames(far, limits.Lookup).Send(frameState, body)
		}
	}()
	state := <-file.States
	if state.Mode != 0o755 || state.Digest != Digest([]byte("content")) {
		t.Fatalf("%o %s", state.Mode, state.Digest)
	}
}

func TestWriteFollowsNoLinkThatDangles(t *testing.T) {
	root := t.TempDir()
	must(t, os.Symlink(filepath.Join(root, "outside"), filepath.Join(root, "file")))
	if err := Write(place(t, filepath.Join(root, "sub/../file"), root), []byte("x"), 0o644, ""); err == nil {
		t.Fatal("written")
	}
	if _, err := os.Lstat(filepath.Join(root, "outside")); !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

func TestNeitherFolderNorPipeIsRead(t *testing.T) {
	root := t.TempDir()
	if state := Read(place(t, root, "")); state.Problem == "" {
		t.Fatal("a folder is read")
	}
	if state := Read(place(t, "/dev/zero", "")); state.Problem == "" {
		t.Fatal("a device is read")
	}
}

func TestNoCopyOfALoserTakesAnothersPlace(t *testing.T) {
	name := "file"
	root := t.TempDir()
	folder, err := beneath.Open(root)
	must(t, err)
	defer folder.Close()
	for _, expected := range []string{name, name + "-2", name + "-3"} {
		kept, err := CreateSpare(folder, name, []byte(expected), 0o600)
		must(t, err)
		if kept != expected {
			t.Fatalf("%s, and not %s", kept, expected)
		}
	}
	for _, kept := range []string{name, name + "-2", name + "-3"} {
		content, err := os.ReadFile(filepath.Join(root, kept))
		must(t, err)
		if string(content) != kept {
			t.Fatalf("%s holds %s", kept, content)
		}
	}
}

func TestAStateFollowsEachWrite(t *testing.T) {
	root := t.TempDir()
	must(t, os.WriteFile(filepath.Join(root, "file"), []byte("content"), 0o644))
	near, far := net.Pipe()
	go func() { _ = Serve(place(t, filepath.Join(root, "file"), root), root, far) }()
	file := NewRemote(near)
	defer file.Close()
	digest := Digest([]byte("content"))
	for number := range uint64(3) {
		state := <-file.States
		if state.Writes != number || state.Digest != digest {
			t.Fatalf("%d writes, %s", state.Writes, state.Content)
		}
		stale, err := file.Write(WriteRequest{Expected: "another", Content: []byte("lost")})
		must(t, err)
		done, err := file.Write(WriteRequest{Expected: digest, Mode: 0o644, Content: []byte("content")})
		must(t, err)
		if stale.IsDone() || !done.IsDone() {
			t.Fatalf("%v %v", stale, done)
		}
	}
}
