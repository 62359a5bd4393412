package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Counting: start + i·delta.

var _ = define(
	lower.Operator{Name: "Range", Min: 3, Max: 3, Outputs: 1, Attrs: []graph.Attr{graph.Int("stash_type", int(tensor.Float32))}, Lower: lowerRange},
)

// lowerRange gives start + i·delta; with halves that is computed in float32.
func lowerRange(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	if err := wantOneType(c, 0); err != nil {
		return nil, err
	}
	t := c.In[0].Type
	var in [3]tensor.Word
	for i := range in {
		x, err := c.Constant(i)
		if err != nil {
			return nil, err
		}
		if x.Len() != 1 || !t.Numeric() {
			return nil, fmt.Errorf("input %q is %v%v, but should be one number", c.Inputs[i], t, x.Shape)
		}
		in[i] = x.At(0)
	}
	n, err := steps(t, in[0], in[1], in[2])
	if err != nil {
		return nil, err
	}
	v, err := rangeView(e, n)
	if err != nil {
		return nil, err
	}
	of := t // that it is computed in
	if t.Half() {
		switch c.Int("stash_type") {
		case int(tensor.Float32):
			of = tensor.Float32
		case int(t):
		default:
			return nil, fmt.Errorf("stash_type %d is not supported; use 1 (float32)", c.Int("stash_type"))
		}
	}
	cast := func(v lower.View, to tensor.DType) lower.View {
		if err == nil && v.Type != to {
			v, err = e.Map(tensor.Cast, to, v)
		}
		return v
	}
	term := func(i int) lower.View {
		x := tensor.Must(tensor.New(t, tensor.Shape{}))
		x.Set(0, in[i])
		return cast(e.Const(x), of)
	}
	delta, start := term(2), term(0)
	if v = cast(v, of); err == nil {
		v, err = e.Map(tensor.Mul, of, v, delta)
	}
	if err == nil {
		v, err = e.Map(tensor.Add, of, v, start)
	}
	return one(cast(v, t), err)
}

// steps returns how many steps of delta lead from start to below limit.
func steps(t tensor.DType, start, limit, delta tensor.Word) (int, error) {
	refuse := fmt.Errorf("the range has no end; its limits must be numbers and its step not 0")
	n := 0.0
	switch {
	case t.Float():
		n = math.Ceil((tensor.FloatOf(t, limit) - tensor.FloatOf(t, start)) / tensor.FloatOf(t, delta))
	case t.Unsigned():
		if delta == 0 {
			return 0, refuse
		}
		if limit > start {
			n = float64((limit-start-1)/delta + 1)
		}
	default:
		from, to, by := int64(start), int64(limit), int64(delta)
		switch {
		case by == 0:
			return 0, refuse
		case by > 0 && to > from:
			n = float64((uint64(to)-uint64(from)-1)/uint64(by) + 1)
		case by < 0 && to < from:
			n = float64((uint64(from)-uint64(to)-1)/-uint64(by) + 1)
		}
	}
	switch {
	case n != n || math.IsInf(n, 0):
		return 0, refuse
	case n > tensor.MaxDim:
		return 0, fmt.Errorf("the range has more than 2^40 elements")
	}
	return int(max(n, 0)), nil
}
