package eltwise

import (
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// compareFunc is a comparison, written out as the commonest functions are.
func compareFunc[T mem.Ordered](fn tensor.Fn) Func {
	switch fn {
	case tensor.Eq:
		return binary(func(dst []uint8, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = truth(x[i] == y[i])
			}
		})
	case tensor.Lt:
		return binary(func(dst []uint8, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = truth(x[i] < y[i])
			}
		})
	case tensor.Le:
		return binary(func(dst []uint8, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = truth(x[i] <= y[i])
			}
		})
	}
	return nil
}

func truth(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
