// Package npy reads and writes single tensors as NumPy's .npy files, and reads .npz files of several.
//
// A file is a magic number, a version, the length of a header, the header and the elements. The
// header is the text of a Python dictionary that gives type, order and shape. [Read] takes
// versions 1 to 3 with little-endian elements in C order, from untrusted bytes; [Write] gives
// the file that NumPy writes. NumPy has no bfloat16: where others store one, the file says V2,
// two bytes of any kind.
//
// An .npz file is a zip archive of them; [ReadArchive] takes one that is compressed or not.
//
// Invariants: every length is compared with the size of the file before
// anything is allocated, and a tensor is not larger than its file, or than what the file can
// hold compressed.
//
// Source: numpy.lib.format (numpy.org/devdocs/reference/generated/numpy.lib.format.html).
package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/elements"
)

const magic = "\x93NUMPY"

// MaxHeader is the size in bytes above which headers are refused.
const MaxHeader = 1 << 16

// dtypes are the format's codes of element types, without the mark of byte
// order.
var dtypes = map[tensor.DType]string{
	tensor.Float32: "f4", tensor.Float64: "f8", tensor.Float16: "f2", tensor.BFloat16: "V2",
	tensor.Int8: "i1", tensor.Int16: "i2", tensor.Int32: "i4", tensor.Int64: "i8",
	tensor.Uint8: "u1", tensor.Uint16: "u2", tensor.Uint32: "u4", tensor.Uint64: "u8",
	tensor.Bool: "b1",
}

// Read returns the tensor in the first size bytes of src, in memory of alloc.
func Read(src io.ReaderAt, size int64, alloc tensor.Allocator) (*tensor.Tensor, error) {
	t, err := read(io.NewSectionReader(src, 0, size), size, alloc)
	if err != nil {
		return nil, fmt.Errorf("read .npy: %w", err)
	}
	return t, nil
}

// read reads the tensor that the next size bytes of src hold.
func read(src io.Reader, size int64, alloc tensor.Allocator) (*tensor.Tensor, error) {
	text, at, err := header(src, size)
	if err != nil {
		return nil, err
	}
	h, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	typ, err := h.dtype()
	if err != nil {
		return nil, err
	}
	need, err := elements.Size(typ, h.shape)
	if err != nil {
		return nil, err
	}
	switch {
	case need != size-at:
		return nil, fmt.Errorf("%v%v takes %d bytes of elements, the file has %d", typ, h.shape, need, size-at)
	case h.fortran && len(h.shape) > 1 && need > 0:
		return readFortran(src, typ, h.shape, alloc)
	}
	return elements.Read(src, typ, h.shape, alloc)
}

// readFortran reads elements of which the first index changes fastest.
func readFortran(src io.Reader, typ tensor.DType, shape tensor.Shape, alloc tensor.Allocator) (*tensor.Tensor, error) {
	back := shape.Clone()
	slices.Reverse(back)
	from, err := elements.Read(src, typ, back, alloc)
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(from) // its memory may not be Go's
	out, err := alloc.New(typ, shape)
	if err != nil {
		return nil, err
	}
	steps, step := make([]int, len(shape)), typ.Size() // bytes between neighbours along each axis
	for i, n := range shape {
		steps[i], step = step, step*n
	}
	at, index, size := 0, make([]int, len(shape)), typ.Size()
	for to := 0; to < len(out.Bytes()); to += size {
		copy(out.Bytes()[to:][:size], from.Bytes()[at:][:size])
		for axis := len(shape) - 1; axis >= 0; axis-- {
			at += steps[axis]
			if index[axis]++; index[axis] < shape[axis] {
				break
			}
			at -= steps[axis] * shape[axis]
			index[axis] = 0
		}
	}
	return out, nil
}

// header returns the text of the header, and where elements start, which come next.
func header(src io.Reader, size int64) (text string, at int64, err error) {
	start := make([]byte, min(size, 12))
	if _, err := io.ReadFull(src, start); err != nil {
		return "", 0, err
	}
	if len(start) < 12 || !bytes.HasPrefix(start, []byte(magic)) {
		return "", 0, errors.New("it is no .npy file")
	}
	n := int64(binary.LittleEndian.Uint16(start[8:]))
	at = 10
	switch version := start[6]; {
	case version == 2 || version == 3:
		n, at = int64(binary.LittleEndian.Uint32(start[8:])), 12
	case version != 1:
		return "", 0, fmt.Errorf("version %d: versions 1 to 3 are read", version)
	}
	if n > MaxHeader || n > size-at {
		return "", 0, fmt.Errorf("the header has %d bytes, limit %d, and the file %d", n, MaxHeader, size)
	}
	b := make([]byte, max(n, 12-at))
	had := copy(b, start[at:])
	_, err = io.ReadFull(src, b[had:])
	return string(b[:n]), at + n, err
}

// layout is what a header says.
type layout struct {
	descr   string
	fortran bool
	shape   tensor.Shape
}

// dtype returns the element type that the header names.
func (h *layout) dtype() (tensor.DType, error) {
	order, code := byte('|'), h.descr
	if code != "" && strings.IndexByte("<>|=", code[0]) >= 0 {
		order, code = code[0], code[1:]
	}
	for _, typ := range tensor.DTypes {
		if dtypes[typ] != code {
			continue
		}
		if typ.Size() > 1 && order != '<' && !(order == '|' && typ == tensor.BFloat16) {
			return 0, fmt.Errorf("elements of type %q are not little-endian: save them with astype('<%s')", h.descr, code)
		}
		return typ, nil
	}
	return 0, fmt.Errorf("element type %.20q is not supported: convert it to a type of numbers of 8 to 64 bits, or bool", h.descr)
}

// Write writes t to w.
func Write(w io.Writer, t *tensor.Tensor) error {
	order := "<"
	if t.Type.Size() == 1 {
		order = "|"
	}
	var shape strings.Builder
	for i, d := range t.Shape {
		if i > 0 {
			shape.WriteString(", ")
		}
		shape.WriteString(strconv.Itoa(d))
	}
	grow := 0
	if len(t.Shape) == 1 {
		shape.WriteString(",")
	}
	if len(t.Shape) > 0 {
		grow = 21 - len(strconv.Itoa(t.Shape[0])) // room to append along the first axis, as NumPy leaves it
	}
	text := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }%s", order, dtypes[t.Type], shape.String(), strings.Repeat(" ", grow))
	text += strings.Repeat(" ", 63-(10+len(text))%64) + "\n"
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	for _, part := range [][]byte{append(b, text...), t.Bytes()} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("write .npy: %w", err)
		}
	}
	return nil
}
