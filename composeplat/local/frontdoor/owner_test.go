package main

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

func TestOurOwnConnectionIsAdmitted(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, host := range []string{"127.0.0.1", "[::ffff:127.0.0.1]"} {
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		client, err := net.Dial("tcp", host+":"+port)
		if err != nil {
			t.Fatal(err)
		}
		server, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if uid, err := findUser(server, "/proc/self/net/tcp", "/proc/self/net/tcp6"); err != nil || uid != os.Getuid() {
			t.Errorf("by %s: user %d, %v", host, uid, err)
		}
		if !isAdmitted(server, 0) {
			t.Errorf("by %s: not isAdmitted", host)
		}
		client.Close()
		server.Close()
	}
}

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1388 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:C350 0100007F:1388 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0 20 4 30 10 -1
   2: 0100007F:1388 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 4 30 10 -1
   3: 0000000000000000FFFF00000100007F:C351 0000000000000000FFFF00000100007F:1388 01 0:0 00:0 0 1001 0 4
   4: 0100007F:C353 0100007F:1388 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1
garbage
`

func TestTheUserOfTheOtherEndCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tcp")
	if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	door := netip.MustParseAddrPort("127.0.0.1:5000")
	for from, want := range map[string]int{"127.0.0.1:50000": 1000, "127.0.0.1:50001": 1001, "127.0.0.1:50002": -1, "127.0.0.1:50003": -1} {
		uid, found := lookUp(path, netip.MustParseAddrPort(from), door)
		if !found {
			uid = -1
		}
		if uid != want {
			t.Errorf("%s: user %d, not %d", from, uid, want)
		}
	}
	if _, found := lookUp(path+"-missing", door, door); found {
		t.Error("found in a table that is not there")
	}
}

func TestWhoClosesAtOnceIsNotAdmitted(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client.Write([]byte("PUT / HTTP/1.1\r\n\r\n"))
	client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if uid, err := findUser(server, "/proc/self/net/tcp", "/proc/self/net/tcp6"); err == nil {
		t.Errorf("the socket that nobody has is of user %d", uid)
	}
}

func TestOthersAreNotAdmitted(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	if isAdmitted(near, 0) {
		t.Error("a connection that is none of the kernel's was isAdmitted")
	}
}
