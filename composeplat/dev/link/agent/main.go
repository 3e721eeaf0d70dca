//go:build !windows

// Command platform-agent is the container's end of a link.
//
//	platform-agent install DIR [SUBDIR...]             put itself into DIR, and make folders that any user may write to
//	platform-agent seed MARKER SOURCE TARGET           copy the image's SOURCE to TARGET, unless that was done before
//	platform-agent hold --socket PATH [--volume MARKER]...   keep the container, and serve links at the socket
//	platform-agent connect --socket PATH               join standard input and output to that socket
package main

import (
	"fmt"
	"os"

	"composeplat/link/internal/container"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "platform-agent:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		usage()
	}
	command, rest := arguments[0], arguments[1:]
	switch {
	case command == "install" && len(rest) > 0:
		return container.Install(rest[0], rest[1:])
	case command == "seed" && len(rest) == 3:
		return container.Seed(rest[0], rest[1], rest[2])
	case command == "hold":
		socket, markers := options(rest)
		return container.Hold(socket, markers)
	case command == "connect":
		socket, _ := options(rest)
		return container.Connect(socket)
	default:
		usage()
		return nil
	}
}

func options(arguments []string) (socket string, markers []string) {
	for ; len(arguments) > 1; arguments = arguments[2:] {
		switch arguments[0] {
		case "--socket":
			socket = arguments[1]
		case "--volume":
			markers = append(markers, arguments[1])
		default:
			usage()
		}
	}
	if socket == "" || len(arguments) > 0 {
		usage()
	}
	return socket, markers
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: platform-agent install DIR [SUBDIR...] | seed MARKER SOURCE TARGET | "+
		"hold --socket PATH [--volume MARKER]... | connect --socket PATH")
	os.Exit(2)
}
