package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// runApplet runs this program as one of the two commands that Debian's static busybox lacks, in the forms that filling a
// volume needs: flock FD, setfattr -n NAME -v VALUE FILE, and setfattr -x NAME FILE. It returns whether NAME is one.
func runApplet(name string, arguments []string) (bool, error) {
	switch {
	case name == "flock" && len(arguments) == 1:
		descriptor, err := strconv.Atoi(arguments[0])
		if err != nil {
			return true, err
		}
		return true, lock(descriptor)
	case name == "setfattr" && len(arguments) == 5 && arguments[0] == "-n" && arguments[2] == "-v":
		return true, named(arguments[4], syscall.Setxattr(arguments[4], arguments[1], []byte(arguments[3]), 0))
	case name == "setfattr" && len(arguments) == 3 && arguments[0] == "-x":
		return true, named(arguments[2], syscall.Removexattr(arguments[2], arguments[1]))
	}
	return name == "flock" || name == "setfattr", fmt.Errorf("%s: unknown arguments: %q", name, arguments)
}

// lock waits until it has the lock of an open file, which is kept until the last process closes it.
func lock(descriptor int) error {
	for {
		if err := syscall.Flock(descriptor, syscall.LOCK_EX); err != syscall.EINTR {
			return err
		}
	}
}

func named(path string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: "setfattr", Path: path, Err: err}
}
