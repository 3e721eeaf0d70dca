//go:build !windows

package container

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// connectTimeout is how long Connect waits for an agent that is starting.
const connectTimeout = 10 * time.Second

// Connect copies between the agent's socket and standard input and output.
func Connect(socket string) error {
	connection, err := net.Dial("unix", socket)
	for until := time.Now().Add(connectTimeout); err != nil && time.Now().Before(until); {
		time.Sleep(50 * time.Millisecond)
		connection, err = net.Dial("unix", socket)
	}
	if err != nil {
		return fmt.Errorf("the agent does not answer: %w", err)
	}
	defer connection.Close()
	go func() {
		_, _ = io.Copy(connection, os.Stdin)
		_ = connection.(*net.UnixConn).CloseWrite()
	}()
	_, err = io.Copy(os.Stdout, connection)
	return err
}
