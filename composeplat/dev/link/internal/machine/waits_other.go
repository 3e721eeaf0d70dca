//go:build !linux

package machine

import "net"

// isAnswered reports that the other side answers: the system ends a connection on which it does not, within some minutes.
func isAnswered(net.Conn) bool { return true }
