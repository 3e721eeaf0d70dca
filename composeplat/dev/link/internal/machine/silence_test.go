package machine

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// writeExecConfig writes the configuration of an exec over a server, and returns its path.
func writeExecConfig(t *testing.T, folder, server, more string) string {
	t.Helper()
	kubeconfig, config := filepath.Join(folder, "kubeconfig"), filepath.Join(folder, "exec.json")
	write(t, kubeconfig, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`, server))
	write(t, config, fmt.Sprintf(`{"kubeconfig":%q,"namespace":"shop","pod":"web","command":["sh"]%s}`, kubeconfig, more))
	return config
}

// execOver returns the error of an exec over a server.
func execOver(t *testing.T, server string) error {
	t.Helper()
	config := writeExecConfig(t, t.TempDir(), server, "")
	failed := make(chan error, 1)
	go func() {
		_, err := Exec(config)
		failed <- err
	}()
	select {
	case err := <-failed:
		return err
	case <-time.After(2 * eventTimeout):
		return errors.New("it does not end")
	}
}

// isLoss checks that an error says that the connection is lost, and why.
func isLoss(t *testing.T, err error, why string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), "the connection to the cluster is lost: "+why) {
		t.Fatalf("not the reason: %v", err)
	}
}

// upgrading is a server that makes WebSockets of its connections.
func upgrading(t *testing.T, serve func(*websocket.Conn)) string {
	t.Helper()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
		if connection, err := upgrader.Upgrade(reply, request, nil); err == nil {
			serve(connection)
			<-ended
			connection.Close()
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	return server.URL
}

// Both take a minute: one test has them at the same time.
func TestAnExecOverASilentConnectionEndsWithThatReason(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	unanswered := make(chan error, 1)
	go func() { unanswered <- execOver(t, "http://"+listener.Addr().String()) }()
	// Nothing is read there, so that no sign of life is answered.
	isLoss(t, execOver(t, upgrading(t, func(*websocket.Conn) {})), "nothing was received for a minute")
	isLoss(t, <-unanswered, "nothing was received for a minute")
}

func TestAnExecWhoseConnectionIsCutEndsWithThatReason(t *testing.T) {
	t.Parallel()
	isLoss(t, execOver(t, upgrading(t, func(connection *websocket.Conn) { connection.NetConn().Close() })), "")
}
