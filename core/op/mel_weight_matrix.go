package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

var _ = define(
	lower.Operator{Name: "MelWeightMatrix", Min: 5, Max: 5, Outputs: 1, Attrs: windowOfAttrs[:1:1], Expand: expandMelWeightMatrix},
)

// expandMelWeightMatrix writes, for each band of the mel scale, a triangle over
// the bins of a spectrum: m = 2595·log₁₀(1 + f/700).
func expandMelWeightMatrix(c *lower.Call, b *graph.Builder) ([]string, error) {
	var n [3]int // bands, length of the transform, sample rate
	for i := range n {
		var err error
		if n[i], err = intInput(c, i, 0); err != nil {
			return nil, err
		}
		if n[i] < 1 || n[i] > tensor.MaxDim {
			return nil, fmt.Errorf("input %q is %d, but should be between 1 and 2^40", c.Inputs[i], n[i])
		}
	}
	real := func(v float64) string { return b.Const(floatOf(tensor.Float64, v)) }
	wide := func(x string) string { return b.Cast(x, tensor.Float64) }
	var edge [2]string
	for i := range edge {
		if t := c.In[3+i]; !t.Type.Float() || t.Shape.Elements() != 1 {
			return nil, fmt.Errorf("input %q is %v%v, but should be one float", c.Inputs[3+i], t.Type, t.Shape)
		}
		f := b.Op("Reshape", wide(c.Inputs[3+i]), b.Ints())
		edge[i] = b.Op("Log", b.Op("Add", b.Op("Div", f, real(700)), real(1)))
	}
	step := b.Op("Div", b.Op("Sub", edge[1], edge[0]), real(float64(n[0]+2)))
	m := b.Op("Add", b.Op("Mul", wide(rangeNode(b, n[0]+2)), step), edge[0])
	f := b.Op("Mul", b.Op("Sub", b.Op("Exp", m), real(1)), real(700))
	bins := b.Op("Floor", b.Op("Div", b.Op("Mul", f, real(float64(n[1]+1))), real(float64(n[2]))))
	corner := func(i int) string { return b.Op("Slice", bins, b.Ints(i), b.Ints(i+n[0])) }
	left, top, right := corner(0), corner(1), corner(2)
	bin := b.Op("Unsqueeze", wide(rangeNode(b, n[1]/2+1)), b.Ints(1))
	between := func(lo, hi string, last string) string {
		return b.Op("And", b.Op("GreaterOrEqual", bin, lo), b.Op(last, bin, hi))
	}
	up := b.Op("Div", b.Op("Sub", bin, left), b.Op("Max", b.Op("Sub", top, left), real(1)))
	up = b.Op("Where", b.Op("Equal", left, top), real(1), up)
	down := b.Op("Div", b.Op("Sub", right, bin), b.Op("Max", b.Op("Sub", right, top), real(1)))
	y := b.Op("Where", between(left, top, "LessOrEqual"), up, real(0))
	y = b.Op("Where", between(top, right, "Less"), down, y)
	return []string{b.With(graph.Int("to", c.Int("output_datatype"))).Op("Cast", y)}, nil
}
