package gguf

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/elements"
)

// File is a model whose header is read, and whose weights are still in the source.
type File struct {
	Version  uint32 // of the format
	Align    int64  // bytes
	Header   int64  // bytes before the weights and what aligns them
	Metadata []Pair // in the order of the file
	Tensors  []Tensor

	src   io.ReaderAt
	size  int64
	keys  map[string]int // places in Metadata
	names map[string]int // places in Tensors
}

// Tensor is a weight of a file.
type Tensor struct {
	Name  string
	Type  quant.Type
	Shape tensor.Shape // row-major: the last axis is that of rows, of whole blocks
	At    int64        // the byte of the file where its blocks start
	Bytes int64        // of its blocks
}

// Read reads the header of the file in the first size bytes of r, which must stay as they are while
// the File is used. Weights of a type that package quant lacks are errors.ErrUnsupported.
func Read(r io.ReaderAt, size int64) (*File, error) {
	f, err := read(r, size)
	if err != nil {
		return nil, fmt.Errorf("read GGUF: %w", err)
	}
	return f, nil
}

func read(r io.ReaderAt, size int64) (*File, error) {
	h, err := scan(r, size)
	if err != nil {
		return nil, err
	}
	f := &File{Version: h.version, Header: h.end, src: r, size: size, keys: map[string]int{}, names: map[string]int{}}
	if err := f.setMetadata(h); err != nil {
		return nil, err
	}
	if err := f.setTensors(h); err != nil {
		return nil, err
	}
	return f, f.checkPlaces()
}

// setMetadata reads the bytes of values, which are parts of one string.
func (f *File) setMetadata(h *header) error {
	if len(h.pairs) > 0 {
		var b strings.Builder
		from, to := h.pairs[0].place.from, h.pairs[len(h.pairs)-1].place.to
		b.Grow(int(to - from))
		if _, err := io.CopyN(&b, io.NewSectionReader(f.src, from, to-from), to-from); err != nil {
			return fmt.Errorf("metadata: %w", err)
		}
		f.Metadata = make([]Pair, len(h.pairs))
		for i, e := range h.pairs {
			if _, twice := f.keys[e.key]; twice {
				return fmt.Errorf("metadata %q is given twice: convert the model again", e.key)
			}
			f.keys[e.key] = i
			f.Metadata[i] = Pair{e.key, Value{e.typ, b.String()[e.place.from-from : e.place.to-from]}}
		}
	}
	var err error
	f.Align, err = alignOf(f.Metadata)
	return err
}

// alignOf returns what metadata says of the alignment of weights.
func alignOf(metadata []Pair) (int64, error) {
	i := slices.IndexFunc(metadata, func(p Pair) bool { return p.Key == alignKey })
	if i < 0 {
		return defaultAlign, nil
	}
	v := metadata[i].Data
	if v.typ != typeUint32 {
		return 0, fmt.Errorf("%s is of type %v, not uint32: convert the model again", alignKey, v)
	}
	n := int64(number(v.raw))
	if n == 0 || n&(n-1) != 0 || n > MaxAlign {
		return 0, fmt.Errorf("%s is %d, no power of two up to %d: convert the model again", alignKey, n, MaxAlign)
	}
	return n, nil
}

// aligned returns n, or the next multiple of align.
func aligned(n, align int64) int64 { return (n + align - 1) &^ (align - 1) }

// setTensors checks what the header says of weights, each for itself.
func (f *File) setTensors(h *header) error {
	base := aligned(h.end, f.Align)
	f.Tensors = make([]Tensor, len(h.infos))
	for i, x := range h.infos {
		if _, twice := f.names[x.name]; twice {
			return fmt.Errorf("tensor %q is given twice: convert the model again", x.name)
		}
		f.names[x.name] = i
		n, err := x.typ.Size(x.shape)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", x.name, err)
		}
		if x.offset%uint64(f.Align) != 0 {
			return fmt.Errorf("tensor %q: its place, %d, is no multiple of %d", x.name, x.offset, f.Align)
		}
		if left := f.size - base; left < 0 || x.offset > uint64(left) || n > left-int64(x.offset) {
			return fmt.Errorf("tensor %q: its %d bytes, %d bytes after byte %d, reach beyond the file, which has %d: fetch it again", x.name, n, x.offset, base, f.size)
		}
		f.Tensors[i] = Tensor{x.name, x.typ, x.shape, base + int64(x.offset), n}
	}
	return nil
}

// checkPlaces refuses weights that share bytes.
func (f *File) checkPlaces() error {
	var order []int
	for i, t := range f.Tensors {
		if t.Bytes > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(f.Tensors[a].At, f.Tensors[b].At) })
	for i := 1; i < len(order); i++ {
		a, b := f.Tensors[order[i-1]], f.Tensors[order[i]]
		if a.At+a.Bytes > b.At {
			return fmt.Errorf("tensors %q and %q share bytes: convert the model again", a.Name, b.Name)
		}
	}
	return nil
}

// Find returns the weight of a name.
func (f *File) Find(name string) (Tensor, bool) {
	i, ok := f.names[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// check refuses a weight that is none of the file.
func (f *File) check(t Tensor) error {
	if own, ok := f.Find(t.Name); !ok || own.Type != t.Type || own.At != t.At || own.Bytes != t.Bytes || !own.Shape.Equal(t.Shape) {
		return fmt.Errorf("tensor %.100q is none of this file: take it from Tensors or Find", t.Name)
	}
	return nil
}

// Packed returns the blocks of a weight of the file, as they are there: t.Bytes bytes. Scales may be
// any.
func (f *File) Packed(t Tensor) ([]byte, error) {
	if err := f.check(t); err != nil {
		return nil, err
	}
	b := make([]byte, t.Bytes)
	if err := f.load(t, b, 0); err != nil {
		return nil, err
	}
	return b, nil
}

// load reads bytes of a weight, from its byte at on.
func (f *File) load(t Tensor, b []byte, at int64) error {
	if _, err := io.ReadFull(io.NewSectionReader(f.src, t.At+at, int64(len(b))), b); err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return nil
}

// Stored returns a weight of the file as it is: floats, canonical, or else rows of blocks, which are uint8 and as many
// bytes as a row takes. Blocks that quant.Type.Check refuses are an error.
func (f *File) Stored(t Tensor) (*tensor.Tensor, error) {
	if err := f.check(t); err != nil {
		return nil, err
	}
	typ, shape := tensor.Uint8, t.Shape.Clone()
	switch t.Type {
	case quant.F32:
		typ = tensor.Float32
	case quant.F16:
		typ = tensor.Float16
	case quant.BF16:
		typ = tensor.BFloat16
	default:
		n, size := t.Type.Block()
		shape[len(shape)-1] = shape[len(shape)-1] / n * size
	}
	x, err := elements.Read(io.NewSectionReader(f.src, t.At, t.Bytes), typ, shape, nil)
	if err == nil && typ == tensor.Uint8 {
		err = t.Type.Check(x.Bytes())
	}
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return x, nil
}

// pieceBytes is about how many bytes of blocks are decoded at once.
const pieceBytes = 1 << 18

// Float32 returns the elements of a weight of the file: float32 of t.Shape. Blocks that quant.Type.Check
// refuses are an error.
func (f *File) Float32(t Tensor) (*tensor.Tensor, error) {
	if err := f.check(t); err != nil {
		return nil, err
	}
	x, err := tensor.New(tensor.Float32, t.Shape)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	elements, size := t.Type.Block()
	out, piece := tensor.Of[float32](x), make([]byte, min(t.Bytes, int64(pieceBytes/size*size)))
	for at := int64(0); at < t.Bytes; at += int64(len(piece)) {
		piece = piece[:min(int64(len(piece)), t.Bytes-at)]
		if err := f.load(t, piece, at); err != nil {
			return nil, err
		}
		if err := t.Type.Check(piece); err != nil {
			return nil, fmt.Errorf("tensor %q, from block %d on: %w", t.Name, at/int64(size), err)
		}
		n := len(piece) / size * elements
		t.Type.Decode(out[:n], piece)
		out = out[n:]
	}
	return x, nil
}
