package machine

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// eventTimeout is long: machines may be five times slower, and only a test that fails waits so long.
const eventTimeout = 60 * time.Second

func read(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "?" + err.Error()
	}
	return string(content)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

// copyProgram writes the program of the tests to another place. No process may start meanwhile: it would hold the file
// open for writing until it runs its own program, and nobody could start this one.
func copyProgram(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(os.Args[0])
	must(t, err)
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	must(t, os.WriteFile(path, content, 0o755))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, expected, actual T) {
	t.Helper()
	if expected != actual {
		t.Fatalf("expected %v, and not %v", expected, actual)
	}
}
