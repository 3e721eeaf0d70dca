package main

import (
	"fmt"
	"log"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// The network between build steps and this machine. Its range is reserved for benchmarks, so that it hides no network that
// a step may need.
const (
	uplink      = "tap0"
	uplinkRange = "198.19.254.0/24"
	resolver    = "198.19.254.3"
	mtu         = "65520"
)

// makeStepsNetwork creates the network namespace of steps at a path, and returns it as a file too. Its only exit is the
// uplink. This machine's own addresses are blocked, also when they change.
func makeStepsNetwork(path string) (*os.File, error) {
	changes, err := watchRoutes()
	if err != nil {
		return nil, err
	}
	made := make(chan error)
	apply := make(chan string)
	go insideNewNetwork(path, made, apply)
	if err := <-made; err != nil {
		return nil, err
	}
	shut := func() (string, error) {
		rules, err := currentRules()
		if err != nil {
			return "", err
		}
		apply <- rules
		return rules, <-made
	}
	last, err := shut()
	if err != nil {
		return nil, err
	}
	go func() {
		for changes() {
			if rules, err := currentRules(); err == nil && rules == last {
				continue
			}
			if rules, err := shut(); err != nil {
				log.Fatalf("can't keep this machine out of the reach of builds: %v", err)
			} else {
				last = rules
			}
		}
	}()
	return os.Open(path)
}

// insideNewNetwork starts a thread in a new network namespace: the processes that it starts are there too.
func insideNewNetwork(path string, done chan<- error, apply <-chan string) {
	runtime.LockOSThread()
	done <- enterNewNetwork(path)
	for rules := range apply {
		done <- run(restore(rules))
	}
}

// restore returns the command that replaces the rules. The legacy iptables locks a file that belongs to root: it is put where
// this namespace can write.
func restore(rules string) *exec.Cmd {
	command := exec.Command("iptables-restore")
	command.Stdin = strings.NewReader(rules)
	command.Env = append(os.Environ(), "XTABLES_LOCKFILE="+notes+"/xtables.lock")
	return command
}

func enterNewNetwork(path string) error {
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	if err := syscall.Mount("/proc/thread-self/ns/net", path, "", syscall.MS_BIND, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	for setting, value := range map[string]string{"ipv4/ip_forward": "1", "ipv6/conf/default/disable_ipv6": "1"} {
		err := os.WriteFile("/proc/sys/net/"+setting, []byte(value), 0)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return run(exec.Command("ip", "link", "set", "lo", "up"))
}

// waitLock is held while a process is waited for, so that reap does not reap it.
var waitLock sync.Mutex

func run(command *exec.Cmd) error {
	waitLock.Lock()
	defer waitLock.Unlock()
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %v: %s", command.Args[0], err, strings.TrimSpace(string(output)))
	}
	return nil
}

// rules -----------------------------------------------------------------------------------------------------------------

// stepRules are the rules for iptables-restore: a step reaches neither this machine nor another step, only the resolver in the
// uplink's network, and everything else.
func stepRules(machine []netip.Prefix) string {
	lines := []string{
		"*filter", ":INPUT DROP", ":FORWARD DROP", ":OUTPUT ACCEPT", ":REFUSE -",
		// A TCP reset is noticed at once.
		"-A REFUSE -p tcp -j REJECT --reject-with tcp-reset", "-A REFUSE -j REJECT",
		"-A INPUT -j REFUSE",
		"-A FORWARD -i " + uplink + " -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
		"-A FORWARD -d " + resolver + " -o " + uplink + " -p udp --dport 53 -j ACCEPT",
		"-A FORWARD -d " + resolver + " -o " + uplink + " -p tcp --dport 53 -j ACCEPT",
	}
	// From 224.0.0.0 on are multicast and broadcast addresses, which reach the machine itself.
	for _, shut := range append(machine, netip.MustParsePrefix(uplinkRange), linkLocal, multicast) {
		lines = append(lines, "-A FORWARD -d "+shut.String()+" -j REFUSE")
	}
	return strings.Join(append(lines,
		"-A FORWARD -o "+uplink+" -j ACCEPT", "-A FORWARD -j REFUSE", "COMMIT",
		"*nat", "-A POSTROUTING -o "+uplink+" -j MASQUERADE", "COMMIT", "",
	), "\n")
}

func currentRules() (string, error) {
	machine, err := machineAddresses()
	return stepRules(machine), err
}

// machineAddresses asks the kernel for this machine's addresses.
func machineAddresses() ([]netip.Prefix, error) {
	routes, err := syscall.NetlinkRIB(syscall.RTM_GETROUTE, syscall.AF_INET)
	if err != nil {
		return nil, os.NewSyscallError("netlink", err)
	}
	messages, err := syscall.ParseNetlinkMessage(routes)
	if err != nil {
		return nil, err
	}
	return ownAddresses(messages), nil
}

// ownAddresses lists this machine's addresses: the destinations of its local and broadcast routes.
func ownAddresses(messages []syscall.NetlinkMessage) []netip.Prefix {
	const scopeFamily, lengthAt, typeAt = 0, 1, 7
	found := map[netip.Prefix]bool{}
	for _, message := range messages {
		if message.Header.Type != syscall.RTM_NEWROUTE || len(message.Data) < syscall.SizeofRtMsg {
			continue
		}
		kind := message.Data[typeAt]
		if message.Data[scopeFamily] != syscall.AF_INET || (kind != syscall.RTN_LOCAL && kind != syscall.RTN_BROADCAST) {
			continue
		}
		if prefix, ok := destination(&message, int(message.Data[lengthAt])); ok {
			found[prefix] = true
		}
	}
	listed := make([]netip.Prefix, 0, len(found))
	for prefix := range found {
		listed = append(listed, prefix)
	}
	slices.SortFunc(listed, func(a, b netip.Prefix) int { return strings.Compare(a.String(), b.String()) })
	return listed
}

func destination(message *syscall.NetlinkMessage, bits int) (netip.Prefix, bool) {
	attributes, err := syscall.ParseNetlinkRouteAttr(message)
	if err != nil {
		return netip.Prefix{}, false
	}
	for _, attribute := range attributes {
		if address, ok := netip.AddrFromSlice(attribute.Value); ok && attribute.Attr.Type == syscall.RTA_DST {
			return netip.PrefixFrom(address, bits), true
		}
	}
	return netip.Prefix{}, false
}

// watchRoutes returns a function that waits until this machine's routes change.
func watchRoutes() (func() bool, error) {
	const routesOfIPv4 = 0x40
	socket, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := syscall.Bind(socket, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK, Groups: routesOfIPv4}); err != nil {
		return nil, os.NewSyscallError("bind", err)
	}
	buffer := make([]byte, 1<<16)
	return func() bool {
		_, _, err := syscall.Recvfrom(socket, buffer, 0)
		// Lost messages mean that there were changes.
		return err == nil || err == syscall.ENOBUFS || err == syscall.EINTR
	}, nil
}
