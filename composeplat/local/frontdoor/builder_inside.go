package main

import (
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

// runBuilderInside is process 1 of the builder's namespaces: it creates the network of the steps, starts the builder, and
// reaps orphaned processes.
func runBuilderInside(arguments []string) {
	folder, network, command := arguments[0], arguments[1], arguments[2:]
	if err := prepareMounts(); err != nil {
		log.Fatalf("can't mount for builds: %v", err)
	}
	if network != "host" {
		if err := prepareNetwork(folder); err != nil {
			log.Fatalf("can't make the network of builds: %v", err)
		}
	}
	os.Exit(supervise(command))
}

// notes is the folder for the state of network plugins, in memory and in this namespace only.
const notes = "/var/lib/cni"

// prepareMounts mounts this namespace's /proc, and an empty folder for the state of network plugins.
func prepareMounts() error {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return &os.PathError{Op: "mount", Path: "/", Err: err}
	}
	const bare = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	if err := syscall.Mount("proc", "/proc", "proc", bare, ""); err != nil {
		return &os.PathError{Op: "mount", Path: "/proc", Err: err}
	}
	if err := syscall.Mount("tmpfs", notes, "tmpfs", bare, "mode=0700"); err != nil {
		return &os.PathError{Op: "mount", Path: notes, Err: err}
	}
	return nil
}

func prepareNetwork(folder string) error {
	// The state of a builder that was killed names namespaces that ended with it.
	if err := os.RemoveAll(filepath.Join(folder, "state", "net")); err != nil {
		return err
	}
	socket, err := unixConnection(os.NewFile(socketDescriptor, "outside"))
	if err != nil {
		return err
	}
	defer socket.Close()
	steps, err := makeStepsNetwork(filepath.Join(folder, "steps.net"))
	if err != nil {
		return err
	}
	return sendFile(socket, steps)
}

// supervise runs the builder and returns its status, and reaps every other process of the namespace.
func supervise(command []string) int {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, syscall.SIGCHLD)
	leaveEndingToBuilder()
	child := exec.Command(command[0], command[1:]...)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		log.Fatalf("can't start %s: %v", command[0], err)
	}
	for range signals {
		if status, ended := reap(child.Process.Pid); ended {
			return status
		}
	}
	return 1
}

// reap waits for all processes that have exited, and returns the builder's status if it is one of them.
func reap(builder int) (status int, ended bool) {
	waitLock.Lock()
	defer waitLock.Unlock()
	for {
		var found syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &found, syscall.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return status, ended
		}
		if pid == builder {
			status, ended = exitStatus(found), true
		}
	}
}
