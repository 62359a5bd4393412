package tensor

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/tally-network/tally/core/canon"
)

// MaxBytes bounds the memory of one tensor, of Go's or not.
const MaxBytes = 1 << 34

const _ = littleEndian

// Tensor is a dense row-major array. Elements lie little-endian in one buffer,
// so that hashing and storing need no conversion.
type Tensor struct {
	Type  DType
	Shape Shape
	buf   []byte
	owner any // of the memory, if that is not Go's
}

// New returns a tensor of zeros.
func New(t DType, s Shape) (*Tensor, error) { return Allocator(nil).New(t, s) }

// Allocator gives size bytes of zeros for elements, aligned for every type, and what has to be held by whoever uses them. A nil one gives
// Go's memory.
type Allocator func(size int) (b []byte, owner any, err error)

// New returns a tensor of zeros in memory of the allocator.
func (a Allocator) New(t DType, s Shape) (*Tensor, error) {
	if !t.Valid() {
		return nil, fmt.Errorf("unknown element type %d", uint8(t))
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	n := s.Elements()
	if n > MaxBytes/t.Size() {
		return nil, fmt.Errorf("tensor %v%v needs more than %d bytes", t, s, MaxBytes)
	}
	x := &Tensor{Type: t, Shape: s.Clone()}
	size := n * t.Size()
	if a != nil && size > 0 {
		var err error
		x.buf, x.owner, err = a(size)
		return x, err
	}
	words := make([]uint64, (size+7)/8) // aligned for every element type
	if size > 0 {
		x.buf = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)
	}
	return x, nil
}

// Part returns a tensor in the memory of t, from byte at on: a multiple of 8.
func (t *Tensor) Part(at int, typ DType, s Shape) (*Tensor, error) {
	if !typ.Valid() || s.Check() != nil {
		return nil, fmt.Errorf("tensor %v%v is not valid", typ, s)
	}
	left := len(t.buf) - at
	if at < 0 || at%8 != 0 || left < 0 || s.Elements() > left/typ.Size() {
		return nil, fmt.Errorf("tensor %v%v does not fit into %d bytes from byte %d on", typ, s, len(t.buf), at)
	}
	n := s.Elements() * typ.Size()
	return &Tensor{typ, s.Clone(), t.buf[at:][:n:n], t.owner}, nil
}

// Row returns a copy of what t has at place i of its first axis: rows of an odd number of elements are no [Tensor.Part]s.
func (t *Tensor) Row(i int) (*Tensor, error) {
	if len(t.Shape) == 0 || i < 0 || i >= t.Shape[0] {
		return nil, fmt.Errorf("a tensor of %v has no row %d", t.Shape, i)
	}
	row, err := New(t.Type, t.Shape[1:])
	if err == nil {
		n := len(row.buf)
		copy(row.buf, t.buf[i*n:][:n])
	}
	return row, err
}

// Must returns t, and panics on an error. It is for shapes that the caller made.
func Must(t *Tensor, err error) *Tensor {
	if err != nil {
		panic(err)
	}
	return t
}

// FromBytes returns a tensor with a copy of the given little-endian elements.
// Float NaNs become canonical; booleans other than 0 and 1 are refused.
func FromBytes(t DType, s Shape, b []byte) (*Tensor, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if t.Valid() && len(b)/t.Size() != s.Elements() || t.Valid() && len(b)%t.Size() != 0 {
		return nil, fmt.Errorf("tensor %v%v needs %d elements, got %d bytes", t, s, s.Elements(), len(b))
	}
	x, err := New(t, s)
	if err != nil {
		return nil, err
	}
	copy(x.buf, b)
	if err := x.Canon(); err != nil {
		return nil, err
	}
	return x, nil
}

// Canon makes elements canonical that were written into t's bytes: one NaN.
// Booleans other than 0 and 1 are refused.
func (t *Tensor) Canon() error {
	switch {
	case t.Type == Float32:
		all := Of[float32](t)
		for i, v := range all {
			if v != v {
				all[i] = CanonNaN(v)
			}
		}
	case t.Type == Float64:
		for i, v := range Of[float64](t) {
			if v != v {
				t.Set(i, FloatWord(Float64, v))
			}
		}
	case t.Type.Float():
		for i := range t.Len() {
			t.Set(i, canonical(t.Type, t.At(i)))
		}
	case t.Type == Bool:
		for i, v := range t.buf {
			if v > 1 {
				return fmt.Errorf("boolean element %d is %d, not 0 or 1", i, v)
			}
		}
	}
	return nil
}

// From returns a tensor that holds a copy of v.
func From[T Element](s Shape, v []T) (*Tensor, error) {
	x, err := New(typeOf[T](), s)
	if err != nil {
		return nil, err
	}
	if len(v) != s.Elements() {
		return nil, fmt.Errorf("shape %v needs %d elements, got %d", s, s.Elements(), len(v))
	}
	copy(Of[T](x), v)
	return x, nil
}

// Bools returns a tensor that holds a copy of v.
func Bools(s Shape, v ...bool) (*Tensor, error) {
	x, err := New(Bool, s)
	if err != nil {
		return nil, err
	}
	if len(v) != s.Elements() {
		return nil, fmt.Errorf("shape %v needs %d elements, got %d", s, s.Elements(), len(v))
	}
	for i, b := range v {
		x.Set(i, truth(b))
	}
	return x, nil
}

// Scalar returns a tensor without axes.
func Scalar[T Element](v T) *Tensor { return Must(From(Shape{}, []T{v})) }

// Element is a Go type that stores the elements of some DType; uint8 stores
// booleans too.
type Element interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func typeOf[T Element]() DType {
	switch any(*new(T)).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	}
	return Uint64
}

// stores reports whether T stores the elements of type t. The bits of the
// 16-bit floats are stored as integers.
func stores[T Element](t DType) bool {
	e := typeOf[T]()
	return e == t || e == Uint8 && t == Bool || e == Uint16 && t.Half()
}

// Of returns the elements of t, shared, not copied. T must store t's type.
func Of[T Element](t *Tensor) []T {
	if !stores[T](t.Type) {
		panic(fmt.Sprintf("elements of a %v tensor read as %v", t.Type, typeOf[T]()))
	}
	if len(t.buf) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&t.buf[0])), len(t.buf)/t.Type.Size())
}

// Bytes returns the little-endian elements, shared.
func (t *Tensor) Bytes() []byte { return t.buf }

// Len returns the number of elements.
func (t *Tensor) Len() int { return len(t.buf) / t.Type.Size() }

// Clone returns a copy of t.
func (t *Tensor) Clone() *Tensor {
	c := Must(New(t.Type, t.Shape))
	copy(c.buf, t.buf)
	return c
}

// Equal reports whether t and u have the same type, shape and bits.
func (t *Tensor) Equal(u *Tensor) bool {
	return t.Type == u.Type && t.Shape.Equal(u.Shape) && bytes.Equal(t.buf, u.buf)
}

// Encode appends type, shape and elements.
func (t *Tensor) Encode(e *canon.Encoder) {
	t.Head(e)
	e.Raw(t.buf)
}

// Head appends type and shape, which stand before the elements.
func (t *Tensor) Head(e *canon.Encoder) {
	e.U8(uint8(t.Type))
	t.Shape.Encode(e)
}

// Decode reads what Encode wrote. Only canonical NaNs and booleans pass.
func Decode(d *canon.Decoder) *Tensor {
	typ := DType(d.U8())
	shape := DecodeShape(d)
	if d.Err() == nil && (!typ.Valid() || shape.Elements() > d.Left()/typ.Size()) {
		d.Fail("tensor %v%v is unknown or longer than the input", typ, shape)
	}
	if d.Err() != nil {
		return nil
	}
	raw := d.Raw(shape.Elements() * typ.Size())
	t, err := FromBytes(typ, shape, raw)
	if err == nil && !bytes.Equal(raw, t.buf) {
		err = fmt.Errorf("a NaN is not canonical")
	}
	if err != nil {
		d.Fail("%v", err)
		return nil
	}
	return t
}
