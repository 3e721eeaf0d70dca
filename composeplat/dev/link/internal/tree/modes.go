package tree

import (
	"errors"
	"runtime"
	"syscall"

	"github.com/mutagen-io/mutagen/pkg/filesystem/behavior"
	"github.com/mutagen-io/mutagen/pkg/synchronization/core"

	"composeplat/link/internal/beneath"
)

// ProbeModes finds out whether the file system keeps permissions. On one that is not known, it creates a file for a
// moment, which is neither synced nor watched.
func (t *Tree) ProbeModes() {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.openRoot() == nil && t.root != nil {
		t.withoutModes = !KeepsModes(t.root)
	}
}

// KeepsModes reports whether permissions can be set in a folder.
func KeepsModes(folder *beneath.Folder) bool {
	if runtime.GOOS == "windows" {
		return false
	}
	keeps, _, err := behavior.PreservesExecutabilityByPath(folder.Path(), behavior.ProbeMode_ProbeModeProbe)
	if err != nil {
		// FAT refuses to set them. In a folder that may not be written, it makes no difference.
		return !errors.Is(err, syscall.EPERM)
	}
	return keeps
}

// HasModes reports whether the view of this folder has permissions.
func (t *Tree) HasModes() bool { return !t.withoutModes }

// clearExecutable makes all files equal that differ in a permission which the file system does not keep.
func clearExecutable(content *core.Entry) {
	Walk("", content, func(_ string, entry *core.Entry) {
		if entry.Executable {
			entry.Executable = false
		}
	})
}
