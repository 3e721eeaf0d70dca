package tree

import "strings"

// report records a change that a watch of the whole tree has seen, in ignored folders too.
func (w *Watch) report(name string, isNew bool) {
	if mayBeShort(name) {
		w.touchAll()
		return
	}
	for above := parentPath(name); above != ""; above = parentPath(above) {
		if w.isSkipped(above, true) {
			return
		}
	}
	opened, err := w.open(name)
	isFolder := err == nil
	if isFolder {
		opened.Close()
	}
	switch {
	case w.isSkipped(name, isFolder):
	case !isFolder:
		w.touch(parentPath(name))
	case isNew:
		w.touch(parentPath(name))
		w.touchBelow(name)
	}
	// A folder counts as changed with each entry that comes or goes, which is reported itself.
}

// touchBelow records a new folder and those in it: the system reports none of what is in a folder that was moved.
func (w *Watch) touchBelow(folder string) {
	opened, err := w.open(folder)
	if err != nil {
		return
	}
	defer opened.Close()
	w.touch(folder)
	w.visitInside(folder, opened, w.touchBelow)
}

// mayBeShort reports whether a path may have the short form of a name, such as LONGNA~1, which Windows reports at times.
func mayBeShort(name string) bool {
	for {
		_, after, found := strings.Cut(name, "~")
		if !found {
			return false
		}
		if after != "" && after[0] >= '0' && after[0] <= '9' {
			return true
		}
		name = after
	}
}
