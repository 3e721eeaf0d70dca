package main

import (
	"os"
	"slices"
	"syscall"
	"testing"
)

func TestTheBuildersArguments(t *testing.T) {
	got, err := parseBuilder([]string{"/run/b", "1000", "none", "buildkitd", "--config"})
	if err != nil || got.folder != "/run/b" || got.user != 1000 || !slices.Equal(got.command, []string{"buildkitd", "--config"}) {
		t.Errorf("read as %v, %v", got, err)
	}
	for _, wrong := range [][]string{{}, {"/run/b", "1000", "none"}, {"/run/b", "0", "none", "x"}, {"/run/b", "root", "none", "x"}} {
		if _, err := parseBuilder(wrong); err == nil {
			t.Errorf("taken: %v", wrong)
		}
	}
}

func TestTheMachinesNetworkIsTheBuildersOnlyWhenAsked(t *testing.T) {
	for network, own := range map[string]bool{"host": false, "none": true, "/usr/bin/slirp4netns": true} {
		if (builder{network: network}).hasOwnNetwork() != own {
			t.Errorf("%s: own network is not %v", network, own)
		}
	}
}

func TestInsideNobodyIsAUserOfTheMachine(t *testing.T) {
	attributes := builder{user: 5000, command: []string{"x"}}.inside(nil).SysProcAttr
	want := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 5000, Size: idCount}}
	if !slices.Equal(attributes.UidMappings, want) || !slices.Equal(attributes.GidMappings, want) {
		t.Errorf("users %v, groups %v", attributes.UidMappings, attributes.GidMappings)
	}
	if attributes.Cloneflags&syscall.CLONE_NEWPID == 0 || attributes.Pdeathsig != syscall.SIGKILL {
		t.Error("steps could outlive the builder")
	}
}

func TestAKilledBuilderIsTold(t *testing.T) {
	for status, want := range map[syscall.WaitStatus]int{0: 0, 3 << 8: 3, 9: 137} {
		if got := exitStatus(status); got != want {
			t.Errorf("%d: %d, not %d", status, got, want)
		}
	}
}

func TestAFileGoesOverASocket(t *testing.T) {
	near, far, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	other, err := unixConnection(far)
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if err := sendFile(other, null); err != nil {
		t.Fatal(err)
	}
	received, err := receiveFile(near)
	if err != nil {
		t.Fatal(err)
	}
	defer received.Close()
	want, _ := null.Stat()
	if got, err := received.Stat(); err != nil || !os.SameFile(got, want) {
		t.Errorf("another file came: %v, %v", got, err)
	}
	other.Close()
	if _, err := receiveFile(near); err == nil {
		t.Error("a file came out of a closed socket")
	}
}
