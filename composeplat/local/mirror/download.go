package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// maxFailures is how often a download is continued without any progress.
const maxFailures = 4

var (
	// retryPause is the pause before a download is continued, times the number of failures.
	retryPause = time.Second
	// stallTimeout is how long a registry may send nothing.
	stallTimeout = 30 * time.Second
)

// An opener asks for a blob from an offset on.
type opener func(ctx context.Context, offset int64) (*http.Response, error)

// downloads runs one download for each blob, however many requests want it. A download continues when nobody reads it any more:
// the node asks again.
type downloads struct {
	cache   *cache
	lock    sync.Mutex
	running map[string]*download
}

func newDownloads(store *cache) *downloads {
	return &downloads{cache: store, running: map[string]*download{}}
}

// join returns the running download of a blob, or starts its own.
func (d *downloads) join(digest string, open opener) (found *download, isOwn bool) {
	d.lock.Lock()
	defer d.lock.Unlock()
	found = d.running[digest]
	if isOwn = found == nil || found.hasFailed(); isOwn {
		made := newDownload(digest)
		made.users++
		d.running[digest] = made
		go func() {
			made.run(d.cache, open)
			d.lock.Lock()
			if d.running[digest] == made {
				delete(d.running, digest)
			}
			d.lock.Unlock()
			d.leave(made)
		}()
		found = made
	}
	found.users++
	return found, isOwn
}

// leave closes the file of a download that nobody uses any more.
func (d *downloads) leave(left *download) {
	d.lock.Lock()
	defer d.lock.Unlock()
	left.users--
	if left.users == 0 && left.file != nil {
		left.file.Close()
	}
}

// A download writes a blob into a file, which others read at the same time.
type download struct {
	digest  string
	users   int
	file    *os.File
	hash    hash.Hash
	lock    sync.Mutex
	changed *sync.Cond
	begun   bool
	ended   bool
	err     error
	size    int64 // -1 if the registry does not say it
	written int64
}

func newDownload(digest string) *download {
	made := &download{digest: digest, hash: sha256.New(), size: -1}
	made.changed = sync.NewCond(&made.lock)
	return made
}

func (d *download) hasFailed() bool {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.ended && d.err != nil
}

// waitUntilBegun returns the size of the blob, when the registry has answered.
func (d *download) waitUntilBegun() (int64, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	for !d.begun && !d.ended {
		d.changed.Wait()
	}
	if !d.begun {
		return 0, d.err
	}
	return d.size, nil
}

// copyTo copies the blob from an offset on, as it arrives.
func (d *download) copyTo(w io.Writer, offset int64) error {
	for {
		d.lock.Lock()
		for d.written <= offset && !d.ended {
			d.changed.Wait()
		}
		available, ended, err := d.written, d.ended, d.err
		d.lock.Unlock()
		if available > offset {
			if _, err := io.Copy(w, io.NewSectionReader(d.file, offset, available-offset)); err != nil {
				return err
			}
			offset = available
			continue
		}
		if ended {
			return err
		}
	}
}

// change changes the state of a download, and wakes up all who wait for it.
func (d *download) change(change func()) {
	d.lock.Lock()
	defer d.lock.Unlock()
	change()
	d.changed.Broadcast()
}

// run downloads the blob; what an earlier download left of it is not fetched again.
func (d *download) run(store *cache, open opener) {
	err := d.openFile(store.path(partial, d.digest))
	if err == nil {
		err = d.fetchAll(open)
	}
	if err == nil && !d.isComplete() {
		err = errWrongContent
	}
	if err == nil {
		// Names come to the disk before contents: after a lost power, the layer would be cut off.
		if err = d.file.Sync(); err != nil {
			err = localProblem(err)
		}
	}
	if isUseless(err) {
		os.Remove(store.path(partial, d.digest))
	}
	if err == nil {
		store.keep(d.digest)
	}
	d.change(func() { d.ended, d.err = true, err })
}

var errWrongContent = errors.New("the content does not match its digest")

// isUseless reports whether a download that failed like this can't be continued.
func isUseless(err error) bool {
	var answer *transport.Error
	tooLong := errors.As(err, &answer) && answer.StatusCode == http.StatusRequestedRangeNotSatisfiable
	return tooLong || errors.Is(err, errWrongContent)
}

func (d *download) openFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return localProblem(err)
	}
	d.file = file
	left, err := io.Copy(d.hash, file)
	if err != nil {
		return localProblem(err)
	}
	d.written = left
	return nil
}

func localProblem(err error) error {
	return problem{http.StatusInsufficientStorage, fmt.Sprintf("the image cache can't be written: %v", err)}
}

// isComplete reports whether the file already has all of the blob.
func (d *download) isComplete() bool {
	return hex.EncodeToString(d.hash.Sum(nil)) == strings.TrimPrefix(d.digest, "sha256:")
}

// fetchAll continues a broken transfer until the blob is complete, or the registry sends nothing more.
func (d *download) fetchAll(open opener) error {
	if d.written > 0 && d.isComplete() {
		d.change(func() { d.begun, d.size = true, d.written })
		return nil
	}
	for failures := 0; ; {
		before := d.written
		err := d.fetch(open)
		if err == nil {
			return nil
		}
		if d.written > before {
			failures = 0
		}
		failures++
		var final problem
		if !d.begun || errors.As(err, &final) || failures > maxFailures {
			return err
		}
		log.Printf("%s: broken off at %d of %d bytes: %v; continued", d.digest, d.written, d.size, err)
		time.Sleep(time.Duration(failures) * retryPause)
	}
}

// fetch asks for the rest of the blob once.
func (d *download) fetch(open opener) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	offset := d.written
	response, err := open(ctx, offset)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	size := response.ContentLength
	if response.StatusCode == http.StatusPartialContent && size >= 0 {
		size += offset
	}
	d.change(func() { d.begun, d.size = true, max(size, d.size) })
	stalled := time.AfterFunc(stallTimeout, func() { cancel(fmt.Errorf("nothing received in %v", stallTimeout)) })
	defer stalled.Stop()
	body := watchedBody{response.Body, stalled}
	if response.StatusCode == http.StatusOK && offset > 0 {
		// The registry sends all of it again.
		if _, err := io.CopyN(io.Discard, body, offset); err != nil {
			return err
		}
	}
	return d.receive(body)
}

// A watchedBody puts a timer off each time that something has come.
type watchedBody struct {
	io.Reader
	stalled *time.Timer
}

func (b watchedBody) Read(into []byte) (int, error) {
	count, err := b.Reader.Read(into)
	b.stalled.Reset(stallTimeout)
	return count, err
}

func (d *download) receive(body io.Reader) error {
	buffer := make([]byte, 128<<10)
	for {
		count, err := body.Read(buffer)
		if count > 0 {
			if _, err := d.file.WriteAt(buffer[:count], d.written); err != nil {
				return localProblem(err)
			}
			d.hash.Write(buffer[:count])
			d.change(func() { d.written += int64(count) })
		}
		if err == io.EOF {
			return d.checkSize()
		}
		if err != nil {
			return err
		}
	}
}

func (d *download) checkSize() error {
	if d.size >= 0 && d.written < d.size {
		return io.ErrUnexpectedEOF
	}
	return nil
}
