//go:build !windows

package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFirstSyncTakesLocalAndDeletesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("both"), "local")
	write(t, w.there("both"), "image")
	write(t, w.here("sub/mine"), "mine")
	write(t, w.there("other/theirs"), "theirs")
	w.startSynced()
	equal(t, "local", read(w.there("both")))
	equal(t, "mine", read(w.there("sub/mine")))
	equal(t, "theirs", read(w.here("other/theirs")))
	equal(t, 0, w.count("conflict"))
	equal[any](t, true, w.all("synced")[0]["first"])
}

// A fresh clone met a volume of an earlier session, and got a NAME.conflict-… beside each file that differed.
func TestAFreshCloneIsNotFilledWithWhatAnOlderVolumeHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	marker := w.usedVolume()
	for number := range 30 {
		write(t, w.here(fmt.Sprintf("src/%d", number)), "local")
		write(t, w.there(fmt.Sprintf("src/%d", number)), fmt.Sprint("edited there ", number))
	}
	write(t, w.here("same"), "same")
	write(t, w.there("same"), "same")
	write(t, w.there("only there"), "x")
	must(t, os.Symlink("same", w.here("link")))
	must(t, os.Symlink("only there", w.there("link")))
	w.hold(nil, marker)
	w.startSynced()
	w.arrives(w.there("src/7"), "local")
	w.arrives(w.here("only there"), "x")
	equal(t, 1, w.count("replaced"))
	event := w.all("replaced")[0]
	equal[any](t, 31.0, event["files"])
	kept := event["kept_as"].(string)
	equal(t, true, strings.HasPrefix(kept, w.config.State+"/"))
	equal(t, "edited there 7", read(filepath.Join(kept, "src/7")))
	equal(t, "only there\n", read(filepath.Join(kept, "link.link")))
	equal(t, 0, w.count("conflict"))
	entries, err := os.ReadDir(w.here("src"))
	must(t, err)
	equal(t, 30, len(entries))
	// It is reported once, and not again by a session that shares the history.
	w.stop()
	w.hold(nil, marker)
	w.startSynced()
	equal(t, 1, w.count("replaced"))
}

// Two clones of a project took turns with one volume: the second turn of the first one brought it the files of the other.
func TestAnotherCloneInBetweenChangesNothingHere(t *testing.T) {
	t.Parallel()
	for _, hasVolume := range []bool{true, false} {
		t.Run(fmt.Sprint("volume ", hasVolume), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var markers []string
			if hasVolume {
				markers = []string{filepath.Join(w.root, "marker")}
				write(t, markers[0], "volume\n")
			}
			w.hold(nil, markers...)
			takeTurns(t, w, markers)
		})
	}
}

func takeTurns(t *testing.T, w *world, markers []string) {
	first, second := w.local, filepath.Join(w.root, "clone")
	conf := filepath.Join(w.root, "image", "conf")
	turn := func(local string) {
		w.local = local
		w.config.Folders = []FolderConfig{
			{Local: local, Remote: w.there(""), Within: local},
			{Local: filepath.Join(local, "conf"), Remote: conf, Within: local, File: true},
		}
		w.startSynced()
		time.Sleep(time.Second)
		w.stop()
	}
	must(t, os.Mkdir(filepath.Dir(conf), 0o755))
	for _, local := range []string{first, second} {
		write(t, filepath.Join(local, "same"), "same")
		write(t, filepath.Join(local, "code"), "of "+local)
		write(t, filepath.Join(local, "conf"), "of "+local)
	}
	write(t, filepath.Join(first, "alone"), "x")
	turn(first)
	turn(second)
	must(t, os.Remove(filepath.Join(second, "alone")))
	if len(markers) > 0 {
		w.hold(nil, markers...)
	}
	turn(second)
	w.goes(w.there("alone"))
	turn(first)
	for _, name := range []string{"code", "conf"} {
		equal(t, "of "+first, read(filepath.Join(first, name)))
		equal(t, "of "+second, read(filepath.Join(second, name)))
	}
	equal(t, "x", read(filepath.Join(first, "alone")))
	equal(t, "of "+first, read(w.there("code")))
	equal(t, "of "+first, read(conf))
	// A turn of the same one continues where it ended.
	must(t, os.Remove(filepath.Join(first, "same")))
	turn(first)
	w.goes(w.there("same"))
	w.goes(filepath.Join(first, "same"))
}

func TestFirstSyncMarksTheVolumeUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	marker := filepath.Join(w.root, "marker")
	write(t, marker, "volume\n")
	w.hold(nil, marker)
	w.startSynced()
	w.arrives(marker+".used", "")
}

func TestChangesGoBothWays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("old/name"), "content")
	write(t, w.here("gone"), "x")
	write(t, w.here("gone there"), "x")
	w.startSynced()
	write(t, w.here("new/deep/file"), "from here")
	write(t, w.there("made/there"), "from there")
	w.arrives(w.there("new/deep/file"), "from here")
	w.arrives(w.here("made/there"), "from there")
	must(t, os.Remove(w.here("gone")))
	must(t, os.Remove(w.there("gone there")))
	must(t, os.Rename(w.here("old"), w.here("moved")))
	w.goes(w.there("gone"))
	w.goes(w.here("gone there"))
	w.arrives(w.there("moved/name"), "content")
	w.goes(w.there("old"))
	write(t, w.here("moved/name"), "changed after the move")
	w.arrives(w.there("moved/name"), "changed after the move")
	write(t, w.there("new/deep/file"), "changed there")
	w.arrives(w.here("new/deep/file"), "changed there")
}

func TestModesGoBothWays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("secret"), "s")
	write(t, w.here("run"), "r")
	must(t, os.Chmod(w.here("secret"), 0o640))
	must(t, os.Chmod(w.here("run"), 0o755|os.ModeSetuid))
	must(t, os.Mkdir(w.here("folder"), 0o710))
	w.startSynced()
	mode := func(path string) string {
		info, err := os.Lstat(path)
		if err != nil {
			return err.Error()
		}
		return info.Mode().String()
	}
	equal(t, "-rw-r-----", mode(w.there("secret")))
	equal(t, "-rwxr-xr-x", mode(w.there("run")))
	equal(t, "drwx--x---", mode(w.there("folder")))
	must(t, os.Chmod(w.here("secret"), 0o604))
	w.eventually("the mode goes there", func() bool { return mode(w.there("secret")) == "-rw----r--" })
	must(t, os.Chmod(w.there("folder"), 0o770))
	must(t, os.Chmod(w.there("secret"), 0o744))
	w.eventually("the modes come here", func() bool {
		return mode(w.here("secret")) == "-rwxr--r--" && mode(w.here("folder")) == "drwxrwx---"
	})
	write(t, w.here("secret"), "changed")
	w.arrives(w.there("secret"), "changed")
	w.eventually("the mode stays", func() bool { return mode(w.there("secret")) == "-rwxr--r--" })
	equal(t, "urwxr-xr-x", mode(w.here("run")))
}

// One side changes the content of a file, the other one its mode: nothing is lost by taking both.
func TestModesAndContentsAreMerged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("run"), "1")
	write(t, w.here("keys"), "1")
	w.startSynced()
	w.stop()
	must(t, os.Chmod(w.here("run"), 0o755))
	write(t, w.there("run"), "2")
	write(t, w.here("keys"), "2")
	must(t, os.Chmod(w.there("keys"), 0o700))
	w.startSynced()
	for _, place := range []func(string) string{w.here, w.there} {
		w.arrives(place("run"), "2")
		w.arrives(place("keys"), "2")
		w.eventually("the modes are the same", func() bool {
			run, _ := os.Stat(place("run"))
			keys, _ := os.Stat(place("keys"))
			return run.Mode() == 0o755 && keys.Mode() == 0o700
		})
	}
	equal(t, 0, w.count("conflict"))
}

func TestLinksThatClimbAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("a/file"), "x")
	must(t, os.Symlink("../a/file", w.here("a/inside")))
	must(t, os.Symlink("../../outside", w.here("a/climbs")))
	must(t, os.Symlink("/etc/passwd", w.there("absolute")))
	w.startSynced()
	target, err := os.Readlink(w.there("a/inside"))
	must(t, err)
	equal(t, "../a/file", target)
	w.eventually("problems", func() bool { return w.count("problem") == 2 })
	w.goes(w.there("a/climbs"))
	w.goes(w.here("absolute"))
	must(t, os.Remove(w.here("a/climbs")))
	w.eventually("solved", func() bool { return w.count("resolved") == 1 })
	equal[any](t, "a/climbs", w.all("resolved")[0]["path"])
}

// A container can make problems without end; the first are reported, and the number of the others.
func TestSoManyProblemsAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for number := range maxProblems + 50 {
		must(t, os.Symlink("/etc/passwd", w.there(fmt.Sprint(number))))
	}
	w.startSynced()
	w.eventually("problems", func() bool { return w.count("problem") == maxProblems+1 })
	found := false
	for _, event := range w.all("problem") {
		found = found || event["reason"] == "50 more files and links can't be synced"
	}
	equal(t, true, found)
}

// A conflict of each of many paths was reported, and a container can create any number of them.
func TestSoManyConflictsAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for number := range maxProblems + 50 {
		write(t, w.here(fmt.Sprint("both/", number)), "base")
		write(t, w.here(fmt.Sprint("thing", number)), "a file")
		write(t, w.there(fmt.Sprint("thing", number, "/inside")), "a folder")
	}
	w.startSynced()
	w.eventually("conflicts", func() bool { return w.count("conflict") == maxProblems+1 })
	equal[any](t, 50.0, w.all("conflict")[maxProblems]["more"])
	w.setBroken(true)
	for number := range maxProblems + 30 {
		write(t, w.here(fmt.Sprint("both/", number)), "mine")
		write(t, w.there(fmt.Sprint("both/", number)), "theirs")
	}
	w.setBroken(false)
	w.eventually("copies", func() bool { return w.count("conflict") == 2*(maxProblems+1) })
	equal[any](t, 30.0, w.all("conflict")[2*maxProblems+1]["more"])
	equal[any](t, "*.conflict-*", w.all("conflict")[2*maxProblems+1]["kept_as"])
	w.eventually("all copies", func() bool { return len(entries(t, w.there("both"))) == 2*maxProblems+80 })
}

func TestConflictKeepsBoth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("file"), "base")
	w.startSynced()
	w.setBroken(true)
	write(t, w.here("file"), "mine")
	write(t, w.there("file"), "theirs")
	w.setBroken(false)
	w.arrives(w.there("file"), "mine")
	w.eventually("a conflict", func() bool { return w.count("conflict") == 1 })
	kept := w.all("conflict")[0]["kept_as"].(string)
	equal(t, true, strings.HasPrefix(kept, "file.conflict-"))
	w.arrives(w.there(kept), "theirs")
	w.arrives(w.here(kept), "theirs")
	equal(t, "mine", read(w.here("file")))
}

func TestChangeWinsOverDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("one"), "base")
	write(t, w.here("two"), "base")
	w.startSynced()
	w.setBroken(true)
	must(t, os.Remove(w.here("one")))
	write(t, w.there("one"), "changed there")
	must(t, os.Remove(w.there("two")))
	write(t, w.here("two"), "changed here")
	w.setBroken(false)
	w.arrives(w.here("one"), "changed there")
	w.arrives(w.there("two"), "changed here")
}

func TestFileAgainstFolderIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("thing"), "a file")
	write(t, w.there("thing/inside"), "a folder")
	w.startSynced()
	w.eventually("a conflict", func() bool { return w.count("conflict") == 1 })
	equal(t, "a file", read(w.here("thing")))
	equal(t, "a folder", read(w.there("thing/inside")))
}

func TestManyDeletionsThereAreNotDoneHere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for number := range 120 {
		write(t, w.here(fmt.Sprintf("d/%d", number)), fmt.Sprint(number))
	}
	w.startSynced()
	// All at once: a few that were seen by themselves would be done here.
	must(t, os.Rename(w.there("d"), filepath.Join(t.TempDir(), "d")))
	w.eventually("the guard", func() bool { return w.count("sync-stopped") == 1 })
	equal[any](t, 120.0, w.all("sync-stopped")[0]["deletions"])
	equal(t, "7", read(w.here("d/7")))
	write(t, w.here("later"), "x")
	time.Sleep(300 * time.Millisecond)
	w.goes(w.there("later"))
}

func TestManyMovesThereAreDoneHere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for number := range 120 {
		write(t, w.here(fmt.Sprintf("d/%d", number)), fmt.Sprint(number))
	}
	w.startSynced()
	must(t, os.Rename(w.there("d"), w.there("e")))
	w.arrives(w.here("e/7"), "7")
	w.goes(w.here("d"))
}

func TestALostRootDeletesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("only"), "x")
	w.startSynced()
	must(t, os.Rename(w.there(""), filepath.Join(w.root, "elsewhere")))
	w.eventually("the guard", func() bool { return w.count("sync-stopped") == 1 })
	equal(t, "x", read(w.here("only")))
}

// A build that deletes its folder and makes it again ended the sync, with a message that the container had deleted its files.
func TestAFolderThatIsMadeAgainHereIsSynced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("old"), "x")
	write(t, w.here("both"), "x")
	w.startSynced()
	must(t, os.RemoveAll(w.here("")))
	w.eventually("a problem", func() bool { return w.count("problem") == 1 })
	equal(t, "x", read(w.there("old")))
	must(t, os.Mkdir(w.here(""), 0o755))
	write(t, w.here("both"), "y")
	write(t, w.here("new"), "x")
	w.arrives(w.there("both"), "y")
	w.arrives(w.there("new"), "x")
	w.goes(w.there("old"))
	write(t, w.there("later"), "x")
	w.arrives(w.here("later"), "x")
	equal(t, 0, w.count("sync-stopped"))
	equal(t, 1, w.count("resolved"))
}

func TestIgnoredIsTouchedOnNeitherSide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Folders[0].Ignores = []string{"", "# comment", "**/*.pyc", ".git", "keep/*", "!keep/this"}
	write(t, w.here("src/a.pyc"), "here")
	write(t, w.there("src/b.pyc"), "there")
	write(t, w.here("src/a.py"), "source")
	write(t, w.here(".git/HEAD"), "x")
	write(t, w.here("keep/this"), "this")
	write(t, w.here("keep/that"), "that")
	w.startSynced()
	equal(t, "source", read(w.there("src/a.py")))
	equal(t, "this", read(w.there("keep/this")))
	w.goes(w.there("src/a.pyc"))
	w.goes(w.here("src/b.pyc"))
	w.goes(w.there(".git"))
	w.goes(w.there("keep/that"))
	// A folder that is deleted here keeps what is ignored there, and nothing else.
	must(t, os.RemoveAll(w.here("src")))
	w.goes(w.there("src/a.py"))
	equal(t, "there", read(w.there("src/b.pyc")))
	equal(t, 0, w.count("conflict"))
}

func TestTheBaseOutlivesTheProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	marker := filepath.Join(w.root, "marker")
	write(t, marker, "volume\n")
	write(t, w.here("deleted here"), "x")
	write(t, w.here("deleted there"), "x")
	write(t, w.here("stays"), "x")
	w.hold(nil, marker)
	w.startSynced()
	w.stop()
	w.hold(nil, marker)
	must(t, os.Remove(w.here("deleted here")))
	must(t, os.Remove(w.there("deleted there")))
	w.startSynced()
	w.goes(w.there("deleted here"))
	w.goes(w.here("deleted there"))
	equal(t, "x", read(w.there("stays")))
	equal[any](t, false, w.all("synced")[1]["first"])
	// Another volume has another base: nothing is deleted then.
	w.stop()
	write(t, marker, "other\n")
	must(t, os.Remove(w.there("stays")))
	w.hold(nil, marker)
	w.startSynced()
	w.arrives(w.there("stays"), "x")
}

func TestEditsDuringACutArrive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("one"), "1")
	w.startSynced()
	w.eventually("the session", func() bool { return w.up.session.isAttached() })
	w.setBroken(true)
	write(t, w.here("one"), "2")
	write(t, w.there("two"), "3")
	w.eventually("lost", func() bool { return w.count("disconnected") >= 1 })
	w.setBroken(false)
	w.arrives(w.there("one"), "2")
	w.arrives(w.here("two"), "3")
	connected := w.all("connected")
	equal[any](t, true, connected[len(connected)-1]["reconnected"])
	equal[any](t, "same", connected[len(connected)-1]["session"])
}

func TestUnicodeAndCaseAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("Caf\u00e9"), "composed")
	write(t, w.here("Cafe\u0301"), "decomposed")
	write(t, w.here("README"), "upper")
	write(t, w.here("readme"), "lower")
	write(t, w.here("bad\xff"), "not UTF-8")
	w.startSynced()
	equal(t, "composed", read(w.there("Caf\u00e9")))
	equal(t, "decomposed", read(w.there("Cafe\u0301")))
	equal(t, "upper", read(w.there("README")))
	equal(t, "lower", read(w.there("readme")))
	w.eventually("a problem", func() bool { return w.count("problem") == 1 })
}

// Nothing in the folder was synced: the link could not be sent, nor saved.
func TestALinkWhoseTargetIsNotUnicodeIsAProblem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.here("before"), "1")
	must(t, os.Symlink("caf\xe9", w.here("local")))
	must(t, os.MkdirAll(w.there(""), 0o755))
	must(t, os.Symlink("caf\xe9", w.there("container")))
	w.startSynced()
	equal(t, "1", read(w.there("before")))
	w.eventually("problems", func() bool { return w.count("problem") == 2 })
	for _, found := range w.all("problem") {
		equal[any](t, "a link whose target is not UTF-8, which is not synced", found["reason"])
	}
	write(t, w.there("after"), "2")
	w.arrives(w.here("after"), "2")
	target, err := os.Readlink(w.there("container"))
	must(t, err)
	equal(t, "caf\xe9", target)
}

func TestFileThatChangesWhileReadArrivesInTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startSynced()
	big := strings.Repeat("0123456789abcdef", 1<<18)
	file, err := os.Create(w.here("growing"))
	must(t, err)
	for number := range 8 {
		_, err := file.WriteString(big[:len(big)/8-number])
		must(t, err)
		time.Sleep(30 * time.Millisecond)
	}
	must(t, file.Close())
	w.arrives(w.there("growing"), read(w.here("growing")))
	equal(t, 0, w.count("problem"))
}

func TestTheSameStampDoesNotHideAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startSynced()
	for number := range 30 {
		write(t, w.here("file"), fmt.Sprintf("%04d", number))
		time.Sleep(time.Duration(number) * 3 * time.Millisecond)
		write(t, w.here("file"), fmt.Sprintf("%04d", number+5000))
		w.arrives(w.there("file"), fmt.Sprintf("%04d", number+5000))
	}
}
