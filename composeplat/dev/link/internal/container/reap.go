package container

import (
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// A reaper collects every process that ends, as the first process of a container must. Nobody else may wait for one.
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
		if told := r.waiting[pid]; told != nil {
			delete(r.waiting, pid)
			told <- status
		}
	}
}

// start runs the command, whose files must be real ones, and tells its status when it has ended.
func (r *reaper) start(command *exec.Cmd) (<-chan syscall.WaitStatus, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if err := command.Start(); err != nil {
		return nil, err
	}
	told := make(chan syscall.WaitStatus, 1)
	r.waiting[command.Process.Pid] = told
	return told, nil
}
