package cpu

import (
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// compareLoop is written out, as the commonest loops are.
func compareLoop[T mem.Ordered](fn tensor.Fn) loop {
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
