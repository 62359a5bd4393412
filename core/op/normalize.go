package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Normalisation along axes.

var softmaxAttrs = []graph.Attr{graph.Int("axis", -1)}

var _ = define(
	// eˣ⁻ᵐ / Σ eˣ⁻ᵐ, where m is the maximum
	Def{Name: "Softmax", Min: 1, Max: 1, Outputs: 1, Attrs: softmaxAttrs,
		Expand: wide(func(c *Call, b *graph.Builder) ([]string, error) {
			_, e, sum, err := c.exponentials(b)
			return []string{b.Op("Div", e, sum)}, err
		}),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			a, err := axisOf(c.int("axis"), len(c.In[0].Shape))
			y := c.Outputs[0]
			mean := along(b, "ReduceSum", b.Op("Mul", dy[0], y), a)
			return []string{b.Op("Mul", b.Op("Sub", dy[0], mean), y)}, err
		}},
	// x − m − log Σ eˣ⁻ᵐ
	Def{Name: "LogSoftmax", Min: 1, Max: 1, Outputs: 1, Attrs: softmaxAttrs,
		Expand: wide(func(c *Call, b *graph.Builder) ([]string, error) {
			d, _, sum, err := c.exponentials(b)
			return []string{b.Op("Sub", d, b.Op("Log", sum))}, err
		}),
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			a, err := axisOf(c.int("axis"), len(c.In[0].Shape))
			total := along(b, "ReduceSum", dy[0], a)
			p := b.Op("Exp", c.Outputs[0])
			return []string{b.Op("Sub", dy[0], b.Op("Mul", p, total))}, err
		}},
	Def{Name: "LayerNormalization", Min: 2, Max: 3, Outputs: 3, Expand: expandLayerNorm, Grad: layerNormGrad, Attrs: []graph.Attr{
		graph.Int("axis", -1), graph.Float("epsilon", 1e-5), graph.Int("stash_type", int(tensor.Float32)),
	}},
)

// along applies a reduction over the given axes, which keep extent 1.
func along(b *graph.Builder, op, value string, over ...int) string {
	return b.With(graph.Int("keepdims", 1)).Op(op, value, b.Ints(over...))
}

// exponentials writes x − m, eˣ⁻ᵐ and its sum.
func (c *Call) exponentials(b *graph.Builder) (d, e, sum string, err error) {
	a, err := axisOf(c.int("axis"), len(c.In[0].Shape))
	if err != nil {
		return "", "", "", err
	}
	d = b.Op("Sub", c.Inputs[0], along(b, "ReduceMax", c.Inputs[0], a))
	e = b.Op("Exp", d)
	return d, e, along(b, "ReduceSum", e, a), nil
}

// normalized returns the axes that LayerNormalization folds: all from its axis on.
func (c *Call) normalized() ([]int, error) {
	rank := len(c.In[0].Shape)
	first, err := axisOf(c.int("axis"), rank)
	if err != nil {
		return nil, err
	}
	over := make([]int, rank-first)
	for i := range over {
		over[i] = first + i
	}
	return over, nil
}

// standardize writes mean, 1/√(variance + ε) and (x − mean)/√(variance + ε).
func (c *Call) standardize(b *graph.Builder, over []int) (mean, inverse, unit string) {
	x := c.Inputs[0]
	mean = along(b, "ReduceMean", x, over...)
	d := b.Op("Sub", x, mean)
	variance := along(b, "ReduceMean", b.Op("Mul", d, d), over...)
	inverse = b.Op("Reciprocal", b.Op("Sqrt", b.Op("Add", variance, b.Scalar(c.float("epsilon")))))
	return mean, inverse, b.Op("Mul", d, inverse)
}

func expandLayerNorm(c *Call, b *graph.Builder) ([]string, error) {
	if t := c.int("stash_type"); t != int(tensor.Float32) {
		return nil, fmt.Errorf("stash_type %d is not supported; use 1 (float32)", t)
	}
	over, err := c.normalized()
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(c.In); i++ {
		if s, err := c.In[i].Shape.Broadcast(c.In[0].Shape); err != nil || !s.Equal(c.In[0].Shape) {
			return nil, fmt.Errorf("input %q has shape %v, which does not broadcast to %v", c.Inputs[i], c.In[i].Shape, c.In[0].Shape)
		}
	}
	mean, inverse, unit := c.standardize(b, over)
	y := b.Op("Mul", unit, c.Inputs[1])
	if c.has(2) {
		y = b.Op("Add", y, c.Inputs[2])
	}
	return []string{y, mean, inverse}, nil
}

// layerNormGrad: with u the standardised input and d = dY·scale,
// dX = (d − mean(d) − u·mean(d·u)) / √(variance + ε).
func layerNormGrad(c *Call, b *graph.Builder, dy []string) ([]string, error) {
	for i, d := range dy {
		if i > 0 && d != "" || dy[0] == "" {
			return nil, fmt.Errorf("its second and third output have no gradient; leave them out of the loss")
		}
	}
	over, err := c.normalized()
	if err != nil {
		return nil, err
	}
	_, inverse, u := c.standardize(b, over)
	d := b.Op("Mul", dy[0], c.Inputs[1])
	shift := b.Op("Sub", d, along(b, "ReduceMean", d, over...))
	slant := b.Op("Mul", u, along(b, "ReduceMean", b.Op("Mul", d, u), over...))
	out := []string{
		b.Op("Mul", b.Op("Sub", shift, slant), inverse),
		c.unbroadcast(b, 1, b.Op("Mul", dy[0], u)),
	}
	if len(c.In) > 2 {
		out = append(out, "")
		if c.has(2) {
			out[2] = c.unbroadcast(b, 2, dy[0])
		}
	}
	return out, nil
}
