//go:build !windows

package single

import (
	"errors"
	"syscall"
)

// isFull reports whether there is no space left.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
