//go:build !windows

package container

import (
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// A reaper waits for every process that exits, as process 1 of a container must. Nothing else may wait for processes.
type reaper struct {
	lock    sync.Mutex
	waiting map[int]chan syscall.WaitStatus
}

func newReaper() *reaper {
	r := &reaper{waiting: map[int]chan syscall.WaitStatus{}}
	ended := make(chan os.Signal, 16)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			r.collect()
		}
	}()
	return r
}

func (r *reaper) collect() {
	r.lock.Lock()
	defer r.lock.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 || err != nil {
			return
		}
		if exited := r.waiting[pid]; exited != nil {
			delete(r.waiting, pid)
			exited <- status
		}
	}
}

// start starts the command, whose streams must be files, and returns a channel for its exit status.
func (r *reaper) start(command *exec.Cmd) (<-chan syscall.WaitStatus, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if err := command.Start(); err != nil {
		return nil, err
	}
	exited := make(chan syscall.WaitStatus, 1)
	r.waiting[command.Process.Pid] = exited
	return exited, nil
}
