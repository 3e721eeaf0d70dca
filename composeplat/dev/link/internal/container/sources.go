//go:build !windows

package container

import (
	"crypto/rand"
	"fmt"
	"os"

	"composeplat/link/internal/record"
)

const sourceSuffix = ".source"

// A turn is the time in which one source is synced with the volume: the folders of a project on a machine.
type turn struct {
	Source string `json:"source"`
	// ID is empty for the first one.
	ID string `json:"turn"`
}

// takeTurn returns the ID of a source's turn: another one if another source was synced meanwhile. What a machine has saved
// about the volume in an earlier turn would make the changes of the other source those of the container.
func (a *agent) takeTurn(source string) string {
	known, isKnown := a.readTurn()
	if source == "" || isKnown && known.Source == source {
		return known.ID
	}
	next := turn{Source: source}
	if !isKnown || known.Source != "" {
		next.ID = rand.Text()
	}
	if err := a.saveTurn(next); err != nil {
		fmt.Fprintln(os.Stderr, "platform-agent: the next session takes the volume for that of another folder:", err)
		return rand.Text()
	}
	return next.ID
}

// readTurn returns the last turn, and whether it is known: that of a volume that no source had yet is.
func (a *agent) readTurn() (last turn, isKnown bool) {
	if len(a.markers) == 0 {
		a.lock.Lock()
		defer a.lock.Unlock()
		return a.turn, true
	}
	saved := record.Record(a.markers[0] + sourceSuffix)
	if !saved.Exists() {
		return turn{}, true
	}
	_, isKnown = saved.Load(&last)
	return last, isKnown
}

func (a *agent) saveTurn(next turn) error {
	if len(a.markers) > 0 {
		return record.Record(a.markers[0]+sourceSuffix).Save(next, nil)
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	a.turn = next
	return nil
}
