package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWhatAPodMayReach(t *testing.T) {
	lines := strings.Split(egressRules([]netip.Prefix{netip.MustParsePrefix("192.0.2.2/32")}), "\n")
	want := []string{
		"*filter",
		":PLATFORM-EGRESS - [0:0]",
		"-A PLATFORM-EGRESS -d 198.51.100.3 -p udp --dport 53 -j RETURN",
		"-A PLATFORM-EGRESS -d 198.51.100.3 -p tcp --dport 53 -j RETURN",
		"-A PLATFORM-EGRESS -d 192.0.2.2/32 -p tcp -j REJECT --reject-with tcp-reset",
		"-A PLATFORM-EGRESS -d 192.0.2.2/32 -j REJECT",
		"-A PLATFORM-EGRESS -d 198.51.100.0/24 -p tcp -j REJECT --reject-with tcp-reset",
		"-A PLATFORM-EGRESS -d 198.51.100.0/24 -j REJECT",
		"-A PLATFORM-EGRESS -d 169.254.0.0/16 -p tcp -j REJECT --reject-with tcp-reset",
		"-A PLATFORM-EGRESS -d 169.254.0.0/16 -j REJECT",
		"-A PLATFORM-EGRESS -d 224.0.0.0/3 -p tcp -j REJECT --reject-with tcp-reset",
		"-A PLATFORM-EGRESS -d 224.0.0.0/3 -j REJECT",
		"COMMIT",
		"",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got:\n%s", strings.Join(lines, "\n"))
	}
}

// recordCommands puts a program of a name on PATH, which records its arguments and its input in a file.
func recordCommands(t *testing.T, name string) (record string) {
	t.Helper()
	folder := t.TempDir()
	record = filepath.Join(folder, "record")
	script := "#!/bin/sh\n{ echo \"$@\"; cat; } >> " + record + "\n"
	if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	return record
}

func TestTheMachineIsShutOutOnce(t *testing.T) {
	record := recordCommands(t, "nsenter")

	rules := shutOut("/proc/1/ns/net", "")
	again := shutOut("/proc/1/ns/net", rules)

	written, _ := os.ReadFile(record)
	command, input, _ := strings.Cut(string(written), "\n")
	if command != "--net=/proc/1/ns/net -- iptables-restore --noflush --wait" || input != rules {
		t.Errorf("ran %q with\n%s", command, input)
	}
	if again != rules || !strings.Contains(rules, "-d 127.0.0.0/8 ") {
		t.Errorf("the rules are\n%s", again)
	}
}

func TestTheUplinkHasItsOwnRange(t *testing.T) {
	network, err := os.Open("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer network.Close()
	command, ends := slirp4netns("/bin/slirp4netns", network, egressRange)
	defer ends.Close()

	for _, argument := range []string{"--cidr=198.51.100.0/24", "--disable-host-loopback", "--enable-sandbox", "/proc/self/fd/3"} {
		if !slices.Contains(command.Args, argument) {
			t.Errorf("%s is not among %q", argument, command.Args)
		}
	}
	if len(command.ExtraFiles) != 2 || command.ExtraFiles[0] != network {
		t.Errorf("the process gets %v", command.ExtraFiles)
	}
}
