package beneath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a folder with links that lead out of it and within it, and what they lead to.
func world(t *testing.T) (root *Folder, outside string) {
	t.Helper()
	top := t.TempDir()
	inside, outside := filepath.Join(top, "inside"), filepath.Join(top, "outside")
	for _, folder := range []string{filepath.Join(inside, "real/deep"), outside} {
		must(t, os.MkdirAll(folder, 0o755))
	}
	must(t, os.WriteFile(filepath.Join(outside, "file"), []byte("outside"), 0o600))
	must(t, os.WriteFile(filepath.Join(inside, "real/file"), []byte("inside"), 0o600))
	for name, target := range map[string]string{
		"out": "../outside", "file out": "../outside/file", "absolute": outside, "self": ".", "in": "real",
		"file in": "real/file", "winds": "self/../../outside", "round": "round",
	} {
		must(t, os.Symlink(target, filepath.Join(inside, name)))
	}
	root, err := Open(inside)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return root, outside
}

// A link was followed on the way to a file, or in its place, and so files outside were read and written.
func TestNothingIsOpenedThroughALink(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		root, outside := world(t)
		for _, name := range []string{
			"out/file", "file out", "absolute/file", "self/real/file", "in/file", "file in", "winds/file", "round",
			"..", "../outside/file", "real/../../outside/file", ".", "real/./file", "real//file", "/etc/passwd", "real/file\x00",
		} {
			for _, flags := range []int{os.O_RDONLY, os.O_WRONLY | os.O_CREATE, os.O_WRONLY | os.O_TRUNC} {
				if file, err := root.OpenFile(name, flags, 0o600); err == nil {
					t.Errorf("%q is opened with %o", name, flags)
					file.Close()
				}
			}
			if folder, err := root.Folder(name); err == nil {
				t.Errorf("%q is entered", name)
				folder.Close()
			}
			if root.MakeFolders(name+"/new", 0o700) == nil || root.SetMode(name, 0o777) == nil {
				t.Errorf("%q is changed", name)
			}
			if root.Rename("real/file", name+"/moved") == nil {
				t.Errorf("%q is moved into", name)
			}
		}
		content, err := os.ReadFile(filepath.Join(outside, "file"))
		must(t, err)
		info, err := os.Stat(filepath.Join(outside, "file"))
		must(t, err)
		if string(content) != "outside" || info.Mode().Perm() != 0o600 {
			t.Errorf("outside: %q %v", content, info.Mode())
		}
	})
}

func TestWhatLiesInAFolderIsOpened(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		root, _ := world(t)
		must(t, root.MakeFolders("a/b", 0o700))
		must(t, root.MakeFolders("a/b/c", 0o700))
		file, err := root.OpenFile("a/b/c/file", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
		must(t, err)
		must(t, file.Close())
		must(t, root.SetMode("a/b/c/file", 0o604))
		must(t, root.Rename("a/b/c/file", "real/deep/moved"))
		status, err := root.Stat("real/deep/moved")
		must(t, err)
		if status.Mode.Perm() != 0o604 || status.Size != 0 || status.Changed == 0 {
			t.Errorf("%v", status)
		}
		deep, err := root.Folder("real/deep")
		must(t, err)
		defer deep.Close()
		entries, err := deep.Entries()
		must(t, err)
		if len(entries) != 1 || entries[0].Name() != "moved" {
			t.Errorf("%v", entries)
		}
		if content, err := os.ReadDir(deep.Path()); err != nil || len(content) != 1 {
			t.Errorf("by its path: %v, %v", content, err)
		}
		must(t, deep.Remove("moved"))
		if _, err := root.Stat("real/deep/moved"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
}

func TestWhereLinksLead(t *testing.T) {
	root, _ := world(t)
	for target, inside := range map[string]bool{
		"../file": true, "../../file": false, "d//../../../outside": false, "./..//real/deep/x": true, "/etc": false, "": false,
		"../self/../outside": false, "../in/../file": true, "../out/file": false, "../absolute/x": false, "../winds": false,
		"../round": false, "not/there/../../../real": true, "not/there/../../../../x": false, "../self/self/real": true,
	} {
		if root.StaysInside("real", target) != inside {
			t.Errorf("%q is taken to lead inside: %v", target, !inside)
		}
	}
}

// A folder that is made again is found again; a link in its place, or on the way to it, is not followed.
func TestAPlaceIsFoundAnewWithoutLinks(t *testing.T) {
	top := t.TempDir()
	project, outside := filepath.Join(top, "project"), filepath.Join(top, "outside")
	must(t, os.MkdirAll(filepath.Join(project, "a/b"), 0o755))
	must(t, os.MkdirAll(filepath.Join(outside, "b"), 0o755))
	must(t, os.Symlink(project, filepath.Join(top, "by another name")))
	place, err := Find(filepath.Join(top, "by another name", "a/b"), filepath.Join(top, "by another name"))
	must(t, err)
	defer place.Close()
	opens := func() error {
		folder, err := place.Open()
		if err == nil {
			folder.Close()
		}
		return err
	}
	must(t, opens())
	must(t, os.RemoveAll(filepath.Join(project, "a")))
	if err := opens(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	must(t, place.Make(0o755))
	must(t, opens())
	must(t, os.RemoveAll(filepath.Join(project, "a")))
	must(t, os.Symlink("../outside", filepath.Join(project, "a")))
	if err := opens(); !errors.Is(err, ErrLink) {
		t.Error(err)
	}
	if err := place.Make(0o755); err == nil {
		t.Error("made through a link")
	}
	must(t, os.Remove(filepath.Join(project, "a")))
	must(t, os.Mkdir(filepath.Join(project, "a"), 0o755))
	must(t, os.Symlink("../../outside/b", filepath.Join(project, "a/b")))
	if err := opens(); !errors.Is(err, ErrLink) {
		t.Error(err)
	}
	if _, err := Find(filepath.Join(outside, "b"), project); err == nil {
		t.Error("found outside of what it is to be within")
	}
}

func TestThePlaceOfWhatIsNotThereYet(t *testing.T) {
	top := t.TempDir()
	place, err := Find(filepath.Join(top, "a/b/c"), "")
	must(t, err)
	defer place.Close()
	must(t, place.Make(0o755))
	if info, err := os.Stat(filepath.Join(top, "a/b/c")); err != nil || !info.IsDir() {
		t.Error(err)
	}
	must(t, os.Symlink("nowhere", filepath.Join(top, "dangles")))
	if _, err := Find(filepath.Join(top, "dangles"), ""); err == nil {
		t.Error("a link that leads nowhere is a place")
	}
}
