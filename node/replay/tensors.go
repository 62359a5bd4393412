package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
)

// maxHead is more than the bytes of a tensor's type and shape.
const maxHead = 1 << 10

// readHead reads type and shape of the tensor that a file of so many bytes is, and returns what is left of it.
func readHead(r io.Reader, size int64) (typ tensor.DType, shape tensor.Shape, elements io.Reader, err error) {
	start, err := io.ReadAll(io.LimitReader(r, min(size, maxHead)))
	if err != nil {
		return 0, nil, nil, localError{err}
	}
	d := canon.NewDecoder(start)
	typ, shape = tensor.DType(d.U8()), tensor.DecodeShape(d)
	head := int64(len(start) - d.Left())
	switch {
	case d.Err() != nil:
		return 0, nil, nil, d.Err()
	case !typ.Valid() || shape.Elements() > tensor.MaxBytes/typ.Size() || int64(shape.Elements()*typ.Size()) != size-head:
		return 0, nil, nil, fmt.Errorf("tensor %v%v in a file of %d bytes", typ, shape, size)
	}
	return typ, shape, io.MultiReader(bytes.NewReader(start[head:]), r), nil
}

// ReadRecords reads the records that a file of so many bytes holds, int32 [records words], into memory of an allocator. An UnfitError
// says that it holds none.
func ReadRecords(r io.Reader, size int64, alloc tensor.Allocator) (*tensor.Tensor, error) {
	typ, shape, elements, err := readHead(r, size)
	if err == nil && typ != tensor.Int32 { // of which every bit pattern is an element
		err = fmt.Errorf("records are %v, and not %v", typ, tensor.Int32)
	}
	var local localError
	switch {
	case errors.As(err, &local):
		return nil, local.error
	case err != nil:
		return nil, &UnfitError{err}
	}
	t, err := alloc.New(typ, shape)
	if err != nil {
		return nil, err
	}
	_, err = io.ReadFull(elements, t.Bytes())
	return t, err
}

// ReadTensor reads a canonical tensor from a whole file.
func ReadTensor(b []byte) (t *tensor.Tensor, err error) {
	err = canon.Decode(b, func(d *canon.Decoder) { t = tensor.Decode(d) })
	return t, err
}

// checkHeldOut returns an error unless a file holds records like those that the order trains on.
func (j *Job) checkHeldOut(r io.Reader, size int64) error {
	typ, shape, _, err := readHead(r, size)
	if err != nil {
		return err
	}
	if typ != j.Data.Type || len(shape) != 2 || shape[0] < 1 || shape[1] != j.Data.Shape[1] {
		return fmt.Errorf("they are %v%v, the training records %v%v", typ, shape, j.Data.Type, j.Data.Shape)
	}
	_, err = j.Training.Evaluate(shape)
	return err
}

// readAll reads a file of at most so many bytes.
func readAll(r io.Reader, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("it has %d bytes, of at most %d", size, limit)
	}
	b, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		err = localError{err}
	}
	return b, err
}
