//go:build !portable

package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAnOverflowOfTheQueueMeansThatAnythingMayHaveChanged(t *testing.T) {
	root := t.TempDir()
	put(t, root, "a/file", "x")
	watch := watched(t, root)
	watch.lock.Lock()
	watch.handle(-1, unix.IN_Q_OVERFLOW, "")
	watch.lock.Unlock()
	if _, all := watch.TakeTouched(); !all {
		t.Error("only a part")
	}
	drain(watch)
	put(t, root, "a/file", "y")
	touches(t, watch, "a")
}

// Events of watches that are gone may still be in the queue.
func TestEventsOfUnknownWatchesAreIgnored(t *testing.T) {
	watch := watched(t, t.TempDir())
	watch.lock.Lock()
	watch.handle(12345, unix.IN_MODIFY, "file")
	touched := len(watch.touched)
	watch.lock.Unlock()
	if touched != 0 {
		t.Error("touched")
	}
}

func TestAWatchThatCanNotBeginSaysWhy(t *testing.T) {
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max}))
	watch := &Watch{
		changed: make(chan struct{}, 1), wakeup: make(chan struct{}, 1), ended: make(chan struct{}), silent: make(chan struct{}),
	}
	watch.begin()
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	if !strings.Contains(watch.Error(), "raise fs.inotify.max_user_instances") {
		t.Fatalf("%q", watch.Error())
	}
	// It reports each second that anything may have changed.
	go watch.gather()
	defer watch.Close()
	select {
	case <-watch.Changed():
	case <-time.After(deadline):
		t.Fatal("never reported")
	}
	if _, all := watch.TakeTouched(); !all {
		t.Error("only a part")
	}
}

func TestAClosedFileIsReportedSooner(t *testing.T) {
	root := t.TempDir()
	put(t, root, "file", "x")
	put(t, root, "open", "x")
	watch := watched(t, root)
	for name, test := range map[string]struct {
		do     func() error
		period time.Duration
	}{
		"saved in place":  {func() error { return os.WriteFile(filepath.Join(root, "file"), []byte("y"), 0o600) }, finishedPeriod},
		"a folder":        {func() error { return os.Mkdir(filepath.Join(root, "folder"), 0o700) }, quietPeriod},
		"its mode":        {func() error { return os.Chmod(filepath.Join(root, "file"), 0o640) }, quietPeriod},
		"moved elsewhere": {func() error { return os.Rename(filepath.Join(root, "open"), filepath.Join(root, "other")) }, quietPeriod},
	} {
		must(t, test.do())
		<-watch.Changed()
		if period := watch.quietPeriod(); period != test.period {
			t.Errorf("%s: %v", name, period)
		}
		drain(watch)
	}
}
