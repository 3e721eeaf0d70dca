package container

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// The agent may only be starting.
const patience = 10 * time.Second

// Connect joins standard input and output to the agent's socket.
func Connect(socket string) error {
	connection, err := net.Dial("unix", socket)
	for until := time.Now().Add(patience); err != nil && time.Now().Before(until); {
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
