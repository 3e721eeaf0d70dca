package main

import (
	"errors"
	"io"
	"io/fs"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// carry listens on every FROM and joins each connection to its TO, until it is ended.
func carry(pairs []string) {
	for i := 0; i < len(pairs); i += 2 {
		listener := listen(pairs[i])
		if i+2 < len(pairs) {
			go accept(listener, pairs[i+1])
		} else {
			accept(listener, pairs[i+1])
		}
	}
}

// ownersAlone is the network of a TCP address that only root and the user who runs this program may connect to, and the
// root of the user namespace in which images are built where it is written own+USER.
const ownersAlone = "own"

func split(address string) (network, place string) {
	network, place, _ = strings.Cut(address, ":")
	return network, place
}

func listen(address string) net.Listener {
	network, place := split(address)
	if network == "unix" {
		if err := os.Remove(place); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Fatalf("can't clear %s: %v", place, err)
		}
	}
	owners, builder := isForOwners(network)
	if owners {
		network = "tcp"
	}
	listener, err := net.Listen(network, place)
	if err != nil {
		log.Fatalf("can't listen: %v", err)
	}
	if owners {
		return guarded{listener, builder}
	}
	return listener
}

// isForOwners says whether only owners may connect, and which user is one besides.
func isForOwners(network string) (owners bool, builder int) {
	name, user, more := strings.Cut(network, "+")
	if name != ownersAlone || !more {
		return name == ownersAlone, 0
	}
	builder, err := strconv.Atoi(user)
	if err != nil {
		log.Fatalf("not a user: %s", user)
	}
	return true, builder
}

func accept(listener net.Listener, target string) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Printf("can't accept: %v", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		go join(connection, target)
	}
}

type halfCloser interface{ CloseWrite() error }

// join copies both ways; when one side has said all, the other is told, and may still answer.
func join(near net.Conn, target string) {
	defer near.Close()
	network, place := split(target)
	far, err := net.DialTimeout(network, place, 10*time.Second)
	if err != nil {
		return
	}
	defer far.Close()
	done := make(chan struct{})
	go func() {
		send(far, near)
		close(done)
	}()
	send(near, far)
	<-done
}

func send(to, from net.Conn) {
	io.Copy(to, from)
	if closer, can := to.(halfCloser); can {
		closer.CloseWrite()
	}
}
