//go:build !windows

package machine

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// notifyResize sends something whenever the terminal's size has changed, until stop returns.
func notifyResize(changed chan<- os.Signal) (stop func()) {
	signal.Notify(changed, syscall.SIGWINCH)
	return func() { signal.Stop(changed) }
}

// isTaken reports whether a port is another program's, or needs root.
func isTaken(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES)
}

// waitForParent returns when the parent process has ended.
func waitForParent(parent int) {
	for os.Getppid() == parent {
		time.Sleep(10 * shortDelay)
	}
}
