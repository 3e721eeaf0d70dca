//go:build !windows

package machine

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(name string, age time.Duration, ready corev1.ConditionStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-age))},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

// apiServer lists pods and runs what is to be executed in one here, as version 5 of the protocol has it.
func (w *world) apiServer() *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		switch request.URL.Path {
		case "/api/v1/namespaces/shop/pods":
			gone := pod("gone", 0, corev1.ConditionTrue)
			gone.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			reply.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(reply).Encode(corev1.PodList{
				TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
				Items: []corev1.Pod{
					pod("old", time.Hour, corev1.ConditionTrue), pod("newest", time.Minute, corev1.ConditionTrue),
					pod("starting", time.Second, corev1.ConditionFalse), gone,
				},
			})
		case "/api/v1/namespaces/shop/pods/newest/exec":
			upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
			connection, err := upgrader.Upgrade(reply, request, nil)
			if err != nil {
				return
			}
			command := request.URL.Query()["command"]
			w.execute(connection, exec.Command(w.config.AgentCommand[0], "agent", command[1], command[3]))
		default:
			http.NotFound(reply, request)
		}
	}))
	w.t.Cleanup(server.Close)
	return server
}

func (w *world) execute(connection *websocket.Conn, command *exec.Cmd) {
	defer connection.Close()
	in, err := command.StdinPipe()
	if err != nil {
		return
	}
	out, err := command.StdoutPipe()
	if err != nil || command.Start() != nil {
		return
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}()
	go func() {
		defer in.Close()
		for {
			_, message, err := connection.ReadMessage()
			if err != nil {
				return
			}
			if len(message) > 0 && message[0] == 0 {
				_, _ = in.Write(message[1:])
			}
		}
	}()
	buffer := make([]byte, 1+32<<10)
	buffer[0] = 1
	for {
		n, err := out.Read(buffer[1:])
		if n > 0 && connection.WriteMessage(websocket.BinaryMessage, buffer[:1+n]) != nil || err != nil {
			return
		}
	}
}

// through reaches the agent through an API server.
func (w *world) through(server *httptest.Server) {
	config := *w.config
	config.AgentCommand = nil
	config.Kubeconfig = filepath.Join(w.root, "kubeconfig")
	config.Namespace, config.Selector, config.Container = "shop", "a=b", "web"
	config.Agent, config.Socket = "/agent", filepath.Join(w.root, "run", "socket")
	write(w.t, config.Kubeconfig, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`, server.URL))
	cluster, err := newDialer(&config)
	must(w.t, err)
	w.dialer = cluster
}

func TestTheNewestReadyPodIsReachedThroughTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.through(w.apiServer())
	write(t, w.here("file"), "content")
	w.startSynced()
	equal[any](t, "newest", w.all("connected")[0]["pod"])
	equal(t, "content", read(w.there("file")))
	w.cut()
	w.eventually("linked again", func() bool { return w.count("connected") == 2 })
	write(t, w.there("file"), "changed")
	w.arrives(w.here("file"), "changed")
}

func TestWithoutTheRightToReachPodsItEnds(t *testing.T) {
	t.Parallel()
	for _, forbidden := range []string{"/api/v1/namespaces/shop/pods", "/api/v1/namespaces/shop/pods/newest/exec"} {
		w := newWorld(t)
		allowed := w.apiServer().Config.Handler
		server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
			if request.URL.Path != forbidden {
				allowed.ServeHTTP(reply, request)
				return
			}
			reply.Header().Set("Content-Type", "application/json")
			reply.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(reply).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "pods/exec: not for you",
			})
		}))
		t.Cleanup(server.Close)
		w.through(server)
		w.startAgainst()
		select {
		case err := <-w.failed:
			equal(t, true, strings.Contains(err.Error(), "not for you"))
			<-w.status
			w.up = nil
		case <-time.After(eventTimeout):
			t.Fatal("it tries again and again: ", w.all("disconnected"))
		}
	}
}
