package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// echo says back what it hears, once the other side has said all.
func echo(t *testing.T, address string) net.Listener {
	t.Helper()
	listener := listen(address, false)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				received, _ := io.ReadAll(connection)
				connection.Write(append([]byte("received "), received...))
			}()
		}
	}()
	return listener
}

func front(t *testing.T, address, target string) net.Listener {
	t.Helper()
	listener := listen(address, false)
	go accept(listener, target)
	return listener
}

func say(t *testing.T, network, place, text string) string {
	t.Helper()
	connection, err := net.DialTimeout(network, place, time.Second)
	check(t, err)
	defer connection.Close()
	check(t, connection.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(connection, text)
	check(t, err)
	check(t, connection.(halfCloser).CloseWrite())
	received, err := io.ReadAll(connection)
	check(t, err)
	return string(received)
}

// A port that a socket of this user holds can be listened on with --held alone, and connections get there.
func TestAHeldPort(t *testing.T) {
	holder, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	check(t, err)
	defer syscall.Close(holder)
	const reusePort = 15
	check(t, syscall.SetsockoptInt(holder, syscall.SOL_SOCKET, reusePort, 1))
	check(t, syscall.Bind(holder, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	bound, err := syscall.Getsockname(holder)
	check(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	if listener, err := net.Listen("tcp", address); err == nil {
		listener.Close()
		t.Error("the port was not held")
	}
	inner := filepath.Join(t.TempDir(), "inner.sock")
	echo(t, "unix:"+inner)
	frontdoor(t, "pipe", heldOption, "tcp:"+address, "unix:"+inner)
	eventually(t, "the port is listened on", func() bool {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
	if received := say(t, "tcp", address, "hello"); received != "received hello" {
		t.Errorf("received %q", received)
	}
}

// A connection is carried between any two kinds of address; who has said all may still be answered.
func TestCarried(t *testing.T) {
	folder := t.TempDir()
	inner := filepath.Join(folder, "inner.sock")
	echo(t, "unix:"+inner)
	tcp := front(t, "tcp:127.0.0.1:0", "unix:"+inner).Addr().String()
	outer := filepath.Join(folder, "outer.sock")
	front(t, "unix:"+outer, "tcp:"+tcp)
	for network, place := range map[string]string{"tcp": tcp, "unix": outer} {
		if received := say(t, network, place, "hello"); received != "received hello" {
			t.Errorf("%s: %q", network, received)
		}
	}
}

// What is long comes whole.
func TestMuchIsCarried(t *testing.T) {
	target := echo(t, "tcp:127.0.0.1:0").Addr().String()
	place := front(t, "tcp:127.0.0.1:0", "tcp:"+target).Addr().String()
	much := string(bytes.Repeat([]byte("0123456789"), 1_000_000))
	if received := say(t, "tcp", place, much); received != "received "+much {
		t.Fatalf("%d bytes", len(received))
	}
}

// Where nobody listens behind it a connection ends at once, and the next one is taken all the same.
func TestNobodyBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "late.sock")
	place := front(t, "tcp:127.0.0.1:0", "unix:"+path).Addr().String()
	connection, err := net.Dial("tcp", place)
	check(t, err)
	defer connection.Close()
	check(t, connection.SetDeadline(time.Now().Add(10*time.Second)))
	if received, err := io.ReadAll(connection); len(received) > 0 || os.IsTimeout(err) {
		t.Fatalf("%q, %v", received, err)
	}
	echo(t, "unix:"+path)
	if received := say(t, "tcp", place, "again"); received != "received again" {
		t.Fatalf("%q", received)
	}
}

// A socket that a killed process has left does not keep its place taken.
func TestASocketThatWasLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "left.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	check(t, err)
	left.SetUnlinkOnClose(false)
	left.Close()
	echo(t, "unix:"+path)
	if received := say(t, "unix", path, "x"); received != "received x" {
		t.Fatalf("%q", received)
	}
}

// An address is a network and a place, which may have colons of its own.
func TestAnAddress(t *testing.T) {
	for address, want := range map[string][2]string{
		"tcp:127.0.0.1:80": {"tcp", "127.0.0.1:80"},
		"tcp:[::1]:80":     {"tcp", "[::1]:80"},
		"unix:/run/a:b":    {"unix", "/run/a:b"},
	} {
		if network, place := splitAddress(address); [2]string{network, place} != want {
			t.Errorf("%s: %s and %s", address, network, place)
		}
	}
}
