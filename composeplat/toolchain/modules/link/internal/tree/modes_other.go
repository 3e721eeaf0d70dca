//go:build !linux

package tree

import (
	"os"

	"github.com/mutagen-io/mutagen/pkg/filesystem"
)

// A modeSetter opens without following links, and so leaves alone what can't be read.
type modeSetter struct{ opener *filesystem.Opener }

func newModeSetter(root string) *modeSetter { return &modeSetter{filesystem.NewOpener(root)} }

func (m *modeSetter) close() { m.opener.Close() }

func (m *modeSetter) set(name string, mode uint32) error {
	file, _, err := m.opener.OpenFile(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if file, can := file.(*os.File); can {
		return file.Chmod(os.FileMode(mode))
	}
	return nil
}
