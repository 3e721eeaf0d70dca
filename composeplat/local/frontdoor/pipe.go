package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// heldOption says that another socket of this user holds the ports, so that no other user gets them while this program is
// restarted.
const heldOption = "--held"

// runPipes listens on every FROM and forwards its connections to the TO after it. It does not return.
func runPipes(pairs []string, held bool) {
	for i := 0; i < len(pairs); i += 2 {
		listener := listen(pairs[i], held)
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

func listen(address string, held bool) net.Listener {
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
	settings := net.ListenConfig{}
	if held {
		settings.Control = sharePort
	}
	listener, err := settings.Listen(context.Background(), network, place)
	if err != nil {
		log.Fatalf("can't listen on %s: %v", address, err)
	}
	if owners {
		return ownerListener{listener, builder}
	}
	return listener
}

// sharePort lets a socket listen at a port that another socket of the same user is bound to.
func sharePort(_, _ string, connection syscall.RawConn) error {
	const reusePort = 15 // SO_REUSEPORT, which the package syscall lacks for Linux
	var failed error
	err := connection.Control(func(descriptor uintptr) {
		failed = syscall.SetsockoptInt(int(descriptor), syscall.SOL_SOCKET, reusePort, 1)
	})
	return errors.Join(err, failed)
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
