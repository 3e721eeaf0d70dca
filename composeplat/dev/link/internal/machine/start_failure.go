package machine

import (
	"slices"
	"strings"
)

const (
	statusNotExecutable = 126
	statusNotFound      = 127
)

// runtimeMark precedes the reason in the messages of container runtimes.
const runtimeMark = "unable to start container process: "

// startFailures are parts of the reasons why a program can't be started, by the statuses that shells and Docker have for them.
var startFailures = []struct {
	part   string
	status int
}{
	{"executable file", statusNotFound},
	{notOnPath, statusNotFound},
	{"no such file or directory", statusNotFound},
	{"permission denied", statusNotExecutable},
	{"exec format error", statusNotExecutable},
	{"is a directory", statusNotExecutable},
}

// starts are the beginnings of reasons about programs: of runc, of crun, and of the agent.
var starts = []string{"exec: ", "exec /", "executable file ", "can't run "}

// notOnPath is in the agent's reason for a name that is in no folder of PATH.
const notOnPath = "not found in the container, on path"

// StartFailure returns the exit status for a program that can't be started, 1 for other failures, and the reason alone.
func StartFailure(err error) (status int, reason string) {
	reason = err.Error()
	if at := strings.LastIndex(reason, runtimeMark); at >= 0 {
		reason = reason[at+len(runtimeMark):]
	}
	text := strings.ToLower(reason)
	// The other reasons of runtimes are not about the program, such as a working directory that is missing.
	isStart := slices.ContainsFunc(starts, func(part string) bool { return strings.HasPrefix(text, part) })
	if !isStart && !strings.Contains(text, notOnPath) {
		return 1, reason
	}
	for _, failure := range startFailures {
		if strings.Contains(text, failure.part) {
			return failure.status, reason
		}
	}
	return 1, reason
}
