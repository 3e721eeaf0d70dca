package machine

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A watching is a run of Watch for one folder, and its events.
type watching struct {
	t      *testing.T
	here   string
	events chan Event
}

func watchFolder(t *testing.T, files map[string]string, config WatchFolderConfig) *watching {
	t.Helper()
	root := t.TempDir()
	here := filepath.Join(root, "here")
	must(t, os.Mkdir(here, 0o755))
	for name, content := range files {
		write(t, filepath.Join(here, name), content)
	}
	config.Local = filepath.Join(here, config.Local)
	w := watchPlace(t, root, config)
	w.here = here
	return w
}

// watchPlace watches the folder of a configuration; its own files are in root.
func watchPlace(t *testing.T, root string, config WatchFolderConfig) *watching {
	t.Helper()
	w := &watching{t: t, here: config.Local, events: make(chan Event, 100)}
	text, err := json.Marshal(WatchConfig{State: root, Folders: []WatchFolderConfig{config}})
	must(t, err)
	path := filepath.Join(root, "config.json")
	must(t, os.WriteFile(path, text, 0o600))
	input, end := io.Pipe()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Watch(path, input, NewEvents(writer)) }()
	go func() {
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			var event Event
			_ = json.Unmarshal(lines.Bytes(), &event)
			w.events <- event
		}
	}()
	t.Cleanup(func() {
		end.Close()
		select {
		case err := <-ended:
			must(t, err)
		case <-time.After(eventTimeout):
			t.Error("it does not end with its input")
		}
	})
	return w
}

// next waits for an event.
func (w *watching) next() Event {
	w.t.Helper()
	select {
	case event := <-w.events:
		return event
	case <-time.After(eventTimeout):
		w.t.Fatal("no event")
		return nil
	}
}

// expect waits for an event, and compares a field of it.
func (w *watching) expect(kind, field, value string) {
	w.t.Helper()
	event := w.next()
	var found []string
	switch text := event[field].(type) {
	case string:
		found = []string{text}
	case []any:
		for _, item := range text {
			found = append(found, item.(string))
		}
	}
	if event["event"] != kind || strings.Join(found, " ") != value {
		w.t.Errorf("%v, expected %s with %s %q", event, kind, field, value)
	}
}

func TestChangesOfAFolderAreReported(t *testing.T) {
	w := watchFolder(t, map[string]string{"a": "1", "sub/b": "1", "sub/c": "1"}, WatchFolderConfig{})
	w.expect("changed", "changed", "")
	write(t, filepath.Join(w.here, "sub/b"), "2")
	w.expect("changed", "changed", "sub/b")
	must(t, os.Chmod(filepath.Join(w.here, "a"), 0o700))
	w.expect("changed", "changed", "a")
	must(t, os.Remove(filepath.Join(w.here, "sub/c")))
	w.expect("changed", "deleted", "sub/c")
	must(t, os.Rename(filepath.Join(w.here, "sub"), filepath.Join(filepath.Dir(w.here), "gone")))
	w.expect("changed", "deleted", "sub/ sub/b")
	must(t, os.Symlink("a", filepath.Join(w.here, "link")))
	w.expect("changed", "changed", "link")
	must(t, os.Mkdir(filepath.Join(w.here, "empty"), 0o755))
	w.expect("changed", "changed", "empty")
	must(t, os.Remove(filepath.Join(w.here, "empty")))
	w.expect("changed", "deleted", "empty/")
}

func TestAFileThatBecomesAFolderIsDeletedToo(t *testing.T) {
	w := watchFolder(t, map[string]string{"a": "1"}, WatchFolderConfig{})
	w.expect("changed", "changed", "")
	must(t, os.Rename(filepath.Join(w.here, "a"), filepath.Join(w.here, "b")))
	w.expect("changed", "changed", "b")
	must(t, os.Remove(filepath.Join(w.here, "b")))
	write(t, filepath.Join(w.here, "b/c"), "1")
	for deleted, changed := []string(nil), []string(nil); !slices.Contains(deleted, "b") || !slices.Contains(changed, "b/c"); {
		select {
		case event := <-w.events:
			for _, name := range event["deleted"].([]any) {
				deleted = append(deleted, name.(string))
			}
			for _, name := range event["changed"].([]any) {
				changed = append(changed, name.(string))
			}
		case <-time.After(eventTimeout):
			t.Fatal(deleted, changed)
		}
	}
}

func TestIgnoredFilesAndThoseNotIncludedAreNotReported(t *testing.T) {
	w := watchFolder(t, map[string]string{"old.py": "1"}, WatchFolderConfig{
		Ignores: []string{"**/.git", "gen", "!gen/kept.py"}, Includes: []string{"**/*.py", "assets"}, Lists: true,
	})
	w.expect("changed", "changed", "old.py")
	for _, name := range []string{".git/x.py", "gen/x.py", "text", "sub/new.py", "assets/logo", "gen/kept.py"} {
		write(t, filepath.Join(w.here, name), "1")
	}
	var found []string
	for len(found) < 3 {
		select {
		case event := <-w.events:
			for _, name := range event["changed"].([]any) {
				found = append(found, name.(string))
			}
		case <-time.After(eventTimeout):
			t.Fatal(found)
		}
	}
	slices.Sort(found)
	if strings.Join(found, " ") != "assets/logo gen/kept.py sub/new.py" {
		t.Error(found)
	}
}

// A link in place of the folder is not followed, and a folder that is away for a moment deletes nothing.
func TestAFolderThatIsAwayIsAProblem(t *testing.T) {
	w := watchFolder(t, map[string]string{"src/a": "1", "other/b": "1"}, WatchFolderConfig{Local: "src"})
	w.expect("changed", "changed", "")
	must(t, os.Rename(filepath.Join(w.here, "src"), filepath.Join(w.here, "away")))
	w.expect("problem", "reason", "the folder does not exist")
	must(t, os.Rename(filepath.Join(w.here, "away"), filepath.Join(w.here, "src")))
	write(t, filepath.Join(w.here, "src/a"), "2")
	w.expect("changed", "changed", "a")
}

func TestLinksThatLeadOutAreProblemsOfAWatch(t *testing.T) {
	w := watchFolder(t, map[string]string{"a": "1"}, WatchFolderConfig{})
	w.expect("changed", "changed", "")
	must(t, os.Symlink("../../secret", filepath.Join(w.here, "out")))
	w.expect("problem", "path", "out")
}
