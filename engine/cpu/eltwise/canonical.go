package eltwise

import (
	"math"
	"unsafe"

	"github.com/tally-network/tally/engine/cpu/mem"
)

// Canonical returns x, or the one NaN that tensors hold.
func Canonical[T mem.Float](x T) T {
	if x != x {
		return nan[T]()
	}
	return x
}

// nan is the one NaN of a type.
func nan[T mem.Float]() T {
	if unsafe.Sizeof(T(0)) == 4 {
		return T(math.Float32frombits(0x7fc00000))
	}
	return T(math.Float64frombits(0x7ff8000000000000))
}
