// Package elements fills tensors from files, straight into their memory, so
// that a file's bytes are never held twice.
//
// Call [Size] for the bytes that a tensor takes in a file, compare it with what is there, and
// then call [Read].
//
// Invariant: what it returns is canonical as package tensor defines it, one
// NaN and booleans of 0 and 1, whatever the file holds.
package elements

import (
	"fmt"
	"io"

	"github.com/tally-network/tally/core/tensor"
)

// Read returns a tensor in memory of alloc whose little-endian elements are the next bytes of r.
// It allocates what the type and shape say, so the caller compares that with
// what the file can hold first.
func Read(r io.Reader, typ tensor.DType, shape tensor.Shape, alloc tensor.Allocator) (*tensor.Tensor, error) {
	t, err := alloc.New(typ, shape)
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r, t.Bytes()); err != nil {
		return nil, fmt.Errorf("read %d elements: %w", t.Len(), err)
	}
	if err := t.Canon(); err != nil {
		return nil, err
	}
	return t, nil
}

// Size returns the bytes that the elements of a tensor take. It fails where
// the shape is outside the limits of a tensor.
func Size(typ tensor.DType, shape tensor.Shape) (int64, error) {
	if err := shape.Check(); err != nil {
		return 0, err
	}
	n := int64(shape.Elements()) * int64(typ.Size())
	if n > tensor.MaxBytes {
		return 0, fmt.Errorf("tensor %v%v takes %d bytes, limit %d", typ, shape, n, tensor.MaxBytes)
	}
	return n, nil
}
