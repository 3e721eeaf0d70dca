package main

import "syscall"

// closeOnExec takes a handle, which is what a number of an open file is here.
func closeOnExec(handle int) { syscall.CloseOnExec(syscall.Handle(handle)) }
