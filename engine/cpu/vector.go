package cpu

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// vector makes a loop of a kernel in the machine's instructions, which takes
// whole registers, and of the plain loop, which takes the rest. sizes are those
// of the elements of the result and the operands, in bytes; an operand that is
// not there is nil.
func vector(set *asm.Set, f asm.Map, rest loop, sizes ...int) loop {
	if f == nil {
		return rest
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
		rest(at[0], at[1], at[2], at[3], 1, n-whole)
	}
}

// foldRows makes a loop of a kernel that folds rows.
func foldRows(f asm.Fold) loop {
	return func(dst, x, _, _ unsafe.Pointer, rows, width int) { f((*float32)(dst), (*float32)(x), rows, width) }
}

// spreadLoop returns the loop that repeats elements of a type over rows.
func spreadLoop(set *asm.Set, t tensor.DType) loop {
	if f := set.Spread; f != nil && t.Size() == 4 {
		return func(dst, x, _, _ unsafe.Pointer, rows, width int) { f((*float32)(dst), (*float32)(x), rows, width) }
	}
	return bySize(t, spreads)
}

// takeLoop returns what adds terms to the lanes of a sum, from lane 0 on.
func takeLoop[T mem.Ordered](set *asm.Set) func(lanes *[tensor.Lanes]T, x []T) {
	take, ok := any((func(*[tensor.Lanes]float32, *float32, int))(set.Take)).(func(*[tensor.Lanes]T, *T, int))
	if !ok || take == nil {
		return takeTerms[T]
	}
	return func(lanes *[tensor.Lanes]T, x []T) {
		if whole := len(x) - len(x)%tensor.Lanes; whole > 0 {
			take(lanes, &x[0], whole)
			x = x[whole:]
		}
		takeTerms(lanes, x)
	}
}
