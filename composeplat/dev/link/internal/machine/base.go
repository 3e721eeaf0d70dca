package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"google.golang.org/protobuf/proto"

	"composeplat/link/internal/record"
)

// A base is what both sides last agreed upon. Without one, a sync is a first sync.
type base struct {
	head    baseHead
	content *core.Entry
}

type baseHead struct {
	Volume string            `json:"volume"`
	Remote string            `json:"remote"`
	Local  string            `json:"local"`
	Modes  map[string]uint32 `json:"modes"`
}

// recordOf is where something of a kind is kept for a folder or a file.
func recordOf(kind, state string, folder FolderConfig) record.Record {
	return record.Record(filepath.Join(state, nameFor(kind, folder)))
}

// nameFor makes a file name of a folder's two paths.
func nameFor(kind string, folder FolderConfig) string {
	sum := sha256.Sum256([]byte(folder.Remote + "\x00" + folder.Local))
	return kind + "-" + hex.EncodeToString(sum[:10])
}

// loadBase finds no base where it is damaged or of another volume: nothing is lost by a first sync.
func loadBase(state string, folder FolderConfig, volume string) *base {
	found := &base{}
	content, has := recordOf("base", state, folder).Load(&found.head)
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
	return recordOf("base", state, folder).Save(b.head, content)
}

// The cache has the digests of files by their stamps: without it they are read again.
func loadCache(state string, folder FolderConfig) *core.Cache {
	content, has := recordOf("cache", state, folder).Load(&struct{}{})
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
	return recordOf("cache", state, folder).Save(struct{}{}, content)
}

// A fileBase is what both sides of a single file last agreed upon; it holds for one life of the container.
type fileBase struct {
	Boot   string `json:"boot"`
	Digest string `json:"digest"`
	Mode   uint32 `json:"mode"`
	// Sent is what the container was about to be given: if it has that, it has changed nothing itself.
	Sent string `json:"sent,omitempty"`
}

// loadFileBase finds a base that knows nothing where there is none, or it is damaged or of a container before this one.
func loadFileBase(state string, folder FolderConfig, boot string) fileBase {
	var found fileBase
	if _, has := recordOf("file", state, folder).Load(&found); !has || found.Boot != boot {
		return fileBase{Boot: boot}
	}
	return found
}

func (b fileBase) save(state string, folder FolderConfig) error {
	return recordOf("file", state, folder).Save(b, nil)
}
