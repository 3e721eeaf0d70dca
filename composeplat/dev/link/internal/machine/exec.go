package machine

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"syscall"

	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
)

// ExecConfig is the configuration file of `platform-link exec`: what to run in which container.
type ExecConfig struct {
	Kubeconfig string   `json:"kubeconfig"`
	Context    string   `json:"context"`
	Namespace  string   `json:"namespace"`
	Pod        string   `json:"pod"`
	Container  string   `json:"container"`
	Command    []string `json:"command"`
	Terminal   bool     `json:"terminal"`
}

// Exec runs a command in a running container, with the streams of this process, and returns its exit status.
func Exec(path string) (int, error) {
	parent := os.Getppid()
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var config ExecConfig
	if err := json.Unmarshal(text, &config); err != nil {
		return 0, err
	}
	client, namespace, err := loadClusterConfig(config.Kubeconfig, config.Context, config.Namespace)
	if err != nil {
		return 0, err
	}
	asked, err := kubernetes.NewForConfig(client)
	if err != nil {
		return 0, err
	}
	run, err := newExecutor(client, asked, namespace, config.Pod, &corev1.PodExecOptions{
		Container: config.Container, Command: config.Command,
		Stdin: true, Stdout: true, Stderr: !config.Terminal, TTY: config.Terminal,
	})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	notifyEnd(signals)
	go waitForEnd(signals, parent, cancel)
	options := remotecommand.StreamOptions{Stdin: os.Stdin, Stdout: os.Stdout, Tty: config.Terminal}
	if config.Terminal {
		before, err := term.MakeRaw(int(os.Stdin.Fd()))
		if err != nil {
			return 0, err
		}
		defer func() { _ = term.Restore(int(os.Stdin.Fd()), before) }()
		sizes := newSizes()
		defer sizes.close()
		options.TerminalSizeQueue = sizes
	} else {
		options.Stderr = os.Stderr
	}
	err = stream(ctx, run, options)
	var status utilexec.CodeExitError
	if errors.As(err, &status) {
		return status.Code, nil
	}
	var ended endedBy
	if errors.As(context.Cause(ctx), &ended) {
		return 128 + int(ended), nil
	}
	return 0, explainLoss(err)
}

// endedBy is the signal that ended a command.
type endedBy syscall.Signal

func (e endedBy) Error() string { return syscall.Signal(e).String() }

// waitForEnd waits for a signal, or for the end of the parent process: the terminal must be restored then, and the streams
// of that process be closed.
func waitForEnd(signals chan os.Signal, parent int, cancel context.CancelCauseFunc) {
	go func() {
		waitForParent(parent)
		signals <- syscall.SIGHUP
	}()
	cancel(endedBy((<-signals).(syscall.Signal)))
}

// sizes are the terminal's sizes: the present one, then each change.
type sizes struct {
	changed chan os.Signal
	stop    func()
}

func newSizes() *sizes {
	s := &sizes{changed: make(chan os.Signal, 1)}
	s.changed <- os.Interrupt // the present size
	s.stop = notifyResize(s.changed)
	return s
}

func (s *sizes) Next() *remotecommand.TerminalSize {
	if _, open := <-s.changed; !open {
		return nil
	}
	rows, columns := terminalSize()
	return &remotecommand.TerminalSize{Height: rows, Width: columns}
}

func (s *sizes) close() {
	s.stop()
	close(s.changed)
}
