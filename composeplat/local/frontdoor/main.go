// Command frontdoor connects this machine with the local cluster. It owns the pipes into and out of the cluster's network,
// the ingress with its certificates, and the process of the pod sandbox.
//
// It must not know Kubernetes: addresses are in its arguments and routes in a file, so that it needs the standard library only.
//
//	frontdoor pipe [--held] FROM TO [FROM TO]...  forward connections; an address is tcp:HOST:PORT, unix:PATH or own:HOST:PORT,
//	                                       which is TCP on loopback for connections of root and this program's user only;
//	                                       own+USER:HOST:PORT admits that user too; with --held, ports are shared with a
//	                                       socket of this user that holds them and does not listen
//	frontdoor ingress FOLDER HTTPS HTTP PORT  serve the routes in FOLDER/routes.json; FOLDER/ca.crt and ca.key sign certificates;
//	                                       HTTP leads to HTTPS at PORT
//	frontdoor builder FOLDER USER NETWORK COMMAND...  run an image builder as root of a user namespace that begins at USER;
//	                                       its steps get out by NETWORK: the path of slirp4netns, none, or host, this machine's own
//	frontdoor egress SLIRP NAMESPACE       connect the network namespace of the cluster with this machine's by slirp4netns, so that
//	                                       pods reach other machines
//	frontdoor pause                        reap orphaned processes until SIGTERM: the process of a pod sandbox
//
// Under the name flock or setfattr it is that command.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	if known, err := runApplet(filepath.Base(os.Args[0]), os.Args[1:]); known {
		if err != nil {
			log.Fatal(err)
		}
		return
	}
	if len(os.Args) < 2 {
		usage()
	}
	arguments := os.Args[2:]
	switch {
	case os.Args[1] == "pipe" && len(arguments) > 1 && arguments[0] == heldOption && len(arguments)%2 == 1:
		runPipes(arguments[1:], true)
	case os.Args[1] == "pipe" && len(arguments) > 0 && len(arguments)%2 == 0:
		runPipes(arguments, false)
	case os.Args[1] == "ingress" && len(arguments) == 4:
		serveIngress(arguments[0], arguments[1], arguments[2], arguments[3])
	case os.Args[1] == "builder" && len(arguments) > 3:
		runBuilder(arguments)
	case os.Args[1] == "builder-inside" && len(arguments) > 2:
		runBuilderInside(arguments)
	case os.Args[1] == "egress" && len(arguments) == 2:
		runEgress(arguments[0], arguments[1])
	case os.Args[1] == "pause":
		pause()
	default:
		usage()
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: frontdoor pipe [--held] FROM TO [FROM TO]... | ingress FOLDER HTTPS HTTP PORT | builder FOLDER USER NETWORK COMMAND... | egress SLIRP NAMESPACE | pause")
	os.Exit(2)
}
