package main

import (
	"os"
	"os/signal"
	"syscall"
)

// pause keeps a pod's namespaces: it reaps orphaned processes until it gets SIGTERM or SIGINT.
func pause() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 || err != nil {
				break
			}
		}
	}
}
