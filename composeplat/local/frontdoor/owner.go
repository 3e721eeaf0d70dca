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

// guarded accepts the connections that are admitted, and closes the others.
type guarded struct {
	net.Listener
	builder int
}

func (g guarded) Accept() (net.Conn, error) {
	for {
		connection, err := g.Listener.Accept()
		if err != nil || admitted(connection, g.builder) {
			return connection, err
		}
		connection.Close()
	}
}

// admitted says whether a connection over loopback is root's, the builder's or the user's that runs this program: the
// kernel keeps the user of each socket. Other users of the machine have no business behind the door.
func admitted(connection net.Conn, builder int) bool {
	uid, err := userOf(connection, "/proc/self/net/tcp", "/proc/self/net/tcp6")
	return err == nil && (uid == 0 || uid == builder || uid == os.Getuid())
}

// userOf looks the other end of a connection up in the kernel's tables of sockets.
func userOf(connection net.Conn, tables ...string) (int, error) {
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
	return 0, fmt.Errorf("no socket leads from %v to %v", far, near)
}

// lookUp finds the user of the socket that leads from one address to another.
func lookUp(table string, from, to netip.AddrPort) (int, bool) {
	file, err := os.Open(table)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 || !isAddress(fields[1], from) || !isAddress(fields[2], to) {
			continue
		}
		uid, err := strconv.Atoi(fields[7])
		return uid, err == nil
	}
	return 0, false
}

// isAddress compares an address as the table writes it: words of four bytes, each in this machine's order, and a port.
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
