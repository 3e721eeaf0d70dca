package machine

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"google.golang.org/protobuf/proto"

	"composeplat/link/internal/record"
)

// A base is the last state that both sides had. Without one, a sync is a first sync.
type base struct {
	head    baseHead
	content *core.Entry
	// journal is how it differs from the base that was saved with the ID.
	journal journal
}

type baseHead struct {
	// ID is empty if the base is not the saved one with the journal.
	ID     string            `json:"id"`
	Volume string            `json:"volume"`
	Remote string            `json:"remote"`
	Local  string            `json:"local"`
	Modes  map[string]uint32 `json:"modes"`
}

// newRecord returns the record of a kind for a folder or a file.
func newRecord(kind, state string, folder FolderConfig) record.Record {
	return record.Record(filepath.Join(state, recordName(kind, folder)))
}

// recordName is the file name of a record, by the folder's two paths.
func recordName(kind string, folder FolderConfig) string {
	sum := sha256.Sum256([]byte(folder.Remote + "\x00" + folder.Local))
	return kind + "-" + hex.EncodeToString(sum[:10])
}

// loadBase returns nil if the base is damaged or of another volume: a first sync loses nothing.
func loadBase(state string, folder FolderConfig, volume string) *base {
	found := &base{}
	content, has := newRecord("base", state, folder).Load(&found.head)
	if !has || found.head.Volume != volume || found.head.Remote != folder.Remote || found.head.Local != folder.Local {
		return nil
	}
	archive := &core.Archive{}
	if proto.Unmarshal(content, archive) != nil || archive.EnsureValid(true) != nil {
		return nil
	}
	found.content = archive.Content
	if found.head.Modes == nil {
		found.head.Modes = map[string]uint32{}
	}
	changed, err := loadJournal(state, folder, found.head.ID)
	if err != nil {
		return nil
	}
	if found, err = changed.applyTo(found); err != nil {
		return nil
	}
	return found
}

func (b *base) save(state string, folder FolderConfig) error {
	if err := b.content.EnsureValid(true); err != nil {
		return fmt.Errorf("the new base is not valid: %w", err)
	}
	content, err := proto.Marshal(&core.Archive{Content: b.content})
	if err != nil {
		return err
	}
	return newRecord("base", state, folder).Save(b.head, content)
}

// The cache has the digests of files by their timestamps: without it, files are read again.
func loadCache(state string, folder FolderConfig) *core.Cache {
	content, has := newRecord("cache", state, folder).Load(&struct{}{})
	cache := &core.Cache{}
	if !has || proto.Unmarshal(content, cache) != nil || cache.EnsureValid() != nil {
		return nil
	}
	return cache
}

func saveCache(state string, folder FolderConfig, cache *core.Cache) error {
	content, err := proto.Marshal(cache)
	if err != nil {
		return err
	}
	return newRecord("cache", state, folder).Save(struct{}{}, content)
}

// A fileBase is the last state that both sides of a single file had. It is valid until the container restarts.
type fileBase struct {
	Boot   string `json:"boot"`
	Digest string `json:"digest"`
	Mode   uint32 `json:"mode"`
	// Sent is the digest that was last sent to the container: if the file has it, the container has not changed it.
	Sent string `json:"sent,omitempty"`
}

// loadFileBase returns an empty base if there is none, or if it is damaged or of an earlier start of the container.
func loadFileBase(state string, folder FolderConfig, boot string) fileBase {
	var found fileBase
	if _, has := newRecord("file", state, folder).Load(&found); !has || found.Boot != boot {
		return fileBase{Boot: boot}
	}
	return found
}

func (b fileBase) save(state string, folder FolderConfig) error {
	return newRecord("file", state, folder).Save(b, nil)
}

// findSource returns the name of the folders that are synced. It stays with other mounts of the same project.
func findSource(config *Config) (string, error) {
	path := filepath.Join(config.State, "source")
	id, err := os.ReadFile(path)
	if err != nil || len(id) == 0 {
		id = []byte(rand.Text())
		if err := record.Replace(path, id, 0o600); err != nil {
			return "", err
		}
	}
	tops := map[string]bool{}
	for _, folder := range config.Folders {
		tops[cmp.Or(folder.Within, folder.Local)] = true
	}
	sum := sha256.Sum256([]byte(strings.Join(append(slices.Sorted(maps.Keys(tops)), string(id)), "\x00")))
	return hex.EncodeToString(sum[:10]), nil
}
