package tensor

import "fmt"

// DType is an element type. The numbers are those of ONNX's TensorProto.
type DType uint8

// The element types.
const (
	Float32  DType = 1
	Uint8    DType = 2
	Int8     DType = 3
	Uint16   DType = 4
	Int16    DType = 5
	Int32    DType = 6
	Int64    DType = 7
	Bool     DType = 9
	Float16  DType = 10
	Float64  DType = 11
	Uint32   DType = 12
	Uint64   DType = 13
	BFloat16 DType = 16
)

// DTypes are all element types, in the order of their numbers.
var DTypes = []DType{Float32, Uint8, Int8, Uint16, Int16, Int32, Int64, Bool, Float16, Float64, Uint32, Uint64, BFloat16}

type class uint8

const (
	noClass class = iota
	boolean
	signed
	unsigned
	float
)

// dtypes is indexed by type; the numbers between are unknown types of size 0.
var dtypes = [...]struct {
	name  string
	size  int
	class class
}{
	Float32: {"float32", 4, float}, Float64: {"float64", 8, float}, Float16: {"float16", 2, float}, BFloat16: {"bfloat16", 2, float},
	Int8: {"int8", 1, signed}, Int16: {"int16", 2, signed}, Int32: {"int32", 4, signed}, Int64: {"int64", 8, signed},
	Uint8: {"uint8", 1, unsigned}, Uint16: {"uint16", 2, unsigned}, Uint32: {"uint32", 4, unsigned}, Uint64: {"uint64", 8, unsigned},
	Bool: {"bool", 1, boolean},
}

// Valid reports whether t is one of the element types.
func (t DType) Valid() bool { return t.Size() != 0 }

// Size returns the bytes of one element, 0 for an unknown type.
func (t DType) Size() int {
	if int(t) < len(dtypes) {
		return dtypes[t].size
	}
	return 0
}

func (t DType) class() class {
	if int(t) < len(dtypes) {
		return dtypes[t].class
	}
	return noClass
}

// Integer reports whether t is an integer type.
func (t DType) Integer() bool { return t.Signed() || t.Unsigned() }

// Signed reports whether t is a signed integer type.
func (t DType) Signed() bool { return t.class() == signed }

// Unsigned reports whether t is an unsigned integer type.
func (t DType) Unsigned() bool { return t.class() == unsigned }

// Float reports whether t is a floating-point type.
func (t DType) Float() bool { return t.class() == float }

// Half reports whether t is a type of 16 bits in which floats are stored. What
// is computed with them is computed in float32 and rounded once.
func (t DType) Half() bool { return t == Float16 || t == BFloat16 }

// Numeric reports whether t can be added and multiplied.
func (t DType) Numeric() bool { return t.Float() || t.Integer() }

// String returns ONNX's name of t in lower case.
func (t DType) String() string {
	if t.Valid() {
		return dtypes[t].name
	}
	return fmt.Sprintf("dtype(%d)", uint8(t))
}
