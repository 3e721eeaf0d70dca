//go:build (!linux && !windows) || (linux && portable)

package beneath

import (
	"io/fs"
	"syscall"
)

// nonblocking keeps an open from waiting for the other end of a pipe.
const nonblocking = syscall.O_NONBLOCK

func fileNumber(found fs.FileInfo) uint64 {
	if status, known := found.Sys().(*syscall.Stat_t); known {
		return status.Ino
	}
	return 0
}
