package tree

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
	"path"
	"strings"

	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"

	"composeplat/link/internal/beneath"
)

// Rescue saves files of a side in a folder of their own, under the paths that they have there, and says which of them
// really were what they were taken for.
func Rescue(from Side, folder *beneath.Folder, paths []string, digests [][]byte) ([]bool, error) {
	signatures := make([]*rsync.Signature, len(paths))
	for i := range signatures {
		signatures[i] = &rsync.Signature{}
	}
	saved := &rescued{folder: folder, sums: map[string][]byte{}}
	receiver, err := rsync.NewReceiver(folder.Path(), paths, signatures, saved)
	if err != nil {
		return nil, err
	}
	if err := from.Supply(paths, signatures, receiver); err != nil {
		return nil, errors.Join(ErrLost, err)
	}
	had := make([]bool, len(paths))
	for i, name := range paths {
		if had[i] = bytes.Equal(saved.sums[name], digests[i]); !had[i] {
			_ = folder.Remove(name)
		}
	}
	return had, nil
}

// rescued is a Sinker that remembers the sums of what came.
type rescued struct {
	folder *beneath.Folder
	sums   map[string][]byte
}

func (r *rescued) Sink(name string) (io.WriteCloser, error) {
	if err := r.folder.MakeFolders(strings.TrimPrefix(path.Dir("/"+name), "/"), 0o700); err != nil {
		return nil, err
	}
	_ = r.folder.Remove(name)
	file, err := r.folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &summed{file, sha256.New(), func(sum []byte) { r.sums[name] = sum }}, nil
}

// summed is a file that tells its sum when it is whole.
type summed struct {
	file *os.File
	hash hash.Hash
	tell func(sum []byte)
}

func (s *summed) Write(content []byte) (int, error) {
	s.hash.Write(content)
	return s.file.Write(content)
}

func (s *summed) Close() error {
	err := s.file.Close()
	if err == nil {
		s.tell(s.hash.Sum(nil))
	}
	return err
}
