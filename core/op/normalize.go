package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
)

// Normalisation along axes.

var softmaxAttrs = []graph.Attr{graph.Int("axis", -1)}

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
			return []string{castTo(b, b.Op("Equal", first, positions(b, c.In[0].Shape, a)), c.In[0].Type)}, wantFloats(c)
		}},
	lower.Operator{Name: "LpNormalization", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", -1), graph.Int("p", 2)}, Expand: inFloat32(expandLpNorm)},
	lower.Operator{Name: "LRN", Min: 1, Max: 1, Outputs: 1, Expand: inFloat32(expandLRN), Attrs: []graph.Attr{
		graph.Float("alpha", 1e-4), graph.Float("beta", 0.75), graph.Float("bias", 1), graph.Int("size", 0),
	}},
)

// reduceAlong applies a reduction over the given axes, which keep extent 1.
func reduceAlong(b *graph.Builder, op, value string, over ...int) string {
	return b.With(graph.Int("keepdims", 1)).Op(op, value, b.Ints(over...))
}

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

// expandLpNorm divides by the norm along the axis, and leaves what has none.
func expandLpNorm(c *lower.Call, b *graph.Builder) ([]string, error) {
	a, err := axisOf(c.Int("axis"), len(c.In[0].Shape))
	if err != nil {
		return nil, err
	}
	p := c.Int("p")
	if p != 1 && p != 2 {
		return nil, fmt.Errorf("p is %d, but should be 1 or 2", p)
	}
	norm := reduceAlong(b, fmt.Sprintf("ReduceL%d", p), c.Inputs[0], a)
	norm = b.Op("Where", b.Op("Equal", norm, floatLike(c, b, 0)), floatLike(c, b, 1), norm)
	return []string{b.Op("Div", c.Inputs[0], norm)}, wantFloats(c)
}

// maxRegion bounds the channels that LRN sums over.
const maxRegion = 1 << 10

// expandLRN divides by (bias + α/size·s)^β, where s is the sum of the squares in
// the channels around, the lowest first.
func expandLRN(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, size := c.In[0].Shape, c.Int("size")
	if len(x) < 2 || size < 1 || size > maxRegion {
		return nil, fmt.Errorf("it sums over %d channels of shape %v, but takes 1 to %d of [N C …]", size, x, maxRegion)
	}
	if err := wantFloats(c); err != nil {
		return nil, err
	}
	before := (size - 1) / 2
	square := b.Op("Mul", c.Inputs[0], c.Inputs[0])
	if size > 1 {
		square = b.Op("Pad", square, b.Ints(before, size-1-before), "", b.Ints(1))
	}
	sum := ""
	for i := range size {
		part := b.Op("Slice", square, b.Ints(i), b.Ints(i+x[1]), b.Ints(1))
		if sum != "" {
			part = b.Op("Add", sum, part)
		}
		sum = part
	}
	rate := floatLike(c, b, float64(c.Float("alpha"))/float64(size))
	base := b.Op("Add", b.Op("Mul", sum, rate), attrLike(c, b, "bias"))
	return []string{b.Op("Div", c.Inputs[0], b.Op("Pow", base, attrLike(c, b, "beta")))}, nil
}
