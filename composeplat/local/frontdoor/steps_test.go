package main

import (
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestWhatAStepMayReach(t *testing.T) {
	lines := strings.Split(stepRules([]netip.Prefix{netip.MustParsePrefix("192.0.2.2/32")}), "\n")
	order := []string{
		":INPUT DROP",
		":FORWARD DROP",
		"-A FORWARD -d 198.19.254.3 -o tap0 -p tcp --dport 53 -j ACCEPT",
		"-A FORWARD -d 192.0.2.2/32 -j REFUSE",
		"-A FORWARD -d 198.19.254.0/24 -j REFUSE",
		"-A FORWARD -d 169.254.0.0/16 -j REFUSE",
		"-A FORWARD -d 224.0.0.0/3 -j REFUSE",
		"-A FORWARD -o tap0 -j ACCEPT",
		"-A FORWARD -j REFUSE",
		"-A POSTROUTING -o tap0 -j MASQUERADE",
	}
	last := -1
	for _, rule := range order {
		at := slices.Index(lines, rule)
		if at <= last {
			t.Errorf("%q is not there, or comes too early:\n%s", rule, strings.Join(lines, "\n"))
		}
		last = at
	}
}

// kernelRoute is a message of the kernel's: a route of a kind to a destination.
func kernelRoute(kind byte, bits byte, destination ...byte) syscall.NetlinkMessage {
	data := make([]byte, syscall.SizeofRtMsg)
	data[0], data[1], data[7] = syscall.AF_INET, bits, kind
	if destination != nil {
		data = append(data, byte(4+len(destination)), 0, syscall.RTA_DST, 0)
		data = append(data, destination...)
	}
	header := syscall.NlMsghdr{Type: syscall.RTM_NEWROUTE, Len: uint32(syscall.NLMSG_HDRLEN + len(data))}
	return syscall.NetlinkMessage{Header: header, Data: data}
}

func TestTheMachineIsWhatItAnswersFor(t *testing.T) {
	got := ownAddresses([]syscall.NetlinkMessage{
		kernelRoute(syscall.RTN_UNICAST, 24, 192, 0, 2, 0),
		kernelRoute(syscall.RTN_LOCAL, 32, 192, 0, 2, 2),
		kernelRoute(syscall.RTN_LOCAL, 32, 192, 0, 2, 2),
		kernelRoute(syscall.RTN_BROADCAST, 32, 192, 0, 2, 255),
		kernelRoute(syscall.RTN_LOCAL, 8, 127, 0, 0, 0),
		kernelRoute(syscall.RTN_LOCAL, 0),
		{Header: syscall.NlMsghdr{Type: syscall.NLMSG_DONE}, Data: make([]byte, 4)},
	})
	var listed []string
	for _, prefix := range got {
		listed = append(listed, prefix.String())
	}
	if want := []string{"127.0.0.0/8", "192.0.2.2/32", "192.0.2.255/32"}; !slices.Equal(listed, want) {
		t.Errorf("%v, not %v", listed, want)
	}
}

func TestThisMachineAnswersForItsLoopback(t *testing.T) {
	rules, err := currentRules()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(rules, "-A FORWARD -d 127.0.0.0/8 -j REFUSE\n") {
		t.Errorf("loopback is not shut:\n%s", rules)
	}
}

func TestTheLockOfTheRulesIsOurOwn(t *testing.T) {
	command := restore("*filter\nCOMMIT\n")
	if !slices.Contains(command.Env, "XTABLES_LOCKFILE=/var/lib/cni/xtables.lock") {
		t.Error("iptables would lock root's file")
	}
}

func TestWhoMayConnectToADoor(t *testing.T) {
	for network, want := range map[string]struct {
		owners  bool
		builder int
	}{"tcp": {}, "own": {owners: true}, "own+1800000000": {true, 1800000000}} {
		if owners, builder := isForOwners(network); owners != want.owners || builder != want.builder {
			t.Errorf("%s: %v, %d", network, owners, builder)
		}
	}
}
