package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/beneath"
)

func TestNamesThatWindowsRefuses(t *testing.T) {
	for name, why := range map[string]string{
		"file": "", "a b": "", ".env": "", "con": "device", "Con.txt": "device", "NUL": "device", "aux .c": "device", "com1": "device",
		"COM\u00b9.log": "device", "com10": "", "com": "", "console": "", "lpt9": "device", "lpt0": "", "conin$": "device",
		"a:b": "character", "a?": "character", "a\\b": "character", "a\x1fb": "character", "<x>": "character", "a|b*": "character", `"`: "character",
		"dot.": "dot or a space", "space ": "dot or a space", "...": "dot or a space", " front": "", "ä.ö": "",
	} {
		if found := checkName(name); why == "" && found != "" || !strings.Contains(found, why) {
			t.Errorf("%q: %q, expected %q", name, found, why)
		}
	}
}

// bare is a Tree of a folder whose file system keeps no permissions.
func bare(t *testing.T, root string) *Tree {
	t.Helper()
	made := planted(t, root)
	made.withoutModes = true
	return made
}

func TestRefusedNamesAreProblemsAndTheOthersArrive(t *testing.T) {
	source, root := t.TempDir(), t.TempDir()
	for _, name := range []string{"sub/fine", "sub/nul", "a:b", "deep/x./inside"} {
		put(t, source, name, name)
	}
	from, to := planted(t, source), bare(t, root)
	wanted := scan(t, from, true).Content
	scan(t, to, true)
	var changes []*core.Change
	for name, entry := range wanted.Contents {
		changes = append(changes, &core.Change{Path: name, New: entry})
	}
	outcome := transfer(t, from, to, changes...)
	found := map[string]bool{}
	for _, problem := range outcome.Problems {
		found[problem.Path] = true
	}
	if len(found) != 3 || !found["sub/nul"] || !found["a:b"] || !found["deep/x."] {
		t.Errorf("%v", outcome.Problems)
	}
	if contentOf(t, root, "sub/fine") != "sub/fine" || listed(scan(t, to, true)) != "deep Directory, sub Directory, sub/fine File" {
		t.Errorf("%q", listed(scan(t, to, true)))
	}
}

// A file that has such a name here already stays when it is changed there.
func TestANameThatIsHereIsNotRefused(t *testing.T) {
	source, root := t.TempDir(), t.TempDir()
	put(t, source, "a:b", "new")
	put(t, root, "a:b", "old")
	from, to := planted(t, source), bare(t, root)
	wanted, before := scan(t, from, true).Content, scan(t, to, true).Content
	outcome := transfer(t, from, to, &core.Change{Path: "a:b", Old: before.Contents["a:b"], New: wanted.Contents["a:b"]})
	if len(outcome.Problems) > 0 || contentOf(t, root, "a:b") != "new" {
		t.Errorf("%v", outcome.Problems)
	}
}

// The results stay in the order of the changes, although deletions are made first.
func TestDeletionsAreMadeFirst(t *testing.T) {
	source, root := t.TempDir(), t.TempDir()
	put(t, source, "README", "content")
	put(t, root, "readme", "content")
	from, to := planted(t, source), planted(t, root)
	wanted, before := scan(t, from, true).Content, scan(t, to, true).Content
	changes := []*core.Change{{Path: "README", New: wanted.Contents["README"]}, {Path: "readme", Old: before.Contents["readme"]}}
	if phases := inPhases(changes, nil); phases[0][0] != 1 || phases[1][0] != 0 {
		t.Errorf("%v", phases)
	}
	outcome := transfer(t, from, to, changes...)
	if len(outcome.Problems) > 0 || outcome.Results[0] == nil || outcome.Results[1] != nil {
		t.Errorf("%+v", outcome)
	}
}

// Where each name is its own, another one that differs in case is not the reason of a problem.
func TestAProblemElsewhereIsNotAboutCase(t *testing.T) {
	root := t.TempDir()
	put(t, root, "name", "x")
	put(t, root, "NAME", "y")
	side := planted(t, root)
	scan(t, side, true)
	for _, name := range []string{"NAME", "name", "Name", "", "missing/x"} {
		if other := side.findFolded(name); other != "" {
			t.Errorf("%q is taken for %q", name, other)
		}
	}
}

func TestWithoutModesNoneAreReportedOrSet(t *testing.T) {
	root := t.TempDir()
	put(t, root, "script", "x")
	must(t, os.Chmod(filepath.Join(root, "script"), 0o755))
	side := bare(t, root)
	view := scan(t, side, true)
	if len(modesOf(view)) > 0 || view.Content.Contents["script"].Executable || side.HasModes() {
		t.Errorf("%v", view)
	}
	refused, err := side.SetModes(map[string]uint32{"script": 0o600})
	must(t, err)
	info, err := os.Stat(filepath.Join(root, "script"))
	must(t, err)
	if len(refused) > 0 || info.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", refused, info.Mode())
	}
}

func TestTheFileSystemHereKeepsModes(t *testing.T) {
	root := t.TempDir()
	side := planted(t, root)
	side.ProbeModes()
	if entries, err := os.ReadDir(root); err != nil || len(entries) > 0 || !side.HasModes() {
		t.Errorf("%v %v", entries, side.HasModes())
	}
}

// A file with whole seconds may be on a file system that has no others: it is read again for two seconds.
func TestWholeSecondsProveNothingForAWhile(t *testing.T) {
	root := t.TempDir()
	side := planted(t, root)
	put(t, root, "file", "0000")
	stamp := time.Now().Truncate(time.Second)
	must(t, os.Chtimes(filepath.Join(root, "file"), stamp, stamp))
	scan(t, side, true)
	put(t, root, "file", "1111")
	must(t, os.Chtimes(filepath.Join(root, "file"), stamp, stamp))
	if view := scan(t, side, true); string(entryAt(view, "file").Digest) != string(digestOf("1111")) {
		t.Error("the change was not seen")
	}
	if beneath.Granularity(stamp) < 2*time.Second || beneath.Granularity(stamp.Add(1)) > time.Second {
		t.Error(beneath.Granularity(stamp), beneath.Granularity(stamp.Add(1)))
	}
}

// What is created in place of something else is checked too: all that is in the new folder is new.
func TestNamesInAFolderThatReplacesAFileAreChecked(t *testing.T) {
	source, root := t.TempDir(), t.TempDir()
	put(t, source, "name/lpt1.txt", "refused")
	put(t, source, "name/fine", "fine")
	put(t, root, "name", "a file")
	from, to := planted(t, source), bare(t, root)
	wanted, before := scan(t, from, true).Content, scan(t, to, true).Content
	outcome := transfer(t, from, to, &core.Change{Path: "name", Old: before.Contents["name"], New: wanted.Contents["name"]})
	if len(outcome.Problems) != 1 || outcome.Problems[0].Path != "name/lpt1.txt" {
		t.Errorf("%v", outcome.Problems)
	}
	if contentOf(t, root, "name/fine") != "fine" || listed(scan(t, to, true)) != "name Directory, name/fine File" {
		t.Errorf("%q", listed(scan(t, to, true)))
	}
}

// A problem of a name that is not there any more keeps its own reason.
func TestProblemsThatAreNotAboutNamesStay(t *testing.T) {
	root := t.TempDir()
	put(t, root, "file", "x")
	side := planted(t, root)
	scan(t, side, true)
	problems := []*core.Problem{{Path: "file", Error: "busy"}, {Path: "gone/file", Error: "no space"}, {Path: "", Error: "the root"}}
	side.explainNames(problems)
	for number, why := range []string{"busy", "no space", "the root"} {
		if problems[number].Error != why {
			t.Errorf("%v", problems[number])
		}
	}
}

// A folder that may not be written is not taken for one without permissions.
func TestAFolderThatIsNotThereIsNotProbed(t *testing.T) {
	side := planted(t, filepath.Join(t.TempDir(), "missing"))
	side.ProbeModes()
	if !side.HasModes() {
		t.Error("probed")
	}
}
