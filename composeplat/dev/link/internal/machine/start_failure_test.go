package machine

import (
	"errors"
	"testing"
)

func TestAProgramThatCanNotBeStarted(t *testing.T) {
	t.Parallel()
	const runtime = `Internal error occurred: failed to exec in container: failed to start exec "0f": OCI runtime exec failed: ` +
		`exec failed: unable to start container process: `
	type failure struct {
		status int
		reason string
	}
	for text, expected := range map[string]failure{
		runtime + `exec: "a": executable file not found in $PATH`:                            {127, `exec: "a": executable file not found in $PATH`},
		runtime + `exec: "/a": stat /a: no such file or directory`:                           {127, `exec: "/a": stat /a: no such file or directory`},
		runtime + `exec: "/etc/hosts": permission denied`:                                    {126, `exec: "/etc/hosts": permission denied`},
		runtime + `exec /a: exec format error`:                                               {126, `exec /a: exec format error`},
		runtime + `chdir to cwd ("/a") set in config.json failed: no such file or directory`: {1, `chdir to cwd ("/a") set in config.json failed: no such file or directory`},
		"executable file 'a' not found in $PATH: No such file":                               {127, "executable file 'a' not found in $PATH: No such file"},
		"a not found in the container, on PATH /bin":                                         {127, "a not found in the container, on PATH /bin"},
		"can't run ./a: fork/exec ./a: permission denied":                                    {126, "can't run ./a: fork/exec ./a: permission denied"},
		"open /home/a/.kube/config: permission denied":                                       {1, "open /home/a/.kube/config: permission denied"},
		`unable to upgrade connection: container not found ("web")`:                          {1, `unable to upgrade connection: container not found ("web")`},
	} {
		status, reason := StartFailure(errors.New(text))
		equal(t, expected, failure{status, reason})
	}
}
