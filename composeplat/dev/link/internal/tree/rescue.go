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

// Save copies files of a side into another folder, under the same paths. It returns for each whether it had the digest;
// a file with other contents is not kept. The others are on the disk: they may be the last that is left of them.
func Save(from Side, folder *beneath.Folder, paths []string, digests [][]byte) ([]bool, error) {
	signatures := make([]*rsync.Signature, len(paths))
	for i := range signatures {
		signatures[i] = &rsync.Signature{}
	}
	saved := &savedFiles{folder: folder, sums: map[string][]byte{}}
	receiver, err := rsync.NewReceiver(folder.Path(), paths, signatures, saved)
	if err != nil {
		return nil, err
	}
	if err := from.Supply(paths, signatures, receiver); err != nil {
		return nil, errors.Join(ErrLost, err)
	}
	had := make([]bool, len(paths))
	var kept []string
	for i, name := range paths {
		if had[i] = bytes.Equal(saved.sums[name], digests[i]); had[i] {
			kept = append(kept, name)
		} else {
			_ = folder.Remove(name)
		}
	}
	flushFiles(folder, kept)
	return had, nil
}

// savedFiles is a Sinker that records the digests of the files.
type savedFiles struct {
	folder *beneath.Folder
	sums   map[string][]byte
}

func (r *savedFiles) Sink(name string) (io.WriteCloser, error) {
	if err := r.folder.MakeFolders(strings.TrimPrefix(path.Dir("/"+name), "/"), 0o700); err != nil {
		return nil, err
	}
	_ = r.folder.Remove(name)
	file, err := r.folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &hashedFile{file, sha256.New(), func(sum []byte) { r.sums[name] = sum }}, nil
}

// hashedFile calls onClose with the digest of what it has written: on a full disk, that is not all of the contents.
type hashedFile struct {
	file    *os.File
	hash    hash.Hash
	onClose func(sum []byte)
}

func (s *hashedFile) Write(content []byte) (int, error) {
	n, err := s.file.Write(content)
	s.hash.Write(content[:n])
	return n, err
}

func (s *hashedFile) Close() error {
	err := s.file.Close()
	if err == nil {
		s.onClose(s.hash.Sum(nil))
	}
	return err
}
