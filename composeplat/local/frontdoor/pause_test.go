package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// In a process of its own, with children that nobody waits for.
func TestMain(m *testing.M) {
	if os.Getenv("AS_FRONTDOOR") != "" {
		main()
		os.Exit(0)
	}
	if os.Getenv("AS_PAUSE") == "" {
		os.Exit(m.Run())
	}
	for range 3 {
		if err := exec.Command("true").Start(); err != nil {
			panic(err)
		}
	}
	fmt.Println("begun")
	pause()
}

func paused(t *testing.T) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	check(t, err)
	process := exec.Command(program)
	process.Env = append(os.Environ(), "AS_PAUSE=1")
	output, err := process.StdoutPipe()
	check(t, err)
	check(t, process.Start())
	_, err = output.Read(make([]byte, 5))
	check(t, err)
	return process
}

func children(t *testing.T, process *exec.Cmd) string {
	t.Helper()
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(process.Process.Pid) + "/task")
	check(t, err)
	var found strings.Builder
	for _, task := range tasks {
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(process.Process.Pid) + "/task/" + task.Name() + "/children")
		found.Write(text)
	}
	return found.String()
}

// The process that holds a pod's namespaces reaps what is left to it, and ends when it is told to.
func TestPause(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		process := paused(t)
		for deadline := time.Now().Add(10 * time.Second); children(t, process) != ""; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not reaped: %s", children(t, process))
			}
			// A child that ended before the signal was received is reaped with the next one.
			check(t, process.Process.Signal(syscall.SIGCHLD))
		}
		check(t, process.Process.Signal(signal))
		if err := process.Wait(); err != nil {
			t.Errorf("%v: %v", signal, err)
		}
	}
}
