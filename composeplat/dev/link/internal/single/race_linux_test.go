//go:build !portable

package single

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A file that is saved in the very moment in which it is replaced was lost: each is seen, or stays.
func TestNoSavedFileIsLostWhileItIsReplaced(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "file")
	file := place(t, path, "")
	must(t, os.WriteFile(path, []byte("first"), 0o644))
	ended, replaced := make(chan struct{}), make(chan string, 1000)
	var syncing sync.WaitGroup
	defer syncing.Wait()
	defer close(ended)
	syncing.Go(func() {
		for number := 0; ; number++ {
			select {
			case <-ended:
				return
			default:
			}
			state := Read(file)
			done := write(file, root, WriteRequest{Expected: state.Digest, Mode: 0o644, Content: fmt.Append(nil, "sync ", number)})
			if done.Error != "" {
				t.Error(done.Error)
			}
			if done.IsDone() && strings.HasPrefix(string(state.Content), "edit") {
				replaced <- string(state.Content)
			}
		}
	})
	for until, number := time.Now().Add(5*time.Second), 0; time.Now().Before(until); number++ {
		edit := fmt.Sprint("edit ", number)
		time.Sleep(time.Duration(number*37%500) * time.Microsecond)
		must(t, os.WriteFile(path+".new", []byte(edit), 0o644))
		must(t, os.Rename(path+".new", path))
		for timeout, known := time.After(60*time.Second), ""; known != edit; {
			select {
			case known = <-replaced:
			case <-timeout:
				content, _ := os.ReadFile(path)
				t.Fatalf("%s is lost: there is %q", edit, content)
			}
		}
	}
}

// A program that has the file open while it is replaced writes into the one that it has opened, which was deleted.
func TestWhatIsWrittenIntoAReplacedFileStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	file := place(t, path, "")
	for range 20 {
		must(t, os.WriteFile(path, []byte("old"), 0o644))
		opened, err := os.OpenFile(path, os.O_WRONLY, 0)
		must(t, err)
		before, err := opened.Stat()
		must(t, err)
		result := make(chan error)
		go func() { result <- Write(file, []byte("new"), 0o644, Digest([]byte("old"))) }()
		for until := time.Now().Add(time.Second); time.Now().Before(until); {
			if now, err := os.Stat(path); err == nil && !os.SameFile(before, now) {
				break
			}
		}
		_, err = opened.WriteString("edited")
		must(t, err)
		must(t, opened.Close())
		// A busy machine may be too late.
		if errors.Is(<-result, ErrChanged) {
			if content, _ := os.ReadFile(path); string(content) != "edited" {
				t.Fatalf("%q", content)
			}
			return
		}
	}
	t.Fatal("never")
}

func TestAFileThatIsNotAsExpectedStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	file := place(t, path, "")
	if err := Write(file, []byte("new"), 0o644, Digest([]byte("gone"))); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Error(err)
	}
	must(t, os.WriteFile(path, []byte("there"), 0o644))
	for _, expected := range []string{"", Digest([]byte("other"))} {
		if err := Write(file, []byte("new"), 0o644, expected); !errors.Is(err, ErrChanged) {
			t.Error(err)
		}
		if content, _ := os.ReadFile(path); string(content) != "there" {
			t.Errorf("%q", content)
		}
	}
	must(t, Write(file, []byte("new"), 0o600, Digest([]byte("there"))))
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	if content, _ := os.ReadFile(path); string(content) != "new" || len(entries) != 1 {
		t.Errorf("%q %v", content, entries)
	}
}
