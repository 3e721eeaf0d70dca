//go:build !portable

package tree

import (
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
	watch := &Watch{changed: make(chan struct{}, 1), wakeup: make(chan struct{}, 1), ended: make(chan struct{})}
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
