// Package record is a file that keeps data between runs. It owns replacing the file and detecting damage.
//
// It must not know what the data is.
package record

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"

	"composeplat/link/internal/wire"
)

// A Record is the path of its file, which holds a checksum of the rest, a head as JSON, and a body.
//
// The file is replaced as a whole, but not synced to disk: after a power failure it may be the old one, the new one, or
// damaged. A damaged file counts as none, so a Record must only hold data that can be rebuilt.
type Record string

// Save replaces the record. If it fails, for example because the disk is full, the old one stays.
func (r Record) Save(head any, body []byte) error {
	content, err := wire.Pack(head, body)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	return Replace(string(r), append(sum[:], content...), 0o600)
}

// Load reads the head and returns the body. It finds nothing if the file does not exist, can't be read, is damaged, or was
// not written by Save; the head may be partly set then, and must not be used.
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

// Exists reports whether there is a file, damaged or not.
func (r Record) Exists() bool {
	_, err := os.Lstat(string(r))
	return !errors.Is(err, fs.ErrNotExist)
}

// Drop removes the record, if there is one.
func (r Record) Drop() { _ = os.Remove(string(r)) }

// Replace writes a file atomically: other processes read either the old contents or the new ones.
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
