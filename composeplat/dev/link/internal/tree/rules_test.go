package tree

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"github.com/mutagen-io/mutagen/pkg/synchronization/core/ignore"
)

func link(target string) *core.Entry {
	return &core.Entry{Kind: core.EntryKind_SymbolicLink, Target: target}
}

// Empty parts of a target counted as folders that it goes down, so that it could climb as often again.
func TestLinksThatLeadOutAreNotCarried(t *testing.T) {
	for target, why := range map[string]string{
		"file": "", "../file": "", "../../file": "", ".././../file": "", "./folder/file": "", "..": "", "name..": "",
		"../../../file": LinkLeadsOut, "../..//../file": LinkLeadsOut, "d//../../home/.bashrc": linkClimbsLate, "k/../outside.txt": linkClimbsLate,
		"/etc/passwd": LinkLeadsOut, "": LinkLeadsOut, "../../.git/config": linkLeadsToGit, ".GIT/hooks": linkLeadsToGit, ".git": linkLeadsToGit,
		"C:/x": LinkLeadsOut, "..\\..\\x": LinkLeadsOut, "a\x00b": LinkLeadsOut, "caf\xe9": linkIsNotUnicode, "caf\u00e9": "",
	} {
		if reason := checkTarget("a/b/link", target); reason != why {
			t.Errorf("%q: %q, expected %q", target, reason, why)
		}
	}
	if checkTarget("link", "../x") != LinkLeadsOut || checkTarget("link", "./x") != "" {
		t.Error("at the top")
	}
}

// An agent that does not heed the rules wrote .git/hooks: the rules were applied to what was found here alone.
func TestRulesAreThoseOfThisEnd(t *testing.T) {
	view, err := scanned(t,
		&core.Change{New: folder("a", folder(".git", folder("hooks", folder("pre-commit", file()))))},
		&core.Change{Path: "b", New: folder("kept", file())},
		&core.Change{Path: "b/.git", New: file()},
		&core.Change{Path: "c", New: &core.Entry{Kind: core.EntryKind_Directory}},
		&core.Change{Path: "c/out", New: link("d//../../../home/.bashrc")},
		&core.Change{Path: "c/in", New: link("../b")},
		&core.Change{Path: "c/" + TemporaryPrefix + "x", New: file()},
	)
	must(t, err)
	kind := func(names ...string) string {
		entry := view.Content
		for _, name := range names {
			if entry = entry.Contents[name]; entry == nil {
				return "nothing"
			}
		}
		return entry.Kind.String()
	}
	for expected, path := range map[string][]string{
		"Untracked": {"a", ".git"}, "File": {"b", "kept"}, "Problematic": {"c", "out"}, "SymbolicLink": {"c", "in"},
		"nothing": {"a", ".git", "hooks"},
	} {
		if found := kind(path...); found != expected {
			t.Errorf("%v: %s, and not %s", path, found, expected)
		}
	}
	if kind("b", ".git") != "Untracked" {
		t.Error(kind("b", ".git"))
	}
}

// What comes below a folder that is ignored is ignored with it, unless a pattern brings it back.
func TestRulesOfFolders(t *testing.T) {
	rules, err := newRules([]string{"built/*", "!built/this", "gone"})
	must(t, err)
	tree := rules.restrict("", &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{
		"built": {Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{"this": file(), "that": file()}},
		"gone":  folder("file", file()),
	}})
	if tree.Contents["built"].Contents["this"].Kind != core.EntryKind_File ||
		tree.Contents["built"].Contents["that"].Kind != core.EntryKind_Untracked ||
		tree.Contents["gone"].Kind != core.EntryKind_Untracked {
		t.Fatal(tree)
	}
	if inside := rules.restrict("gone/deep/file", file()); inside.Kind != core.EntryKind_Untracked {
		t.Error(inside)
	}
	if inside := rules.restrict("built/this", file()); inside.Kind != core.EntryKind_File {
		t.Error(inside)
	}
}

func TestLinksHereThatLeadOutAreProblems(t *testing.T) {
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "d"), 0o755))
	must(t, os.Symlink("d//../../home", filepath.Join(root, "out")))
	must(t, os.Symlink(".", filepath.Join(root, "k")))
	must(t, os.Symlink("k/../outside.txt", filepath.Join(root, "winds")))
	view, err := planted(t, root).Scan(context.Background(), true)
	must(t, err)
	if view.Content.Contents["out"].Problem != linkClimbsLate || view.Content.Contents["winds"].Problem != linkClimbsLate ||
		view.Content.Contents["k"].Target != "." {
		t.Fatal(view.Content)
	}
}

// A link that is harmless by itself is not made where another one, which was here before, would lead it out.
func TestALinkThroughALinkThatLeadsOutIsNotMade(t *testing.T) {
	root := t.TempDir()
	must(t, os.Symlink("../outside", filepath.Join(root, "mine")))
	must(t, os.Mkdir(filepath.Join(root, "d"), 0o755))
	made := planted(t, root)
	_, err := made.Scan(context.Background(), true)
	must(t, err)
	outcome, err := made.Transition(context.Background(), []*core.Change{
		{Path: "through", New: link("mine/.bashrc")},
		{Path: "d/through", New: link("../mine")},
		{Path: "new", New: &core.Entry{Kind: core.EntryKind_Directory, Contents: map[string]*core.Entry{
			"through": link("../mine/x"), "fine": link("../d"),
		}}},
	}, Additions{})
	must(t, err)
	if len(outcome.Problems) != 3 || outcome.Results[0] != nil || outcome.Results[1] != nil {
		t.Fatal(outcome)
	}
	for name, there := range map[string]bool{"through": false, "d/through": false, "new/through": false, "new/fine": true} {
		if _, err := os.Lstat(filepath.Join(root, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARootThatIsALinkIsNotRead(t *testing.T) {
	top := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(top, "outside"), 0o755))
	must(t, os.MkdirAll(filepath.Join(top, "root"), 0o755))
	made := planted(t, filepath.Join(top, "root"))
	_, err := made.Scan(context.Background(), true)
	must(t, err)
	must(t, os.Remove(filepath.Join(top, "root")))
	must(t, os.Symlink("outside", filepath.Join(top, "root")))
	if view, err := made.Scan(context.Background(), true); err == nil {
		t.Fatal(view)
	}
}

// On a file system that folds case, Docker's own builds match names as they are written too.
func TestPatternsDistinguishCase(t *testing.T) {
	ignorer, err := NewIgnorer([]string{"Data", "*.Log"})
	must(t, err)
	for name, expected := range map[string]ignore.IgnoreStatus{
		"Data": ignore.IgnoreStatusIgnored, "data": ignore.IgnoreStatusNominal,
		"a.Log": ignore.IgnoreStatusIgnored, "a.log": ignore.IgnoreStatusNominal,
	} {
		if status, _ := ignorer.Ignore(name, false); status != expected {
			t.Errorf("%s: %v", name, status)
		}
	}
}
