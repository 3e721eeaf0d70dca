//go:build !windows

package main

import "syscall"

func closeOnExec(descriptor int) { syscall.CloseOnExec(descriptor) }
