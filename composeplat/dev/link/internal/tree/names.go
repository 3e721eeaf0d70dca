package tree

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
)

// forbidden are the characters that no name may have on the file systems of Windows, beside those below a space.
const forbidden = `<>:"/\|?*`

// checkName returns why the file systems of Windows don't take a name, or nothing. They drop dots and spaces at its end,
// so that another file would be written.
func checkName(name string) string {
	hasForbidden := strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || strings.ContainsRune(forbidden, r) })
	switch {
	case hasForbidden:
		return "a name with a character that the file system here does not allow: one of " + forbidden
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "a name with a dot or a space at its end, which the file system here would drop"
	case isDevice(name):
		return "a name that Windows keeps for a device"
	}
	return ""
}

// isDevice reports whether Windows opens a device by this name, whatever its extension.
func isDevice(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, number := stem[:min(3, len(stem))], []rune(stem[min(3, len(stem)):])
	return (port == "COM" || port == "LPT") && len(number) == 1 && strings.ContainsRune("123456789\u00b9\u00b2\u00b3", number[0])
}

// temporaryName is a name of the engine's own, which is another one each time: a problem would seem to be a new one.
var temporaryName = regexp.MustCompile(regexp.QuoteMeta(TemporaryPrefix) + `[^\s:/]*`)

// explainNames gives problems a cause if the file system has another entry under the name.
func (t *Tree) explainNames(problems []*core.Problem) {
	for _, problem := range problems {
		problem.Error = temporaryName.ReplaceAllString(problem.Error, "a temporary file")
		if other := t.findFolded(problem.Path); other != "" {
			problem.Error = fmt.Sprintf(
				"its name differs from that of %s in case only, and the file system here has one file for both: rename one", other)
		}
	}
}

// findFolded returns the path of the entry that is found by a name without having it, or nothing.
func (t *Tree) findFolded(name string) string {
	if name == "" {
		return ""
	}
	if _, err := t.root.Stat(name); err != nil {
		return ""
	}
	folder, err := t.root.Folder(parentPath(name))
	if err != nil {
		return ""
	}
	defer folder.Close()
	entries, err := folder.Entries()
	if err != nil {
		return ""
	}
	other := ""
	for _, entry := range entries {
		if entry.Name() == path.Base(name) {
			return ""
		}
		if strings.EqualFold(entry.Name(), path.Base(name)) {
			other = Join(parentPath(name), entry.Name())
		}
	}
	return other
}
