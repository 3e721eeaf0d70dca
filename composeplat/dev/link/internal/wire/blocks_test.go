package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func text(length int) []byte {
	return []byte(strings.Repeat("def handler(request):\n    return respond(request)\n", length/50+1)[:length])
}

func noise(length int) []byte {
	random := rand.NewChaCha8([32]byte{1})
	data := make([]byte, length)
	_, _ = random.Read(data)
	return data
}

// written returns what goes over the line for some writes.
func written(t *testing.T, writes ...[]byte) []byte {
	var line bytes.Buffer
	writer := &blockWriter{to: &line}
	for _, data := range writes {
		if n, err := writer.Write(data); err != nil || n != len(data) {
			t.Fatalf("wrote %d of %d: %v", n, len(data), err)
		}
	}
	return line.Bytes()
}

func TestBlocks(t *testing.T) {
	for name, data := range map[string][]byte{
		"nothing": {}, "a byte": {7}, "short": text(minCompressed - 1), "text": text(5000), "noise": noise(5000),
		"a whole block": text(maxBlock), "many blocks": text(5*maxBlock + 1), "many of noise": noise(5*maxBlock + 1),
		"both": append(append(text(3*maxBlock), noise(3*maxBlock)...), text(30*maxBlock)...),
	} {
		got, err := io.ReadAll(&blockReader{from: bytes.NewReader(written(t, data))})
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(data), err)
		}
	}
}

func TestCompression(t *testing.T) {
	if length := len(written(t, text(maxBlock))); length > maxBlock/4 {
		t.Errorf("text of %d bytes takes %d", maxBlock, length)
	}
	if length := len(written(t, noise(maxBlock))); length != maxBlock+4 {
		t.Errorf("noise of %d bytes takes %d", maxBlock, length)
	}
	if length := len(written(t, text(100))); length != 104 {
		t.Errorf("a short block of 100 bytes takes %d", length)
	}
}

func TestBlocksAfterNoise(t *testing.T) {
	writes := [][]byte{noise(maxBlock)}
	for range restBlocks {
		writes = append(writes, text(maxBlock))
	}
	whole := len(written(t, writes...))
	if whole != (restBlocks+1)*(maxBlock+4) {
		t.Errorf("the blocks after noise take %d bytes", whole)
	}
	if more := len(written(t, append(writes, text(maxBlock))...)) - whole; more > maxBlock/4 {
		t.Errorf("the block after these takes %d bytes", more)
	}
}

func compressed(t *testing.T, data []byte) []byte {
	all, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return all.EncodeAll(data, nil)
}

func block(head uint32, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, head), body...)
}

func TestBlocksThatAreNotAllowed(t *testing.T) {
	bomb, empty := compressed(t, make([]byte, 1<<30)), compressed(t, nil)
	for name, sent := range map[string][]byte{
		"empty":          block(0, nil),
		"empty, packed":  block(isCompressed, nil),
		"packed nothing": block(uint32(len(empty))|isCompressed, empty),
		"too long":       block(maxBlock+1, noise(maxBlock+1)),
		"cut off":        block(100, noise(99)),
		"garbage":        block(100|isCompressed, noise(100)),
		"a bomb":         block(uint32(len(bomb))|isCompressed, bomb),
	} {
		got, err := io.ReadAll(&blockReader{from: bytes.NewReader(sent)})
		if err == nil || len(got) > 0 {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func FuzzBlocks(f *testing.F) {
	f.Add(block(3, []byte("abc")))
	f.Fuzz(func(t *testing.T, sent []byte) {
		got, _ := io.ReadAll(io.LimitReader(&blockReader{from: bytes.NewReader(sent)}, 1<<20))
		if len(got) > (len(sent)/4+1)*maxBlock {
			t.Fatalf("%d bytes of %d", len(got), len(sent))
		}
	})
}
