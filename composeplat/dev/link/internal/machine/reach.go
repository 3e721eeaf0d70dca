package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"
)

// A reach opens a carrier to the agent, and names the pod where it is.
type reach interface {
	open(ctx context.Context) (carrier io.ReadWriteCloser, pod string, err error)
}

const asking = 10 * time.Second

func newReach(config *Config) (reach, error) {
	if len(config.AgentCommand) > 0 {
		return local{config.AgentCommand}, nil
	}
	client, namespace, err := reachable(config.Kubeconfig, config.Context, config.Namespace)
	if err != nil {
		return nil, err
	}
	asked, err := kubernetes.NewForConfig(client)
	if err != nil {
		return nil, err
	}
	return &cluster{config: config, client: client, asked: asked, namespace: namespace}, nil
}

// reachable finds the cluster that is meant, and the namespace there.
func reachable(kubeconfig, chosen, namespace string) (*rest.Config, string, error) {
	// The client library would write about lost connections into the user's terminal.
	klog.SetLogger(logr.Discard())
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: chosen})
	client, err := loaded.ClientConfig()
	if err == nil && namespace == "" {
		namespace, _, err = loaded.Namespace()
	}
	return client, namespace, err
}

// executor runs a command in a container of a pod; where WebSockets do not get through, by SPDY.
func executor(client *rest.Config, asked *kubernetes.Clientset, namespace, pod string, options *corev1.PodExecOptions,
) (remotecommand.Executor, error) {
	request := asked.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(options, scheme.ParameterCodec)
	sockets, err := remotecommand.NewWebSocketExecutor(client, "GET", request.URL().String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(client, "POST", request.URL())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(sockets, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// tail keeps the end of what a failing agent says.
type tail struct {
	lock sync.Mutex
	said []byte
}

const mostSaid = 4096

func (t *tail) Write(text []byte) (int, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.said = append(t.said, text...)
	t.said = slices.Delete(t.said, 0, max(0, len(t.said)-mostSaid))
	return len(text), nil
}

func (t *tail) String() string {
	t.lock.Lock()
	defer t.lock.Unlock()
	return strings.TrimSpace(string(t.said))
}

// local runs the agent's connection here: for trying without a cluster.
type local struct{ command []string }

func (l local) open(context.Context) (io.ReadWriteCloser, string, error) {
	command := exec.Command(l.command[0], l.command[1:]...)
	in, err := command.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	said := &tail{}
	command.Stderr = said
	if err := command.Start(); err != nil {
		return nil, "", err
	}
	return &child{command: command, WriteCloser: in, out: out, said: said}, "local", nil
}

type child struct {
	io.WriteCloser
	command *exec.Cmd
	out     io.ReadCloser
	said    *tail
	once    sync.Once
}

func (c *child) Read(into []byte) (int, error) {
	n, err := c.out.Read(into)
	if said := c.said.String(); err != nil && said != "" {
		err = errors.New(said)
	}
	return n, err
}

func (c *child) Close() error {
	c.once.Do(func() {
		c.WriteCloser.Close()
		_ = c.command.Process.Kill()
		c.out.Close()
		go func() { _ = c.command.Wait() }()
	})
	return nil
}

// cluster finds the newest pod that is ready, and runs the agent's connection in its container.
type cluster struct {
	config    *Config
	client    *rest.Config
	asked     *kubernetes.Clientset
	namespace string
}

func (c *cluster) open(ctx context.Context) (io.ReadWriteCloser, string, error) {
	pod, err := c.find(ctx)
	if err != nil {
		return nil, "", err
	}
	run, err := executor(c.client, c.asked, c.namespace, pod, &corev1.PodExecOptions{
		Container: c.config.Container,
		Command:   []string{c.config.Agent, "connect", "--socket", c.config.Socket},
		Stdin:     true, Stdout: true, Stderr: true,
	})
	if err != nil {
		return nil, "", err
	}
	carrier, err := newExecution(run)
	if err != nil {
		return nil, "", err
	}
	return carrier, pod, nil
}

func (c *cluster) find(ctx context.Context) (string, error) {
	limited, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	pods, err := c.asked.CoreV1().Pods(c.namespace).List(limited, metav1.ListOptions{LabelSelector: c.config.Selector})
	if err != nil {
		return "", err
	}
	var newest *corev1.Pod
	for i := range pods.Items {
		pod := &pods.Items[i]
		if serves(pod) && (newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			newest = pod
		}
	}
	if newest == nil {
		return "", fmt.Errorf("no pod is ready (%d found)", len(pods.Items))
	}
	return newest.Name, nil
}

func serves(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// An execution is the carrier that an exec makes: its input and output.
type execution struct {
	toward *os.File
	back   *io.PipeReader
	cancel context.CancelFunc
	once   sync.Once
}

func newExecution(executor remotecommand.Executor) (*execution, error) {
	// A pipe of the kernel's has a buffer: without one each frame would wait for the one before to be on the wire.
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	back, said := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	complaint := &tail{}
	go func() {
		err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: theirs, Stdout: said, Stderr: complaint})
		theirs.Close()
		if text := complaint.String(); text != "" {
			err = errors.New(text)
		}
		if err == nil {
			err = errors.New("the agent's connection has ended")
		}
		said.CloseWithError(err)
	}()
	return &execution{toward: ours, back: back, cancel: cancel}, nil
}

func (e *execution) Read(into []byte) (int, error)  { return e.back.Read(into) }
func (e *execution) Write(from []byte) (int, error) { return e.toward.Write(from) }

func (e *execution) Close() error {
	e.once.Do(func() {
		e.cancel()
		e.toward.Close()
		e.back.Close()
	})
	return nil
}
