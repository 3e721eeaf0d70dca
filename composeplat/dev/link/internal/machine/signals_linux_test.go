package machine

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
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
		w.arrives(w.there("begun"), "begun\n")
		must(t, up.Process.Signal(syscall.SIGHUP))
		if ends {
			_ = up.Wait()
			continue
		}
		time.Sleep(time.Second)
		equal(t, false, strings.Contains(read(fmt.Sprintf("/proc/%d/stat", up.Process.Pid)), ") Z "))
	}
}

func TestAReaderThatIsGoneEndsTheProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Directory = w.root
	w.config.Command = []string{"sh", "-c", "echo $$ > pid; while :; do echo line; sleep 0.02; done"}
	w.hold(nil)
	must(t, w.startProcess("sh", "-c", `"$@" | head -n 1`, "sh").Wait())
	pid, err := strconv.Atoi(strings.TrimSpace(read(filepath.Join(w.root, "pid"))))
	must(t, err)
	w.eventually("it has ended", func() bool { return syscall.Kill(pid, 0) != nil })
}
