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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"
)

// A dialer opens a carrier to the agent, and returns the pod where the agent is.
type dialer interface {
	open(ctx context.Context) (carrier io.ReadWriteCloser, pod string, err error)
}

const requestTimeout = 10 * time.Second

func newDialer(config *Config) (dialer, error) {
	if len(config.AgentCommand) > 0 {
		return processDialer{config.AgentCommand}, nil
	}
	client, namespace, err := loadClusterConfig(config.Kubeconfig, config.Context, config.Namespace)
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(client)
	if err != nil {
		return nil, err
	}
	return &podDialer{config: config, client: client, asked: clientset, namespace: namespace}, nil
}

// disableLog silences the client library, which would log lost connections to the user's terminal.
var disableLog = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// loadClusterConfig returns how to reach the cluster, and the namespace.
func loadClusterConfig(kubeconfig, chosen, namespace string) (*rest.Config, string, error) {
	disableLog()
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: chosen})
	client, err := loaded.ClientConfig()
	if err == nil && namespace == "" {
		namespace, _, err = loaded.Namespace()
	}
	return client, namespace, err
}

// newExecutor runs a command in a container, through a WebSocket, or by SPDY where that fails.
func newExecutor(client *rest.Config, asked *kubernetes.Clientset, namespace, pod string, options *corev1.PodExecOptions,
) (remotecommand.Executor, error) {
	request := asked.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(options, scheme.ParameterCodec)
	client = withBoundedUpgrades(client)
	sockets, err := remotecommand.NewWebSocketExecutor(client, "GET", request.URL().String())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(sockets, &spdyExecutor{client, request.URL()}, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// isRefused reports whether the user may not do what was requested: another try would not help. After a 401 it may, as the
// client has a new credential then.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err)
}

// tail keeps the last output of a failing agent.
type tail struct {
	lock sync.Mutex
	text []byte
}

const maxTailLength = 4096

func (t *tail) Write(text []byte) (int, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.text = append(t.text, text...)
	t.text = slices.Delete(t.text, 0, max(0, len(t.text)-maxTailLength))
	return len(text), nil
}

func (t *tail) String() string {
	t.lock.Lock()
	defer t.lock.Unlock()
	return strings.TrimSpace(string(t.text))
}

// processDialer runs the agent's connect command on this machine: for tests without a cluster.
type processDialer struct{ command []string }

func (l processDialer) open(context.Context) (io.ReadWriteCloser, string, error) {
	command := exec.Command(l.command[0], l.command[1:]...)
	in, err := command.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	stderr := &tail{}
	command.Stderr = stderr
	if err := command.Start(); err != nil {
		return nil, "", err
	}
	return &processCarrier{command: command, WriteCloser: in, out: out, stderr: stderr}, "local", nil
}

type processCarrier struct {
	io.WriteCloser
	command *exec.Cmd
	out     io.ReadCloser
	stderr  *tail
	once    sync.Once
}

func (c *processCarrier) Read(into []byte) (int, error) {
	n, err := c.out.Read(into)
	if stderr := c.stderr.String(); err != nil && stderr != "" {
		err = errors.New(stderr)
	}
	return n, err
}

func (c *processCarrier) Close() error {
	c.once.Do(func() {
		c.WriteCloser.Close()
		_ = c.command.Process.Kill()
		c.out.Close()
		go func() { _ = c.command.Wait() }()
	})
	return nil
}

// podDialer runs the agent's connect command in the newest pod that is ready.
type podDialer struct {
	config    *Config
	client    *rest.Config
	asked     *kubernetes.Clientset
	namespace string
}

func (c *podDialer) open(ctx context.Context) (io.ReadWriteCloser, string, error) {
	pod, err := c.find(ctx)
	if err != nil {
		return nil, "", err
	}
	run, err := newExecutor(c.client, c.asked, c.namespace, pod, &corev1.PodExecOptions{
		Container: c.config.Container,
		Command:   []string{c.config.Agent, "connect", "--socket", c.config.Socket},
		Stdin:     true, Stdout: true, Stderr: true,
	})
	if err != nil {
		return nil, "", err
	}
	carrier, err := newExecCarrier(run)
	if err != nil {
		return nil, "", err
	}
	return carrier, pod, nil
}

func (c *podDialer) find(ctx context.Context) (string, error) {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pods, err := c.asked.CoreV1().Pods(c.namespace).List(limited, metav1.ListOptions{LabelSelector: c.config.Selector})
	if err != nil {
		return "", err
	}
	var newest *corev1.Pod
	for i := range pods.Items {
		pod := &pods.Items[i]
		if isReady(pod) && (newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			newest = pod
		}
	}
	if newest == nil {
		return "", fmt.Errorf("no pod is ready (%d found)", len(pods.Items))
	}
	return newest.Name, nil
}

func isReady(pod *corev1.Pod) bool {
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

// An execCarrier is the input and output of an exec.
type execCarrier struct {
	toward *os.File
	back   *io.PipeReader
	cancel context.CancelFunc
	once   sync.Once
}

func newExecCarrier(executor remotecommand.Executor) (*execCarrier, error) {
	// The kernel's pipe has a buffer: without one, each frame would wait until the one before is sent.
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	back, output := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	complaint := &tail{}
	go func() {
		err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: theirs, Stdout: output, Stderr: complaint})
		theirs.Close()
		if text := complaint.String(); text != "" {
			err = errors.New(text)
		}
		if err == nil {
			err = errors.New("the agent's connection has ended")
		}
		output.CloseWithError(err)
	}()
	return &execCarrier{toward: ours, back: back, cancel: cancel}, nil
}

func (e *execCarrier) Read(into []byte) (int, error)  { return e.back.Read(into) }
func (e *execCarrier) Write(from []byte) (int, error) { return e.toward.Write(from) }

func (e *execCarrier) Close() error {
	e.once.Do(func() {
		e.cancel()
		e.toward.Close()
		e.back.Close()
	})
	return nil
}
