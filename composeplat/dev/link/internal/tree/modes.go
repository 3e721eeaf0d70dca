package tree

import (
	"crypto/rand"
	"errors"
	"iter"
	"maps"
	"os"
	"path"
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
	t.probeModes()
}

// ProbeModesInContainer is ProbeModes for a volume: whatever the file system, its mount translates names.
func (t *Tree) ProbeModesInContainer() {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.anyNames = true
	t.probeModes()
}

func (t *Tree) probeModes() {
	if t.openRoot() == nil && t.root != nil {
		t.withoutModes = !KeepsModes(t.root)
	}
}

// KeepsModes reports whether permissions can be set in a folder.
func KeepsModes(folder *beneath.Folder) bool {
	if runtime.GOOS == "windows" {
		return false
	}
	keeps, probed, err := behavior.PreservesExecutabilityByPath(folder.Path(), behavior.ProbeMode_ProbeModeProbe)
	if err != nil {
		// FAT refuses to set them. In a folder that may not be written, it makes no difference.
		return !errors.Is(err, syscall.EPERM)
	}
	return keeps && (!probed || canBeNotExecutable(folder))
}

// canBeNotExecutable reports whether a file loses its permission to be executed: SMB may have one fixed mode for all files.
func canBeNotExecutable(folder *beneath.Folder) bool {
	name := TemporaryPrefix + "mode-test-" + rand.Text()
	file, err := folder.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return true
	}
	defer func() { _ = folder.Remove(name) }()
	defer file.Close()
	if file.Chmod(0o600) != nil {
		return true
	}
	status, err := folder.Stat(name)
	return err != nil || status.Mode&0o111 == 0
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

// Modes are the permissions of files and folders, by path. They are kept by folder, so that with a change the next Modes
// share those of all other folders.
type Modes struct{ inside map[string]map[string]uint32 }

// Get returns the mode of a path, and whether it has one.
func (m Modes) Get(name string) (mode uint32, has bool) {
	mode, has = m.inside[parentPath(name)][path.Base(name)]
	return mode, has
}

// All yields each path with its mode.
func (m Modes) All() iter.Seq2[string, uint32] {
	return func(yield func(string, uint32) bool) {
		for folder, modes := range m.inside {
			for name, mode := range modes {
				if !yield(Join(folder, name), mode) {
					return
				}
			}
		}
	}
}

func (m Modes) paths() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range m.All() {
			if !yield(name) {
				return
			}
		}
	}
}

// Equal reports whether both have the same paths with the same modes.
func (m Modes) Equal(other Modes) bool {
	return maps.EqualFunc(m.inside, other.inside, maps.Equal[map[string]uint32, map[string]uint32])
}

// of returns the modes of the paths that a tree has, and how many they are.
func (m Modes) of(content *core.Entry) (of Modes, count int) {
	modes := map[string]uint32{}
	for name, mode := range m.All() {
		if EntryAt(content, name) != nil {
			modes[name] = mode
		}
	}
	return Modes{}.with(modes, nil), len(modes)
}

// with returns the modes after changes: those that are set are not gone.
func (m Modes) with(set map[string]uint32, gone []string) Modes {
	next := Modes{make(map[string]map[string]uint32, len(m.inside)+1)}
	maps.Copy(next.inside, m.inside)
	own := map[string]bool{}
	folder := func(name string) map[string]uint32 {
		if !own[name] {
			own[name] = true
			modes := make(map[string]uint32, len(next.inside[name])+1)
			maps.Copy(modes, next.inside[name])
			next.inside[name] = modes
		}
		return next.inside[name]
	}
	for _, name := range gone {
		delete(folder(parentPath(name)), path.Base(name))
	}
	for name, mode := range set {
		folder(parentPath(name))[path.Base(name)] = mode
	}
	for name := range own {
		if len(next.inside[name]) == 0 {
			delete(next.inside, name)
		}
	}
	return next
}
