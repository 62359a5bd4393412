// Package idx reads single tensors as MNIST's IDX files, compressed by gzip or not.
//
// A file is two zero bytes, the element type, the number of axes, the extents and the elements, all
// big-endian. Call [Read].
//
// Invariants: the extents are compared with the size of the file, or with what the file can hold
// compressed, before anything is allocated. Nothing follows the elements.
//
// Source: The MNIST database of handwritten digits (LeCun, Cortes, Burges); RFC 1952 for gzip.
package idx

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/elements"
)

// deflation is the number of bytes that one compressed byte stands for, at most.
const deflation = 1032

// dtypes are the format's codes of element types.
var dtypes = map[byte]tensor.DType{
	0x08: tensor.Uint8, 0x09: tensor.Int8, 0x0B: tensor.Int16, 0x0C: tensor.Int32, 0x0D: tensor.Float32, 0x0E: tensor.Float64,
}

// Read returns the tensor in the first size bytes of src, in memory of alloc.
func Read(src io.ReaderAt, size int64, alloc tensor.Allocator) (*tensor.Tensor, error) {
	t, err := open(bufio.NewReader(io.NewSectionReader(src, 0, size)), size, alloc)
	if err != nil {
		return nil, fmt.Errorf("read IDX: %w", err)
	}
	return t, nil
}

// open reads a file that is compressed if it begins so.
func open(src *bufio.Reader, size int64, alloc tensor.Allocator) (*tensor.Tensor, error) {
	if start, err := src.Peek(2); err != nil || string(start) != "\x1f\x8b" {
		return read(src, size, alloc)
	}
	z, err := gzip.NewReader(src)
	if err != nil {
		return nil, err
	}
	return read(z, deflation*size, alloc)
}

// read reads a file of at most so many bytes.
func read(src io.Reader, most int64, alloc tensor.Allocator) (*tensor.Tensor, error) {
	var start [4]byte
	if _, err := io.ReadFull(src, start[:]); err != nil {
		return nil, err
	}
	typ, ok := dtypes[start[2]]
	if start[0] != 0 || start[1] != 0 || !ok {
		return nil, errors.New("it is no IDX file: it begins with other bytes")
	}
	if start[3] == 0 || start[3] > tensor.MaxRank {
		return nil, fmt.Errorf("%d axes: take 1 to %d", start[3], tensor.MaxRank)
	}
	shape := make(tensor.Shape, start[3])
	for i := range shape {
		var extent [4]byte
		if _, err := io.ReadFull(src, extent[:]); err != nil {
			return nil, err
		}
		shape[i] = int(binary.BigEndian.Uint32(extent[:]))
	}
	need, err := elements.Size(typ, shape)
	if err != nil {
		return nil, err
	}
	if header := int64(4 + 4*len(shape)); need > most-header {
		return nil, fmt.Errorf("%v%v takes %d bytes of elements, the file holds %d at most: it is damaged, or cut off", typ, shape, need, most-header)
	}
	t, err := alloc.New(typ, shape)
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(src, t.Bytes()); err != nil {
		return nil, fmt.Errorf("read %d elements: %w", t.Len(), err)
	}
	swap(t)
	if n, err := io.Copy(io.Discard, io.LimitReader(src, 1)); n > 0 || err != nil { // a checksum is compared at the end
		return nil, errors.Join(errors.New("the file goes on after its elements, or is damaged"), err)
	}
	return t, t.Canon()
}

// swap makes big-endian elements little-endian.
func swap(t *tensor.Tensor) {
	b, size := t.Bytes(), t.Type.Size()
	if size == 1 {
		return
	}
	for at := 0; at < len(b); at += size {
		for i, j := at, at+size-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
}
