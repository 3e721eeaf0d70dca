package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mutagen-io/mutagen/pkg/synchronization/core"
	"google.golang.org/protobuf/proto"

	"composeplat/link/internal/wire"
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

// nameFor makes a file name of a folder's two paths.
func nameFor(kind string, folder FolderConfig) string {
	sum := sha256.Sum256([]byte(folder.Remote + "\x00" + folder.Local))
	return kind + "-" + hex.EncodeToString(sum[:10])
}

// loadBase finds no base where it is damaged or of another volume: nothing is lost by a first sync.
func loadBase(state string, folder FolderConfig, volume string) *base {
	raw, err := os.ReadFile(filepath.Join(state, nameFor("base", folder)))
	if err != nil || len(raw) < sha256.Size {
		return nil
	}
	if sum := sha256.Sum256(raw[sha256.Size:]); !bytes.Equal(sum[:], raw[:sha256.Size]) {
		return nil
	}
	in := bytes.NewReader(raw[sha256.Size:])
	found := &base{}
	if err := wire.Receive(in, &found.head); err != nil {
		return nil
	}
	if found.head.Volume != volume || found.head.Remote != folder.Remote || found.head.Local != folder.Local {
		return nil
	}
	archive := &core.Archive{}
	if proto.Unmarshal(raw[len(raw)-in.Len():], archive) != nil || archive.EnsureValid(true) != nil {
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
	var out bytes.Buffer
	out.Write(make([]byte, sha256.Size))
	if err := wire.Send(&out, b.head); err != nil {
		return err
	}
	out.Write(content)
	raw := out.Bytes()
	sum := sha256.Sum256(raw[sha256.Size:])
	copy(raw, sum[:])
	return writeWhole(filepath.Join(state, nameFor("base", folder)), raw)
}

// writeWhole leaves either the old file or the new one. After a power cut it may be neither: readers check a sum.
func writeWhole(path string, content []byte) error {
	half := path + ".half"
	if err := os.WriteFile(half, content, 0o600); err != nil {
		return err
	}
	return os.Rename(half, path)
}

func loadCache(state string, folder FolderConfig) *core.Cache {
	raw, err := os.ReadFile(filepath.Join(state, nameFor("cache", folder)))
	if err != nil {
		return nil
	}
	cache := &core.Cache{}
	if proto.Unmarshal(raw, cache) != nil || cache.EnsureValid() != nil {
		return nil
	}
	return cache
}

func saveCache(state string, folder FolderConfig, cache *core.Cache) error {
	raw, err := proto.Marshal(cache)
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(state, nameFor("cache", folder)), raw)
}

// A fileBase is what both sides of a single file last agreed upon; it holds for one life of the container.
type fileBase struct {
	Boot   string `json:"boot"`
	Digest string `json:"digest"`
	Mode   uint32 `json:"mode"`
	// Sent is what the container was about to be given: if it has that, it has changed nothing itself.
	Sent string `json:"sent,omitempty"`
}

func loadFileBase(state string, folder FolderConfig, boot string) (found fileBase) {
	raw, err := os.ReadFile(filepath.Join(state, nameFor("file", folder)))
	if err == nil {
		err = json.Unmarshal(raw, &found)
	}
	if err != nil || found.Boot != boot {
		return fileBase{Boot: boot}
	}
	return found
}

func (b fileBase) save(state string, folder FolderConfig) error {
	raw, err := json.Marshal(b)
	return errors.Join(err, writeWhole(filepath.Join(state, nameFor("file", folder)), raw))
}
