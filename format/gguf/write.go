package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
)

// Weight is a weight to be written.
type Weight struct {
	Name   string
	Type   quant.Type
	Shape  tensor.Shape // row-major
	Blocks io.Reader    // gives just the bytes that Type and Shape take
}

// Write writes a file of the given metadata and weights, in their order. Weights are aligned to
// general.alignment, if the metadata has it, and to 32 bytes otherwise. What Read would refuse is
// refused before anything is written. Blocks of a weight that are too few or too many are an error
// where they come.
func Write(w io.Writer, metadata []Pair, weights []Weight) error {
	if err := write(w, metadata, weights); err != nil {
		return fmt.Errorf("write GGUF: %w", err)
	}
	return nil
}

func write(w io.Writer, metadata []Pair, weights []Weight) error {
	head, size, err := encode(metadata, weights)
	if err != nil {
		return err
	}
	f, err := read(bytes.NewReader(head), size)
	if err != nil {
		return err
	}
	if !slices.Equal(f.Metadata, metadata) {
		return errors.New("a value of the metadata is empty: make values by Of, ArrayOf or Nested")
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for i, t := range f.Tensors {
		n, err := io.CopyN(w, weights[i].Blocks, t.Bytes)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("tensor %q: %d bytes of blocks, %v%v takes %d", t.Name, n, t.Type, t.Shape, t.Bytes)
		}
		if err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if more, err := weights[i].Blocks.Read(make([]byte, 1)); more > 0 || err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("tensor %q: there are more bytes of blocks than the %d that %v%v takes (%v)", t.Name, t.Bytes, t.Type, t.Shape, err)
		}
		if _, err := w.Write(make([]byte, aligned(t.Bytes, f.Align)-t.Bytes)); err != nil {
			return err
		}
	}
	return nil
}

// encode returns the bytes before the weights, and the size of the file.
func encode(metadata []Pair, weights []Weight) (head []byte, size int64, err error) {
	align, err := alignOf(metadata)
	if err != nil {
		return nil, 0, err
	}
	b := append([]byte(magic), 3, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(weights)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(metadata)))
	for _, p := range metadata {
		b = appendPlain(b, p.Key)
		b = binary.LittleEndian.AppendUint32(b, uint32(p.Data.typ))
		b = append(b, p.Data.raw...)
	}
	var offset int64
	for _, x := range weights {
		b = appendPlain(b, x.Name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(x.Shape)))
		for i := range x.Shape {
			b = binary.LittleEndian.AppendUint64(b, uint64(x.Shape[len(x.Shape)-1-i]))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(x.Type))
		b = binary.LittleEndian.AppendUint64(b, uint64(offset))
		n, err := x.Type.Size(x.Shape)
		if err != nil {
			return nil, 0, fmt.Errorf("tensor %.100q: %w", x.Name, err)
		}
		offset = aligned(offset+n, align)
	}
	b = append(b, make([]byte, aligned(int64(len(b)), align)-int64(len(b)))...)
	return b, int64(len(b)) + offset, nil
}
