// Package quantize makes small GGUF files out of large ones, so that anybody derives the same file again.
//
// Call [Write] for the file of a base, and [Compare] to find out whether a file is what a base gives.
//
// Every matrix whose rows are whole blocks becomes blocks of one type, also the embedding and the head. All other weights stay as they are, and so do
// names, order and metadata, but for the file type and the version of quantisation.
//
// Invariants: the file follows from base and type alone, bit for bit, on every machine. A base is refused whose matrices are quantised already.
// One weight at a time is in memory.
//
// Source: package core/quant for the blocks; llama.h of llama.cpp for the numbers of file types.
package quantize

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/gguf"
)

// Keys that say what a file's weights are.
const (
	typeKey    = "general.file_type"
	versionKey = "general.quantization_version"
	version    = 2 // of ggml's blocks
)

// fileTypes are llama.cpp's numbers for files whose matrices are mostly of a type.
var fileTypes = map[quant.Type]uint32{quant.Q4_0: 2, quant.Q4_1: 3, quant.Q8_0: 7, quant.Q5_0: 8, quant.Q5_1: 9}

// Sizes are how many weights became blocks, how many stayed, and what the file takes.
type Sizes struct {
	Quantised int   `json:"quantised"`
	Kept      int   `json:"kept"`
	Bytes     int64 `json:"bytes"`
}

// Write writes the file that the first size bytes of a base become.
func Write(w io.Writer, base io.ReaderAt, size int64, to quant.Type) (s Sizes, err error) {
	if !to.Encodes() {
		return s, fmt.Errorf("%v is no type that weights are quantised to: use Q8_0, Q5_1, Q5_0, Q4_1 or Q4_0", to)
	}
	f, err := gguf.Read(base, size)
	if err != nil {
		return s, err
	}
	var weights []gguf.Weight
	for _, t := range f.Tensors {
		x := gguf.Weight{Name: t.Name, Type: t.Type, Shape: t.Shape, Blocks: io.NewSectionReader(base, t.At, t.Bytes)}
		if changes, err := quantises(&t, to); err != nil {
			return s, err
		} else if changes {
			x.Type, x.Blocks = to, &blocks{f: f, of: t, to: to}
			s.Quantised++
		} else {
			s.Kept++
		}
		weights = append(weights, x)
	}
	if s.Quantised == 0 {
		return s, fmt.Errorf("no weight is a matrix of rows of whole blocks of %v", to)
	}
	count := &counter{Writer: w}
	err = gguf.Write(count, metadata(f.Metadata, to), weights)
	s.Bytes = count.n
	return s, err
}

// quantises reports whether a weight becomes blocks.
func quantises(t *gguf.Tensor, to quant.Type) (bool, error) {
	if len(t.Shape) != 2 {
		return false, nil
	}
	switch t.Type {
	case quant.F32, quant.F16, quant.BF16:
	default:
		return false, fmt.Errorf("%s is %v already: take a base of F32, F16 or BF16, which has lost nothing", t.Name, t.Type)
	}
	elements, _ := to.Block()
	return t.Shape[1]%elements == 0, nil
}

// metadata is that of the base, with the two keys that say what the weights are.
func metadata(of []gguf.Pair, to quant.Type) (out []gguf.Pair) {
	set := []gguf.Pair{{Key: typeKey, Data: gguf.Of(fileTypes[to])}, {Key: versionKey, Data: gguf.Of(uint32(version))}}
	done := map[string]bool{}
	for _, p := range of {
		for _, s := range set {
			if p.Key == s.Key {
				p, done[s.Key] = s, true
			}
		}
		out = append(out, p)
	}
	for _, s := range set {
		if !done[s.Key] {
			out = append(out, s)
		}
	}
	return out
}

// blocks gives the blocks of a weight, which is read once somebody wants them.
type blocks struct {
	f    *gguf.File
	of   gguf.Tensor
	to   quant.Type
	rest *bytes.Reader
}

// Read implements io.Reader.
func (b *blocks) Read(p []byte) (int, error) {
	if b.rest == nil {
		encoded, err := b.encode()
		if err != nil {
			return 0, err
		}
		b.rest = bytes.NewReader(encoded)
	}
	n, err := b.rest.Read(p)
	if err != nil {
		b.rest = bytes.NewReader(nil) // lets go of them
	}
	return n, err
}

func (b *blocks) encode() ([]byte, error) {
	t, err := b.f.Float32(b.of)
	if err != nil {
		return nil, err
	}
	size, err := b.to.Size(b.of.Shape)
	if err != nil {
		return nil, err
	}
	dst := make([]byte, size)
	return dst, b.to.Encode(dst, tensor.Of[float32](t))
}

type counter struct {
	io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

// TypeOf returns the type to which a file says that it was quantised.
func TypeOf(file io.ReaderAt, size int64) (quant.Type, error) {
	f, err := gguf.Read(file, size)
	if err != nil {
		return 0, err
	}
	n, err := f.Uint(typeKey)
	if err != nil {
		return 0, err
	}
	for t, number := range fileTypes { // each has its own
		if uint64(number) == n {
			return t, nil
		}
	}
	return 0, fmt.Errorf("%s is %d: only files of Q8_0, Q5_1, Q5_0, Q4_1 or Q4_0 can be derived again", typeKey, n)
}

// ErrDiffers says that a file is not what its base gives.
var ErrDiffers = errors.New("the file is not what its base gives")

// Compare returns ErrDiffers, and where, unless a file is just what a base gives in the type that the file says.
func Compare(file io.ReaderAt, size int64, base io.ReaderAt, baseSize int64) (quant.Type, Sizes, error) {
	t, err := TypeOf(file, size)
	if err != nil {
		return t, Sizes{}, err
	}
	c := &comparer{file: file, size: size}
	s, err := Write(c, base, baseSize, t)
	if err == nil && c.at != size {
		err = fmt.Errorf("%w: it has %d bytes, and should have %d", ErrDiffers, size, c.at)
	}
	return t, s, err
}

// comparer refuses what a file has not.
type comparer struct {
	file     io.ReaderAt
	size, at int64
	buffer   []byte
}

// Write implements io.Writer.
func (c *comparer) Write(p []byte) (int, error) {
	if int64(len(p)) > c.size-c.at {
		return 0, fmt.Errorf("%w: it ends after %d bytes", ErrDiffers, c.size)
	}
	if len(c.buffer) < len(p) {
		c.buffer = make([]byte, len(p))
	}
	have := c.buffer[:len(p)]
	if n, err := c.file.ReadAt(have, c.at); n < len(p) {
		return 0, err
	}
	if !bytes.Equal(have, p) {
		i := 0
		for have[i] == p[i] {
			i++
		}
		return 0, fmt.Errorf("%w: byte %d is another", ErrDiffers, c.at+int64(i))
	}
	c.at += int64(len(p))
	return len(p), nil
}
