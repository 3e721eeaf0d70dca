// Command frontdoor carries what passes in and out of the local cluster. It uses the standard library alone.
//
//	frontdoor pipe FROM TO [FROM TO]...    carry connections; an address is tcp:HOST:PORT or unix:PATH; own:HOST:PORT
//	                                       is TCP on loopback, and carries what root and this program's user connect alone
//	frontdoor ingress FOLDER HTTPS HTTP    serve the routes in FOLDER/routes.json, under the authority in FOLDER/ca.crt and ca.key
//	frontdoor builder FOLDER USER NETWORK COMMAND...  run an image builder as root of a user namespace that begins at USER;
//	                                       its steps get out by NETWORK: the path of slirp4netns, none, or host, this machine's own
//	frontdoor pause                        wait to be ended, reaping what is left to it: the pod sandbox's process
package main

import (
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		usage()
	}
	arguments := os.Args[2:]
	switch {
	case os.Args[1] == "pipe" && len(arguments) > 0 && len(arguments)%2 == 0:
		carry(arguments)
	case os.Args[1] == "ingress" && len(arguments) == 3:
		serve(arguments[0], arguments[1], arguments[2])
	case os.Args[1] == "builder" && len(arguments) > 3:
		runBuilder(arguments)
	case os.Args[1] == "builder-inside" && len(arguments) > 2:
		runBuilderInside(arguments)
	case os.Args[1] == "pause":
		pause()
	default:
		usage()
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: frontdoor pipe FROM TO [FROM TO]... | ingress FOLDER HTTPS HTTP | builder FOLDER USER NETWORK COMMAND... | pause")
	os.Exit(2)
}
