package tensor

import "fmt"

// DType is an element type. The numbers are those of ONNX's TensorProto.
type DType uint8

// The element types.
const (
	Float32 DType = 1
	Int32   DType = 6
	Int64   DType = 7
	Bool    DType = 9
)

// dtypes is indexed by type; the numbers between are unknown types of size 0.
var dtypes = [...]struct {
	name string
	size int
}{
	Float32: {"float32", 4},
	Int32:   {"int32", 4},
	Int64:   {"int64", 8},
	Bool:    {"bool", 1},
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

// Integer reports whether t is an integer type.
func (t DType) Integer() bool { return t == Int32 || t == Int64 }

// Numeric reports whether t can be added and multiplied.
func (t DType) Numeric() bool { return t == Float32 || t.Integer() }

// String returns ONNX's name of t in lower case.
func (t DType) String() string {
	if t.Valid() {
		return dtypes[t].name
	}
	return fmt.Sprintf("dtype(%d)", uint8(t))
}
