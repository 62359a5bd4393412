package eltwise

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
)

// FoldIdentity returns the padding of a fold's operand: a term that changes nothing.
func FoldIdentity(p *tensor.Primitive) tensor.Word {
	t := p.Args[0].Type
	switch p.Fn {
	case tensor.FoldProd:
		if t.Float() {
			return tensor.FloatWord(t, 1)
		}
		return 1
	case tensor.FoldMax, tensor.FoldMin:
		return extreme(t, p.Fn == tensor.FoldMin)
	}
	return 0
}

// extreme returns the greatest or the least value of t.
func extreme(t tensor.DType, greatest bool) tensor.Word {
	bits := uint(8 * t.Size())
	switch {
	case t.Float() && greatest:
		return tensor.FloatWord(t, math.Inf(1))
	case t.Float():
		return tensor.FloatWord(t, math.Inf(-1))
	case t.Unsigned() && greatest:
		return math.MaxUint64 >> (64 - bits)
	case t.Unsigned():
		return 0
	case greatest:
		return math.MaxInt64 >> (64 - bits)
	}
	return tensor.Word(int64(math.MinInt64) >> (64 - bits))
}
