package record

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

type head struct {
	Name string `json:"name"`
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// saved is a record in which something is kept already.
func saved(t *testing.T) Record {
	t.Helper()
	kept := Record(filepath.Join(t.TempDir(), "record"))
	must(t, kept.Save(head{"first"}, []byte("body")))
	return kept
}

// holds checks what is kept, and that nothing is beside it.
func holds(t *testing.T, kept Record, name, body string) {
	t.Helper()
	var found head
	content, has := kept.Load(&found)
	if !has || found.Name != name || string(content) != body {
		t.Fatalf("found %v: %q and %q", has, found.Name, content)
	}
	beside, err := os.ReadDir(filepath.Dir(string(kept)))
	must(t, err)
	if len(beside) != 1 {
		t.Fatalf("beside it: %v", beside)
	}
}

func holdsNothing(t *testing.T, kept Record) {
	t.Helper()
	if content, has := kept.Load(&head{}); has || content != nil {
		t.Fatalf("found %q", content)
	}
}

func TestWhatIsSavedIsFound(t *testing.T) {
	kept := saved(t)
	holds(t, kept, "first", "body")
	must(t, kept.Save(head{"second"}, nil))
	holds(t, kept, "second", "")
}

func TestOnlyTheUserMayReadIt(t *testing.T) {
	info, err := os.Stat(string(saved(t)))
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode())
	}
}

func TestWhatWasDroppedIsNotFound(t *testing.T) {
	kept := saved(t)
	kept.Drop()
	holdsNothing(t, kept)
	kept.Drop()
}

func TestAFolderInItsPlaceIsNotFound(t *testing.T) {
	holdsNothing(t, Record(t.TempDir()))
}

func TestATornRecordIsNotFound(t *testing.T) {
	kept := saved(t)
	whole, err := os.ReadFile(string(kept))
	must(t, err)
	for length := range whole {
		must(t, os.WriteFile(string(kept), whole[:length], 0o600))
		holdsNothing(t, kept)
	}
	for at := range whole {
		torn := append([]byte{}, whole...)
		torn[at] ^= 1
		must(t, os.WriteFile(string(kept), torn, 0o600))
		holdsNothing(t, kept)
	}
	must(t, os.WriteFile(string(kept), make([]byte, len(whole)), 0o600))
	holdsNothing(t, kept)
	must(t, os.WriteFile(string(kept), append(whole, 0), 0o600))
	holdsNothing(t, kept)
}

func TestAForeignFileIsNotFound(t *testing.T) {
	kept := saved(t)
	must(t, os.WriteFile(string(kept), []byte(`{"name": "of another program, and longer than a sum"}`), 0o600))
	holdsNothing(t, kept)
}

func TestAnotherHeadIsNotFound(t *testing.T) {
	kept := saved(t)
	must(t, kept.Save([]int{1}, nil))
	holdsNothing(t, kept)
}

func TestAFullDiskLeavesTheOldOne(t *testing.T) {
	kept := saved(t)
	// A device that has no room takes the place of the file that is written first.
	must(t, os.Symlink("/dev/full", string(kept)+".half"))
	if err := kept.Save(head{"second"}, nil); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("saved: %v", err)
	}
	holds(t, kept, "first", "body")
}

func TestAHeadThatCanNotBeWrittenLeavesTheOldOne(t *testing.T) {
	kept := saved(t)
	if kept.Save(func() {}, nil) == nil {
		t.Fatal("saved")
	}
	holds(t, kept, "first", "body")
}

func TestAHalfThatWasLeftIsWrittenOver(t *testing.T) {
	kept := saved(t)
	must(t, os.WriteFile(string(kept)+".half", []byte("longer than what is going to be written to it, by a good deal"), 0o600))
	must(t, kept.Save(head{"second"}, []byte("x")))
	holds(t, kept, "second", "x")
}
