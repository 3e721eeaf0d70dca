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

// runPipes listens on every FROM and forwards its connections to the TO after it. It does not return.
func runPipes(pairs []string) {
	for i := 0; i < len(pairs); i += 2 {
		listener := listen(pairs[i])
		if i+2 < len(pairs) {
			go accept(listener, pairs[i+1])
		} else {
			accept(listener, pairs[i+1])
		}
	}
}

// ownerNetwork is TCP to which only root and the user who runs this program may connect. With own+USER, the root of the
// user namespace in which images are built may connect too.
const ownerNetwork = "own"

func splitAddress(address string) (network, place string) {
	network, place, _ = strings.Cut(address, ":")
	return network, place
}

func listen(address string) net.Listener {
	network, place := splitAddress(address)
	if network == "unix" {
		if err := os.Remove(place); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Fatalf("can't remove the socket %s: %v", place, err)
		}
	}
	owners, builder := isForOwners(network)
	if owners {
		network = "tcp"
	}
	listener, err := net.Listen(network, place)
	if err != nil {
		log.Fatalf("can't listen on %s: %v", address, err)
	}
	if owners {
		return ownerListener{listener, builder}
	}
	return listener
}

// isForOwners reports whether only owners may connect, and which other user may.
func isForOwners(network string) (owners bool, builder int) {
	name, user, more := strings.Cut(network, "+")
	if name != ownerNetwork || !more {
		return name == ownerNetwork, 0
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

// join copies in both directions. When one side has sent everything, the other side's input is closed, and it may still
// answer.
func join(near net.Conn, target string) {
	defer near.Close()
	network, place := splitAddress(target)
	far, err := net.DialTimeout(network, place, 10*time.Second)
	if err != nil {
		return
	}
	defer far.Close()
	done := make(chan struct{})
	go func() {
		copyAndCloseWrite(far, near)
		close(done)
	}()
	copyAndCloseWrite(near, far)
	<-done
}

func copyAndCloseWrite(to, from net.Conn) {
	io.Copy(to, from)
	if closer, can := to.(halfCloser); can {
		closer.CloseWrite()
	}
}
