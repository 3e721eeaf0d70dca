package machine

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxUnanswered is how many packets in a row may be sent again: the last of them after about 30 s.
const maxUnanswered = 7

// isAnswered reports whether the other side acknowledges packets, also those that ask whether it can take more.
func isAnswered(connection net.Conn) bool {
	system, isSystem := connection.(syscall.Conn)
	if !isSystem {
		return true
	}
	raw, err := system.SyscallConn()
	if err != nil {
		return true
	}
	answered := true
	_ = raw.Control(func(descriptor uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(descriptor), unix.IPPROTO_TCP, unix.TCP_INFO)
		answered = err != nil || max(info.Retransmits, info.Probes) < maxUnanswered
	})
	return answered
}
