package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// What is written goes as blocks, which are compressed if that makes them smaller. Contents of files are mostly text, and the
// line to a cluster is often the slowest part of the way.

const (
	maxBlock = 64 << 10
	// minCompressed is the length from which blocks are compressed: smaller ones, such as keys that are typed, fit into a
	// packet anyway.
	minCompressed = 1 << 10
	// restBlocks is how many blocks are sent as they are after one that does not get smaller, such as one of an image.
	restBlocks = 16
	// isCompressed is the bit of the header, beside the length, that says so.
	isCompressed = 1 << 31
)

var encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(maxBlock),
		zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
})

// decoder never gives more than a block: the other end is not trusted.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxBlock), zstd.WithDecoderMaxWindow(maxBlock))
})

type blockWriter struct {
	to   io.Writer
	out  []byte
	rest int
}

func (b *blockWriter) Write(data []byte) (written int, err error) {
	for written < len(data) {
		block := data[written:min(written+maxBlock, len(data))]
		if err := b.send(block); err != nil {
			return written, err
		}
		written += len(block)
	}
	return written, nil
}

func (b *blockWriter) send(block []byte) error {
	head := uint32(len(block))
	b.out = append(b.out[:0], 0, 0, 0, 0)
	if b.rest == 0 && len(block) >= minCompressed {
		encoder, err := encoder()
		if err != nil {
			return err
		}
		b.out = encoder.EncodeAll(block, b.out)
		if length := len(b.out) - 4; length < len(block)-len(block)/8 {
			head = uint32(length) | isCompressed
		} else {
			b.out, b.rest = b.out[:4], restBlocks
		}
	} else if b.rest > 0 {
		b.rest--
	}
	if head&isCompressed == 0 {
		b.out = append(b.out, block...)
	}
	binary.BigEndian.PutUint32(b.out, head)
	_, err := b.to.Write(b.out)
	return err
}

type blockReader struct {
	from        io.Reader
	in, decoded []byte
	// left is what of the last block has not been read yet.
	left []byte
}

func (b *blockReader) Read(into []byte) (int, error) {
	if len(b.left) == 0 {
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	n := copy(into, b.left)
	b.left = b.left[n:]
	return n, nil
}

func (b *blockReader) next() error {
	var header [4]byte
	if _, err := io.ReadFull(b.from, header[:]); err != nil {
		return err
	}
	head := binary.BigEndian.Uint32(header[:])
	length := head &^ isCompressed
	if length == 0 || length > maxBlock {
		return fmt.Errorf("a block of %d bytes is not allowed", length)
	}
	if b.in == nil {
		b.in = make([]byte, maxBlock)
	}
	b.left = b.in[:length]
	if _, err := io.ReadFull(b.from, b.left); err != nil {
		b.left = nil
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if head&isCompressed == 0 {
		return nil
	}
	decoder, err := decoder()
	if err != nil {
		return err
	}
	b.decoded, err = decoder.DecodeAll(b.left, b.decoded[:0])
	b.left = b.decoded
	if err == nil && len(b.decoded) == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		b.left = nil
		return fmt.Errorf("a block can't be decompressed: %w", err)
	}
	return nil
}
