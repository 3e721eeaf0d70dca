package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A cache keeps blobs and manifests by their digests, and the last known digest of each tag. When it is larger than its limit,
// the files that were unused for longest are deleted.
//
// Names of files are digests: nothing that a registry or a node says becomes a path.
type cache struct {
	folder string
	limit  int64
	lock   sync.Mutex
}

type manifest struct {
	digest    string
	mediaType string
	content   []byte
}

const (
	blobs     = "blobs"
	manifests = "manifests"
	tags      = "tags"
	partial   = "partial"
)

// abandonedAfter is how long a download that was broken off can be continued.
const abandonedAfter = 24 * time.Hour

func openCache(folder string, limit int64) (*cache, error) {
	for _, name := range []string{blobs, manifests, tags, partial} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
			return nil, err
		}
	}
	return &cache{folder: folder, limit: limit}, nil
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (c *cache) path(kind, digest string) string {
	return filepath.Join(c.folder, kind, strings.TrimPrefix(digest, "sha256:"))
}

// blob opens a blob, and notes that it was used.
func (c *cache) blob(digest string) (*os.File, fs.FileInfo, bool) {
	path := c.path(blobs, digest)
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, false
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, nil, false
	}
	touch(path)
	return file, info, true
}

// manifest reads a manifest: its type is the first line of the file.
func (c *cache) manifest(digest string) (manifest, bool) {
	if !isDigest(digest) {
		return manifest{}, false
	}
	path := c.path(manifests, digest)
	kept, err := os.ReadFile(path)
	if err != nil {
		return manifest{}, false
	}
	mediaType, content, found := bytes.Cut(kept, []byte("\n"))
	if !found || digestOf(content) != digest {
		os.Remove(path)
		return manifest{}, false
	}
	touch(path)
	return manifest{digest: digest, mediaType: string(mediaType), content: content}, true
}

func (c *cache) storeManifest(found manifest) {
	content := append([]byte(strings.Map(oneLine, found.mediaType)+"\n"), found.content...)
	c.write(c.path(manifests, found.digest), content)
}

func oneLine(letter rune) rune {
	if letter == '\n' {
		return -1
	}
	return letter
}

// rememberTag notes the digest of a tag, with the image's name for people who look into the cache.
func (c *cache) rememberTag(image, digest string) {
	c.write(c.path(tags, digestOf([]byte(image))), []byte(digest+" "+image+"\n"))
}

// digestOf returns the last known digest of a tag; empty if it is not known.
func (c *cache) digestOf(image string) string {
	content, err := os.ReadFile(c.path(tags, digestOf([]byte(image))))
	if err != nil {
		return ""
	}
	digest, _, _ := strings.Cut(string(content), " ")
	return digest
}

// write puts a file in place whole. The cache works without a file that can't be written.
func (c *cache) write(path string, content []byte) {
	staged, err := os.CreateTemp(filepath.Join(c.folder, partial), "staged-")
	if err == nil {
		_, err = staged.Write(content)
		err = errors.Join(err, staged.Close())
	}
	if err == nil {
		err = os.Rename(staged.Name(), path)
	}
	if err != nil {
		log.Printf("can't write to the cache: %v", err)
	}
}

// keep makes a blob of a download that is complete.
func (c *cache) keep(digest string) {
	if err := os.Rename(c.path(partial, digest), c.path(blobs, digest)); err != nil {
		log.Printf("can't keep a layer in the cache: %v", err)
	}
	c.trim()
}

func touch(path string) {
	now := time.Now()
	os.Chtimes(path, now, now)
}

// limit ---------------------------------------------------------------------------------------------------------------

type cachedFile struct {
	path string
	size int64
	used time.Time
}

// trim deletes the files that were unused for longest until the cache is within its limit, and downloads that nobody continued.
func (c *cache) trim() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, left := range list(filepath.Join(c.folder, partial)) {
		if time.Since(left.used) > abandonedAfter {
			os.Remove(left.path)
		}
	}
	files := append(list(filepath.Join(c.folder, blobs)), list(filepath.Join(c.folder, manifests))...)
	slices.SortFunc(files, func(a, b cachedFile) int { return a.used.Compare(b.used) })
	var size int64
	for _, file := range files {
		size += file.size
	}
	for _, file := range files {
		if size <= c.limit {
			return
		}
		os.Remove(file.path)
		size -= file.size
	}
}

func list(folder string) []cachedFile {
	entries, _ := os.ReadDir(folder)
	found := make([]cachedFile, 0, len(entries))
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			found = append(found, cachedFile{filepath.Join(folder, entry.Name()), info.Size(), info.ModTime()})
		}
	}
	return found
}
