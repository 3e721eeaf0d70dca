package machine

import (
	"os"
	"path/filepath"
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
