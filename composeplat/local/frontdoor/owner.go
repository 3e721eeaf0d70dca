package main

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// ownerListener accepts only the connections for which isAdmitted, and closes others.
type ownerListener struct {
	net.Listener
	builder int
}

func (g ownerListener) Accept() (net.Conn, error) {
	for {
		connection, err := g.Listener.Accept()
		if err != nil || isAdmitted(connection, g.builder) {
			return connection, err
		}
		connection.Close()
	}
}

// isAdmitted reports whether a loopback connection belongs to root, to the builder's user or to the user who runs this
// program. The kernel knows the user of each socket. Other users of the machine must not reach the cluster.
func isAdmitted(connection net.Conn, builder int) bool {
	uid, err := findUser(connection, "/proc/self/net/tcp", "/proc/self/net/tcp6")
	return err == nil && (uid == 0 || uid == builder || uid == os.Getuid())
}

// findUser finds the user of a connection's other end in the kernel's tables of sockets.
func findUser(connection net.Conn, tables ...string) (int, error) {
	near, err := netip.ParseAddrPort(connection.LocalAddr().String())
	if err != nil {
		return 0, err
	}
	far, err := netip.ParseAddrPort(connection.RemoteAddr().String())
	if err != nil {
		return 0, err
	}
	for _, table := range tables {
		if uid, found := lookUp(table, far, near); found {
			return uid, nil
		}
	}
	return 0, fmt.Errorf("no socket from %v to %v", far, near)
}

// lookUp finds the user of the socket from an address to another. One that its program has closed has no inode, and the kernel
// says that it is root's: a user who sends a request and closes at once must not pass for root.
func lookUp(table string, from, to netip.AddrPort) (int, bool) {
	file, err := os.Open(table)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || !isAddress(fields[1], from) || !isAddress(fields[2], to) || fields[9] == "0" {
			continue
		}
		uid, err := strconv.Atoi(fields[7])
		return uid, err == nil
	}
	return 0, false
}

// isAddress compares an address with a table's form of it: words of four bytes in this machine's byte order, and a port.
func isAddress(text string, address netip.AddrPort) bool {
	host, port, found := strings.Cut(text, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	if !found || err != nil || uint16(number) != address.Port() {
		return false
	}
	if !address.Addr().Unmap().Is4() {
		return false
	}
	plain := address.Addr().Unmap().As4()
	word := fmt.Sprintf("%02X%02X%02X%02X", plain[3], plain[2], plain[1], plain[0])
	return host == word || host == "0000000000000000FFFF0000"+word
}
