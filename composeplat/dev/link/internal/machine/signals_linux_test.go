package machine

import (
	"syscall"
	"testing"
	"time"
)

func TestNohupKeepsTheSessionOfAClosedTerminal(t *testing.T) {
	t.Parallel()
	for runner, ends := range map[string]bool{"nohup": false, "env": true} {
		w := newWorld(t)
		w.config.Directory = w.there("")
		w.config.Command = []string{"sh", "-c", "echo begun > begun; exec sleep 1000"}
		w.hold(nil)
		up := w.startProcess(runner)
		ended := make(chan error, 1)
		go func() { ended <- up.Wait() }()
		w.arrives(w.there("begun"), "begun\n")
		must(t, up.Process.Signal(syscall.SIGHUP))
		select {
		case <-ended:
			equal(t, true, ends)
		case <-time.After(time.Second):
			equal(t, false, ends)
		}
	}
}
