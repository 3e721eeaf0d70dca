package tree

import (
	"errors"
	"io"

	"github.com/mutagen-io/mutagen/pkg/filesystem"
	"github.com/mutagen-io/mutagen/pkg/synchronization/rsync"
)

// transmit sends contents as the engine does, but for files that have another size than in the last scan: the receiver would
// drop them, and a file that was small then may have grown by any amount.
func (t *Tree) transmit(paths []string, signatures []*rsync.Signature, receiver rsync.Receiver) error {
	root := t.root.Path()
	// The engine alone can end a receiver: it does so after no files.
	end := func() error { return rsync.Transmit(root, nil, nil, receiver) }
	if len(paths) != len(signatures) {
		return errors.Join(errors.New("the numbers of paths and signatures differ"), end())
	}
	opener := filesystem.NewOpener(root)
	defer opener.Close()
	engine := rsync.NewEngine()
	for i, path := range paths {
		var failed error
		send := func(transmission *rsync.Transmission) error {
			failed = receiver.Receive(transmission)
			return failed
		}
		last := &rsync.Transmission{Done: true}
		if err := t.transmitFile(opener, engine, path, signatures[i], send); err != nil {
			last.Error = err.Error()
		}
		if failed == nil {
			failed = receiver.Receive(last)
		}
		if failed != nil {
			return errors.Join(failed, end())
		}
	}
	return end()
}

func (t *Tree) transmitFile(opener *filesystem.Opener, engine *rsync.Engine, path string, signature *rsync.Signature,
	send func(*rsync.Transmission) error,
) error {
	file, metadata, err := opener.OpenFile(path)
	if err != nil {
		return err
	}
	defer file.Close()
	size := metadata.Size
	if known, has := t.knownSize(path); has && known != size {
		return errChanged
	}
	expected := size
	return engine.Deltify(io.LimitReader(file, int64(size)), signature, 0, func(operation *rsync.Operation) error {
		transmission := &rsync.Transmission{ExpectedSize: expected, Operation: operation}
		expected = 0
		return send(transmission)
	})
}

// knownSize returns the size of a file in the last scan.
func (t *Tree) knownSize(path string) (size uint64, has bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	known := t.cache.Entries[path]
	return known.GetSize(), known != nil
}
