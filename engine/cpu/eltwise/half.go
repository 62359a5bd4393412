package eltwise

import "github.com/tally-network/tally/core/tensor"

// computes reports whether a function computes with numbers, and does not only
// move or convert what it reads.
func computes(fn tensor.Fn) bool {
	return fn != tensor.Where && fn != tensor.Cast && fn != tensor.Bits && fn != tensor.Narrow
}

// ComputeType returns the type in which p computes its result.
func ComputeType(p *tensor.Primitive) tensor.DType {
	if p.Type.Half() && computes(p.Fn) {
		return tensor.Float32
	}
	return p.Type
}

// Widens reports whether p computes operands of type t as float32.
func Widens(p *tensor.Primitive, t tensor.DType) bool {
	return t.Half() && (computes(p.Fn) || p.Fn == tensor.Narrow || p.Fn == tensor.Cast && p.Type != t)
}
