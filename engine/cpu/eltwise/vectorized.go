package eltwise

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// vectorized makes a Func of a micro-kernel, which takes whole registers, and of one in
// plain Go, which takes the remainder. sizes are those of an element of the result and
// of each operand, in bytes.
func vectorized(set *asm.KernelSet, f asm.MapKernel, remainder Func, sizes ...int) Func {
	if f == nil {
		return remainder
	}
	return func(dst, x, y, z unsafe.Pointer, rows, width int) {
		n := rows * width
		whole := n - n%set.Lanes
		if whole > 0 {
			f((*byte)(dst), (*byte)(x), (*byte)(y), (*byte)(z), whole)
		}
		if whole == n {
			return
		}
		at := [4]unsafe.Pointer{dst, x, y, z}
		for i, size := range sizes {
			if at[i] != nil {
				at[i] = unsafe.Add(at[i], whole*size)
			}
		}
		remainder(at[0], at[1], at[2], at[3], 1, n-whole)
	}
}

// foldFunc makes a Func of a micro-kernel that folds rows.
func foldFunc(f asm.FoldKernel) Func {
	return func(dst, x, _, _ unsafe.Pointer, rows, width int) { f((*float32)(dst), (*float32)(x), rows, width) }
}

// Broadcast returns the Func that repeats each of rows elements of x over a row.
func Broadcast(set *asm.KernelSet, t tensor.DType) Func {
	if f := set.BroadcastRows; f != nil && t.Size() == 4 {
		return func(dst, x, _, _ unsafe.Pointer, rows, width int) { f((*float32)(dst), (*float32)(x), rows, width) }
	}
	return bySize(t, broadcasts)
}

// SumLanes returns the function that adds terms to the lanes of a sum: the term at i to
// lane i mod tensor.Lanes.
func SumLanes[T mem.Ordered](set *asm.KernelSet) func(lanes *[tensor.Lanes]T, x []T) {
	take, ok := any((func(*[tensor.Lanes]float32, *float32, int))(set.SumLanes)).(func(*[tensor.Lanes]T, *T, int))
	if !ok || take == nil {
		return sumLanes[T]
	}
	return func(lanes *[tensor.Lanes]T, x []T) {
		if whole := len(x) - len(x)%tensor.Lanes; whole > 0 {
			take(lanes, &x[0], whole)
			x = x[whole:]
		}
		sumLanes(lanes, x)
	}
}
