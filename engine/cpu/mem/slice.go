package mem

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
)

// AsFloats returns words as float32 values of the same bits, for kernels that move
// words of either kind.
func AsFloats[T int32 | uint32](x []T) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// Words returns the elements of a tensor of float32, or those of int32 as [AsFloats]
// does.
func Words(x *tensor.Tensor) []float32 {
	if x.Type == tensor.Int32 {
		return AsFloats(tensor.Of[int32](x))
	}
	return tensor.Of[float32](x)
}

// First returns the address of the first element of a slice, which may be empty.
func First[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

// Data returns the address of the first element of a tensor.
func Data(t *tensor.Tensor) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(t.Bytes())) }

// Bits returns the elements of t as integers T of their size.
func Bits[T Integer](t *tensor.Tensor) []T {
	return unsafe.Slice((*T)(Data(t)), t.Len())
}

// As returns words as n elements of another type, which must fit.
func As[T any](words []uint64, n int) []T { return Slice[T](unsafe.Pointer(&words[0]), n) }

// Slice returns the n elements at an address.
func Slice[T any](p unsafe.Pointer, n int) []T { return unsafe.Slice((*T)(p), n) }

// Fill sets every element of dst to x.
func Fill[T any](dst []T, x T) {
	const short = 16
	for i := range dst[:min(short, len(dst))] {
		dst[i] = x
	}
	for n := short; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// Grow returns n elements, in the memory of s if there is room. Their values are
// arbitrary.
func Grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
