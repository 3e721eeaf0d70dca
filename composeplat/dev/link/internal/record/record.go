// Package record is a file in which something is kept from one run of a program to the next. It does not know what.
package record

import (
	"bytes"
	"crypto/sha256"
	"os"

	"composeplat/link/internal/wire"
)

// A Record is the path of its file. The file holds a sum of all that follows, a head as JSON, and then a body.
//
// It is replaced as a whole, and not synced: after a power cut it may be the old one, the new one, or neither. The sum
// tells, and what is torn is as if it were not there. So a Record must only hold what can be done without.
type Record string

// Save replaces what is kept. When it fails, for a disk that is full, say, the old one stays.
func (r Record) Save(head any, body []byte) error {
	content, err := wire.Pack(head, body)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	return Replace(string(r), append(sum[:], content...), 0o600)
}

// Load reads the head and gives the body. Nothing is found where there is no file, or none that can be read, or where it
// is torn, or was not made by Save: the head may then have been written to all the same, and is not to be used.
func (r Record) Load(head any) (body []byte, found bool) {
	raw, err := os.ReadFile(string(r))
	if err != nil || len(raw) < sha256.Size {
		return nil, false
	}
	content := raw[sha256.Size:]
	if sum := sha256.Sum256(content); !bytes.Equal(sum[:], raw[:sha256.Size]) {
		return nil, false
	}
	body, err = wire.Unpack(content, head)
	return body, err == nil
}

// Drop forgets what is kept, if there is anything.
func (r Record) Drop() { _ = os.Remove(string(r)) }

// Replace puts contents at a path: whoever reads there meanwhile finds the old file or the new one, and no half of it.
func Replace(path string, content []byte, mode os.FileMode) error {
	half := path + ".half"
	err := os.WriteFile(half, content, mode)
	if err == nil {
		err = os.Rename(half, path)
	}
	if err != nil {
		_ = os.Remove(half)
	}
	return err
}
