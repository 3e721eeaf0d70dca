package beneath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A Place is where a folder or a file is to be: below an anchor that was opened once and for all, found anew without
// links each time. So a folder that is deleted and made again is found again, and a link in its place is not followed.
type Place struct {
	anchor *Folder
	name   string
}

// Find makes the place of a path. Links are followed as far as the folder within, and no further; without one, the whole
// path is trusted.
func Find(path, within string) (Place, error) {
	rest := ""
	if within != "" {
		below, err := filepath.Rel(within, path)
		if err != nil || below == ".." || strings.HasPrefix(below, "../") {
			return Place{}, fmt.Errorf("%s is not in %s", path, within)
		}
		if below != "." {
			rest = below
		}
		path = within
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return missing(path, rest)
	}
	if err != nil {
		return Place{}, err
	}
	folder, last := filepath.Split(real)
	anchor, err := Open(folder)
	return Place{anchor, strings.Trim(last+"/"+rest, "/")}, err
}

// missing is the place of what is not there yet, in the nearest folder that is.
func missing(path, rest string) (Place, error) {
	folder, last := filepath.Split(strings.TrimRight(path, "/"))
	above, err := Find(strings.TrimRight(folder, "/")+"/", "")
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

// Below is a place in the folder of this one.
func (p Place) Below(name string) Place {
	return Place{p.anchor, strings.TrimLeft(p.name+"/"+name, "/")}
}

// Name is the last of the path, for messages and for names beside it.
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

// Open opens the folder of the place. It is not there where the anchor's path leads elsewhere now.
func (p Place) Open() (*Folder, error) {
	if !p.anchor.IsThere() {
		return nil, &fs.PathError{Op: "open", Path: p.anchor.path, Err: fs.ErrNotExist}
	}
	folder, err := p.anchor.Folder(p.name)
	return folder, plain(err)
}

// Folder opens the folder that holds the place.
func (p Place) Folder() (*Folder, error) {
	folder, _ := p.split()
	return Place{p.anchor, folder}.Open()
}

// Make makes the folder of the place, and those on the way.
func (p Place) Make(mode fs.FileMode) error { return plain(p.anchor.MakeFolders(p.name, mode)) }

// MakeFolder makes the folder that holds the place.
func (p Place) MakeFolder(mode fs.FileMode) error {
	folder, _ := p.split()
	return Place{p.anchor, folder}.Make(mode)
}

// ErrLink is why a path is not followed.
var ErrLink = errors.New("a link or a file is where a folder should be: links are not followed")

// plain says of a link what the kernel has many words for.
func plain(err error) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return ErrLink
	}
	return err
}
