// Package beneath opens files below a folder, and nothing outside it. It owns resolving paths from the open folder, a
// component at a time, and refuses symbolic links in them.
//
// It must not know what is synced. It is apart so that no other package opens a path that the other end can influence.
// On Linux it uses the kernel's own resolution; on other systems Go's, which the tag "portable" selects for tests.
package beneath

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// maxLinks is how many links StaysInside follows before a chain of them counts as leading out.
const maxLinks = 40

// A Status is what a folder knows of an entry; of a symbolic link itself.
type Status struct {
	Mode fs.FileMode
	Size int64
	// Changed is the time of the last change of the contents, in nanoseconds.
	Changed int64
	// Number differs between a file and another one that takes its place; it is 0 if the system has none.
	Number uint64
}

// Timestamps are coarse: a file that was written this shortly before a scan may change again and keep its timestamp.
const (
	ClockGranularity = 20 * time.Millisecond
	// coarseGranularity is for file systems such as FAT, where timestamps are even seconds.
	coarseGranularity = 2 * time.Second
)

// Granularity is for how long after a timestamp another change may have the same.
func Granularity(stamp time.Time) time.Duration {
	if stamp.Nanosecond() == 0 {
		return coarseGranularity + ClockGranularity
	}
	return ClockGranularity
}

// splitPath splits a path below a folder. Nothing but names is allowed in it; the folder's own path is empty.
func splitPath(name string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	names := strings.Split(name, "/")
	for _, part := range names {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, separators) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
		}
	}
	return names, nil
}

// separators are the characters that no name may contain. On Windows, ':' separates a file from its other streams.
var separators = map[bool]string{false: "\x00", true: "\x00\\:"}[runtime.GOOS == "windows"]

// MakeFolders creates a folder and its parents, unless they exist.
func (f *Folder) MakeFolders(name string, mode fs.FileMode) error {
	names, err := splitPath(name)
	if err != nil {
		return err
	}
	for number := range names {
		err := f.MakeFolder(strings.Join(names[:number+1], "/"), mode)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// IsThere reports whether the folder's path still leads to it.
func (f *Folder) IsThere() bool {
	now, err := Open(f.path)
	if err != nil {
		return false
	}
	defer now.Close()
	return f.IsSame(now)
}

// StaysInside reports whether the target of a symbolic link in a folder below this one is below this one, through whatever
// other links there are. A name that does not exist is not a link.
func (f *Folder) StaysInside(folder, target string) bool {
	at, err := splitPath(folder)
	if err != nil || target == "" || strings.HasPrefix(target, "/") {
		return false
	}
	rest := strings.Split(target, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if len(at) == 0 {
				return false
			}
			at = at[:len(at)-1]
			continue
		}
		next := strings.Join(append(at[:len(at):len(at)], name), "/")
		inner, err := f.ReadLink(next)
		if err != nil {
			at = append(at[:len(at):len(at)], name)
			continue
		}
		if links++; links > maxLinks || strings.HasPrefix(inner, "/") || filepath.VolumeName(inner) != "" {
			return false
		}
		rest = append(strings.Split(inner, "/"), rest...)
	}
	return true
}
