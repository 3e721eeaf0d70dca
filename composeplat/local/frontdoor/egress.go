package main

import (
	"log"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// The network between the pods of the cluster and this machine. Its range is reserved for documentation, so that it hides no
// network that a pod may need.
const (
	egressRange    = "198.51.100.0/24"
	egressResolver = "198.51.100.3"
	// egressChain filters what leaves the cluster; the chains of the cluster jump to it.
	egressChain = "PLATFORM-EGRESS"
)

// At a link-local address, a machine of a cloud gets its own credentials.
var linkLocal, multicast = netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/3")

// runEgress connects the network namespace of the cluster with this machine's, so that pods reach other machines. This
// machine's own addresses are blocked before, also when they change.
func runEgress(slirp, namespace string) {
	network, err := os.Open(namespace)
	if err != nil {
		log.Fatalf("can't open the network of the cluster: %v", err)
	}
	changes, err := watchRoutes()
	if err != nil {
		log.Fatalf("can't watch the addresses of this machine: %v", err)
	}
	last := shutOut(namespace, "")
	go func() {
		for changes() {
			last = shutOut(namespace, last)
		}
	}()
	runtime.LockOSThread()
	for {
		uplink, ends := slirp4netns(slirp, network, egressRange)
		err := uplink.Run()
		ends.Close()
		log.Printf("slirp4netns ended: %v", err)
		time.Sleep(restartPause)
	}
}

// shutOut blocks the addresses of this machine, unless they are the same as before. If it fails, this process ends, and
// slirp4netns with it: pods reach nothing outside then.
func shutOut(namespace, last string) string {
	machine, err := machineAddresses()
	if err != nil {
		log.Fatalf("can't read the addresses of this machine: %v", err)
	}
	rules := egressRules(machine)
	if rules == last {
		return last
	}
	if err := run(restoreIn(namespace, rules)); err != nil {
		log.Fatalf("can't keep this machine out of the reach of pods: %v", err)
	}
	return rules
}

// restoreIn returns the command that replaces the content of one chain in a network namespace.
func restoreIn(namespace, rules string) *exec.Cmd {
	command := exec.Command("nsenter", "--net="+namespace, "--", "iptables-restore", "--noflush", "--wait")
	command.Stdin = strings.NewReader(rules)
	return command
}

// egressRules are the rules for iptables-restore: of this machine, pods reach only the resolver of names.
func egressRules(machine []netip.Prefix) string {
	lines := []string{
		"*filter", ":" + egressChain + " - [0:0]",
		"-A " + egressChain + " -d " + egressResolver + " -p udp --dport 53 -j RETURN",
		"-A " + egressChain + " -d " + egressResolver + " -p tcp --dport 53 -j RETURN",
	}
	for _, shut := range append(machine, netip.MustParsePrefix(egressRange), linkLocal, multicast) {
		lines = append(lines,
			"-A "+egressChain+" -d "+shut.String()+" -p tcp -j REJECT --reject-with tcp-reset",
			"-A "+egressChain+" -d "+shut.String()+" -j REJECT",
		)
	}
	return strings.Join(append(lines, "COMMIT", ""), "\n")
}
