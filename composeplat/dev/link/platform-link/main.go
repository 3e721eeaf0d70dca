// Command platform-link is this machine's end of a link, runs commands in containers, and watches folders:
//
//	platform-link up --config FILE --events FD
//	platform-link exec --config FILE
//	platform-link watch --config FILE
package main

import (
	"fmt"
	"os"
	"strconv"

	"composeplat/link/internal/machine"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "exec" && os.Args[2] == "--config" {
		status, err := machine.Exec(os.Args[3])
		if err != nil {
			var reason string
			status, reason = machine.StartFailure(err)
			fmt.Fprintln(os.Stderr, "error:", reason)
		}
		os.Exit(status)
	}
	if len(os.Args) == 4 && os.Args[1] == "watch" && os.Args[2] == "--config" {
		events := machine.NewEvents(os.Stdout)
		if err := machine.Watch(os.Args[3], os.Stdin, events); err != nil {
			events.Emit("failed", machine.Event{"reason": err.Error()})
			os.Exit(1)
		}
		return
	}
	if len(os.Args) != 6 || os.Args[1] != "up" || os.Args[2] != "--config" || os.Args[4] != "--events" {
		usage()
	}
	number, err := strconv.Atoi(os.Args[5])
	if err != nil || number < 1 {
		usage()
	}
	// The credential helpers that Kubernetes clients run must not hold the parent's pipe open.
	closeOnExec(number)
	out := os.NewFile(uintptr(number), "events")
	if out == nil {
		usage()
	}
	events := machine.NewEvents(out)
	config, err := machine.ReadConfig(os.Args[3])
	if err != nil {
		events.Emit("failed", machine.Event{"reason": err.Error()})
		os.Exit(1)
	}
	os.Exit(machine.Up(config, events))
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: platform-link up --config FILE --events FD | exec --config FILE | watch --config FILE")
	os.Exit(2)
}
