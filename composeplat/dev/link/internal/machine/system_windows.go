package machine

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/windows"
)

const resizeInterval = 500 * time.Millisecond

// notifyResize sends something whenever the terminal's size has changed, until stop returns. No signal says so here.
func notifyResize(changed chan<- os.Signal) (stop func()) {
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(resizeInterval)
		defer ticker.Stop()
		lastRows, lastColumns := terminalSize()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
			rows, columns := terminalSize()
			if rows == lastRows && columns == lastColumns {
				continue
			}
			lastRows, lastColumns = rows, columns
			select {
			case changed <- os.Interrupt:
			default:
			}
		}
	})
	return func() {
		close(ended)
		watching.Wait()
	}
}

// isTaken reports whether a port is another program's, or reserved.
func isTaken(err error) bool {
	return errors.Is(err, windows.WSAEADDRINUSE) || errors.Is(err, windows.WSAEACCES)
}

// waitForParent returns when the parent process has ended: its number stays the same here.
func waitForParent(parent int) {
	process, err := os.FindProcess(parent)
	if err != nil {
		return
	}
	_, _ = process.Wait()
}
