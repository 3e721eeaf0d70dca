//go:build !windows

package tree

import "composeplat/link/internal/beneath"

// A watchedPlace has the folder that was at the place of a Watch when it began to be watched.
type watchedPlace struct{ root *beneath.Folder }

// watchPlace begins to watch the folder that is at the place now. The lock must be held.
func (w *Watch) watchPlace() {
	w.forgetPlace()
	if root, err := w.open(""); err == nil {
		w.root = root
	}
	w.add("")
}

func (w *Watch) forgetPlace() {
	if w.root != nil {
		w.root.Close()
		w.root = nil
	}
}

// isElsewhere reports whether the place leads to another folder now. The system reports nothing of a folder above it that is
// renamed.
func (w *Watch) isElsewhere() bool {
	now, err := w.open("")
	if err != nil {
		return true
	}
	defer now.Close()
	return w.root == nil || !w.root.IsSame(now)
}
