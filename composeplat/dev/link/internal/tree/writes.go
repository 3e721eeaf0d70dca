package tree

// An action is what happened to a file.
type action int

const (
	// made is a new file, which nothing says to be complete until it is closed.
	made action = iota
	written
	closed
	arrived
	gone
)

// writes are the files that changed since the last scan, as far as a notifier reports what happened to each.
type writes struct {
	files map[string]fileWrites
}

type fileWrites struct {
	isNew, isOpen bool
}

// record notes what happened to a file. A file that is gone may come back in a moment, as editors save; only one that was new
// itself, such as the temporary file of an editor, is done with.
func (w *writes) record(name string, what action) {
	if w.files == nil {
		w.files = map[string]fileWrites{}
	}
	file := w.files[name]
	switch what {
	case made:
		file = fileWrites{isNew: true, isOpen: true}
	case written:
		file.isOpen = true
	case closed, arrived:
		file.isOpen = false
	case gone:
		file.isOpen = !file.isNew
	}
	w.files[name] = file
}

// areFinished reports whether a few files changed, and all of them are complete.
func (w *writes) areFinished() bool {
	if len(w.files) == 0 || len(w.files) > maxFinished {
		return false
	}
	for _, file := range w.files {
		if file.isOpen {
			return false
		}
	}
	return true
}
