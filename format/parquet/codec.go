package parquet

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// maxPage is the size in bytes up to which a page may be much smaller compressed.
const maxPage = 32 << 20

// codecs are the compressions that are read, by their numbers.
var codecs = map[int64]func(dst, b []byte) ([]byte, error){
	0: func(_, b []byte) ([]byte, error) { return b, nil },
	1: func(dst, b []byte) ([]byte, error) { // Snappy
		if n, err := s2.DecodedLen(b); err != nil || n > len(dst) {
			return nil, fmt.Errorf("it is damaged, or has %d bytes", n)
		}
		return s2.Decode(dst, b)
	},
	2: func(dst, b []byte) ([]byte, error) {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		n, err := io.ReadFull(z, dst)
		return dst[:n], err
	},
	6: func(dst, b []byte) ([]byte, error) {
		z, err := zstandard()
		if err != nil {
			return nil, err
		}
		return z.DecodeAll(b, dst[:0]) // and no more than there is room for
	},
}

// zstandard returns the decoder of zstd, which keeps memory from page to page.
var zstandard = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(maxPage))
})

// unpackPage returns the bytes of a page, of which there are as many as its header says. It may keep them in room, which grows.
func unpackPage(codec int64, b []byte, size int64, room *[]byte) ([]byte, error) {
	decode := codecs[codec]
	if decode == nil {
		return nil, fmt.Errorf("compression %d is not read: write it with Snappy, gzip, zstd or none", codec)
	}
	if size < 0 || size > maxPage && size > deflation*int64(len(b)) {
		return nil, fmt.Errorf("a page of %d bytes has %d compressed: write smaller pages", size, len(b))
	}
	if codec != 0 && int64(cap(*room)) < size {
		*room = make([]byte, size)
	}
	out, err := decode((*room)[:min(size, int64(cap(*room)))], b)
	if err == nil && int64(len(out)) != size {
		err = fmt.Errorf("it has %d bytes, its header says %d", len(out), size)
	}
	if err != nil {
		return nil, fmt.Errorf("a page is damaged: %w", err)
	}
	return out, nil
}
