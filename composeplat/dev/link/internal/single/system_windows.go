package single

import (
	"errors"
	"syscall"
)

const errorHandleDiskFull, errorDiskFull = syscall.Errno(39), syscall.Errno(112)

// isFull reports whether there is no space left.
func isFull(err error) bool {
	return errors.Is(err, errorHandleDiskFull) || errors.Is(err, errorDiskFull)
}
