package beneath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Place is a path below an open anchor folder. It is resolved again for each use, without symbolic links: a folder that
// was deleted and created again is found, and a link in its place is not followed.
type Place struct {
	anchor *Folder
	name   string
}

// Find returns the place of a path. Symbolic links are followed up to the folder within, and not below it; if within is
// empty, the whole path is trusted.
func Find(path, within string) (Place, error) {
	rest := ""
	if within != "" {
		below, err := filepath.Rel(within, path)
		if err != nil || !filepath.IsLocal(below) {
			return Place{}, fmt.Errorf("%s is not in %s", path, within)
		}
		if below != "." {
			rest = filepath.ToSlash(below)
		}
		path = within
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return findMissing(path, rest)
	}
	if err != nil {
		return Place{}, err
	}
	folder, last := filepath.Split(real)
	anchor, err := Open(folder)
	return Place{anchor, strings.Trim(last+"/"+rest, "/")}, err
}

// findMissing returns the place of a path that does not exist, below the nearest folder that does.
func findMissing(path, rest string) (Place, error) {
	folder, last := filepath.Split(filepath.Clean(path))
	above, err := Find(folder, "")
	if err != nil {
		return Place{}, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		above.Close()
		return Place{}, fmt.Errorf("%s is a link that leads nowhere", path)
	}
	above.name = strings.Trim(above.name+"/"+last+"/"+rest, "/")
	return above, nil
}

func (p Place) Close() error { return p.anchor.Close() }

// Below returns a place below this one.
func (p Place) Below(name string) Place {
	return Place{p.anchor, strings.TrimLeft(p.name+"/"+name, "/")}
}

// Name is the last part of the path.
func (p Place) Name() string {
	_, last := p.split()
	return last
}

// String is the path, for messages.
func (p Place) String() string { return filepath.Join(p.anchor.path, p.name) }

func (p Place) split() (folder, last string) {
	if at := strings.LastIndexByte(p.name, '/'); at >= 0 {
		return p.name[:at], p.name[at+1:]
	}
	return "", p.name
}

// Open opens the place as a folder. It does not exist if the anchor's path leads to another folder now.
func (p Place) Open() (*Folder, error) {
	if !p.anchor.IsThere() {
		return nil, &fs.PathError{Op: "open", Path: p.anchor.path, Err: fs.ErrNotExist}
	}
	folder, err := p.anchor.Folder(p.name)
	return folder, simplifyLinkError(err)
}

// Folder opens the parent folder of the place.
func (p Place) Folder() (*Folder, error) {
	folder, _ := p.split()
	return Place{p.anchor, folder}.Open()
}

// Make creates the place as a folder, with its parents.
func (p Place) Make(mode fs.FileMode) error {
	return simplifyLinkError(p.anchor.MakeFolders(p.name, mode))
}

// MakeFolder creates the parent folder of the place.
func (p Place) MakeFolder(mode fs.FileMode) error {
	folder, _ := p.split()
	return Place{p.anchor, folder}.Make(mode)
}

// ErrLink means that a path goes through a symbolic link or a file.
var ErrLink = errors.New("a symbolic link or a file is in place of a folder: links are not followed")

// simplifyLinkError replaces the kernel's several errors for symbolic links by ErrLink.
func simplifyLinkError(err error) error {
	if isLink(err) {
		return ErrLink
	}
	return err
}
