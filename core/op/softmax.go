package op

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
)

// Softmax and what is related to it.

var _ = define(
	// eˣ⁻ᵐ / Σ eˣ⁻ᵐ, where m is the maximum
	lower.Operator{Name: "Softmax", Min: 1, Max: 1, Outputs: 1, Attrs: softmaxAttrs,
		Expand: inFloat32(func(c *lower.Call, b *graph.Builder) ([]string, error) {
			_, e, sum, err := exponentials(c, b)
			return []string{b.Op("Div", e, sum)}, err
		}),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			a, err := axisOf(c.Int("axis"), len(c.In[0].Shape))
			y := c.Outputs[0]
			mean := reduceAlong(b, "ReduceSum", b.Op("Mul", dy[0], y), a)
			return []string{b.Op("Mul", b.Op("Sub", dy[0], mean), y)}, err
		}},
	// x − m − log Σ eˣ⁻ᵐ
	lower.Operator{Name: "LogSoftmax", Min: 1, Max: 1, Outputs: 1, Attrs: softmaxAttrs,
		Expand: inFloat32(func(c *lower.Call, b *graph.Builder) ([]string, error) {
			d, _, sum, err := exponentials(c, b)
			return []string{b.Op("Sub", d, b.Op("Log", sum))}, err
		}),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			a, err := axisOf(c.Int("axis"), len(c.In[0].Shape))
			total := reduceAlong(b, "ReduceSum", dy[0], a)
			p := b.Op("Exp", c.Outputs[0])
			return []string{b.Op("Sub", dy[0], b.Op("Mul", p, total))}, err
		}},
	// 1 at the first maximum along the axis, 0 elsewhere.
	lower.Operator{Name: "Hardmax", Min: 1, Max: 1, Outputs: 1, Attrs: softmaxAttrs, Grad: constantGrad,
		Expand: func(c *lower.Call, b *graph.Builder) ([]string, error) {
			a, err := axisOf(c.Int("axis"), len(c.In[0].Shape))
			if err != nil {
				return nil, err
			}
			first := b.With(graph.Int("axis", a)).Op("ArgMax", c.Inputs[0])
			return []string{b.Cast(b.Op("Equal", first, positions(b, c.In[0].Shape, a)), c.In[0].Type)}, wantFloats(c)
		}},
)

var softmaxAttrs = []graph.Attr{graph.Int("axis", -1)}

// exponentials writes x − m, eˣ⁻ᵐ and its sum.
func exponentials(c *lower.Call, b *graph.Builder) (d, e, sum string, err error) {
	a, err := axisOf(c.Int("axis"), len(c.In[0].Shape))
	if err != nil {
		return "", "", "", err
	}
	d = b.Op("Sub", c.Inputs[0], reduceAlong(b, "ReduceMax", c.Inputs[0], a))
	e = b.Op("Exp", d)
	return d, e, reduceAlong(b, "ReduceSum", e, a), nil
}
