package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Normalisation of the last axes to mean 0 and variance 1, or to a mean square of 1.

var _ = define(
	lower.Operator{Name: "LayerNormalization", Min: 2, Max: 3, Outputs: 3, Expand: expandLayerNorm, Grad: layerNormGrad, Attrs: []graph.Attr{
		graph.Int("axis", -1), epsilonIs(1e-5), stashAttr,
	}},
	lower.Operator{Name: "RMSNormalization", Min: 2, Max: 2, Outputs: 1, Expand: expandRMSNorm, Attrs: []graph.Attr{
		graph.Int("axis", -1), epsilonIs(1e-5), stashAttr,
	}},
)

func epsilonIs(v float32) graph.Attr { return graph.Float("epsilon", v) }

var stashAttr = graph.Int("stash_type", int(tensor.Float32))

// deviation writes the mean over axes, what x differs from it, and the mean of
// the squares of that.
func deviation(b *graph.Builder, x string, over []int) (mean, d, variance string) {
	mean = reduceAlong(b, "ReduceMean", x, over...)
	d = b.Op("Sub", x, mean)
	return mean, d, reduceAlong(b, "ReduceMean", b.Op("Mul", d, d), over...)
}

// inverseRoot writes 1/√(variance + ε), of type t.
func inverseRoot(c *lower.Call, b *graph.Builder, variance string, t tensor.DType) string {
	epsilon := b.Const(floatOf(t, float64(c.Float("epsilon"))))
	return b.Op("Reciprocal", b.Op("Sqrt", b.Op("Add", variance, epsilon)))
}

// standardize writes mean, 1/√(variance + ε) and (x − mean)/√(variance + ε), of
// type t.
func standardize(c *lower.Call, b *graph.Builder, x string, t tensor.DType, over []int) (mean, inverse, unit string) {
	mean, d, variance := deviation(b, x, over)
	inverse = inverseRoot(c, b, variance, t)
	return mean, inverse, b.Op("Mul", d, inverse)
}

// stashType returns the type that the first stage is computed in.
func stashType(c *lower.Call) (tensor.DType, error) {
	t, err := typeNamed(c, "stash_type")
	if err == nil && !t.Float() {
		err = fmt.Errorf("stash_type is %v, but should be a float", t)
	}
	if err == nil {
		err = wantFloats(c)
	}
	return t, err
}

// normalizedAxes returns the axes that are folded: all from the attribute axis on.
func normalizedAxes(c *lower.Call) ([]int, error) {
	rank := len(c.In[0].Shape)
	first, err := axisOf(c.Int("axis"), rank)
	if err != nil {
		return nil, err
	}
	return upTo(rank)[first:], nil
}

// normalization returns the type in which a normalisation computes and the axes
// over which it does, once scale and bias have been seen to fit.
func normalization(c *lower.Call) (stash tensor.DType, over []int, err error) {
	if stash, err = stashType(c); err != nil {
		return stash, nil, err
	}
	if over, err = normalizedAxes(c); err != nil {
		return stash, nil, err
	}
	for i := 1; i < len(c.In); i++ {
		if err := wantOnto(c, i); err != nil {
			return stash, nil, err
		}
	}
	return stash, over, nil
}

func expandLayerNorm(c *lower.Call, b *graph.Builder) ([]string, error) {
	stash, over, err := normalization(c)
	if err != nil {
		return nil, err
	}
	t := c.In[0].Type
	mean, inverse, unit := standardize(c, b, converted(b, c.Inputs[0], t, stash), stash, over)
	y := b.Op("Mul", converted(b, unit, stash, t), c.Inputs[1])
	if c.Has(2) {
		y = b.Op("Add", y, c.Inputs[2])
	}
	return []string{y, mean, inverse}, nil
}

// layerNormGrad: with u the standardised input, s = 1/√(variance + ε) and
// d = dY·scale, dX = (d − mean(d) − u·mean(d·u))·s, and dMean/n − dS·s²·u/n from
// the other outputs.
func layerNormGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	over, err := normalizedAxes(c)
	if err != nil {
		return nil, err
	}
	_, inverse, u := standardize(c, b, c.Inputs[0], tensor.Float32, over)
	out := make([]string, len(c.In))
	if dy[0] != "" {
		d := b.Op("Mul", dy[0], c.Inputs[1])
		shift := b.Op("Sub", d, reduceAlong(b, "ReduceMean", d, over...))
		slant := b.Op("Mul", u, reduceAlong(b, "ReduceMean", b.Op("Mul", d, u), over...))
		out[0] = b.Op("Mul", b.Op("Sub", shift, slant), inverse)
		out[1] = unbroadcast(c, b, 1, b.Op("Mul", dy[0], u))
		if c.Has(2) {
			out[2] = unbroadcast(c, b, 2, dy[0])
		}
	}
	n := 1
	for _, a := range over {
		n *= c.In[0].Shape[a]
	}
	gain := func(g string) {
		g = b.Op("Div", g, scalarLike(c, b, n))
		if out[0] != "" {
			g = b.Op("Add", out[0], g)
		}
		out[0] = g
	}
	if len(dy) > 1 && dy[1] != "" {
		gain(b.Op("Expand", dy[1], b.Ints(c.In[0].Shape...)))
	}
	if len(dy) > 2 && dy[2] != "" {
		gain(b.Op("Neg", b.Op("Mul", b.Op("Mul", dy[2], b.Op("Mul", inverse, inverse)), u)))
	}
	return out, nil
}

// expandRMSNorm writes x/√(mean(x²) + ε)·scale, of the type of scale.
func expandRMSNorm(c *lower.Call, b *graph.Builder) ([]string, error) {
	stash, over, err := normalization(c)
	if err != nil {
		return nil, err
	}
	t := c.In[0].Type
	x := converted(b, c.Inputs[0], t, stash)
	square := reduceAlong(b, "ReduceMean", b.Op("Mul", x, x), over...)
	root := b.Op("Sqrt", b.Op("Add", square, b.Const(floatOf(stash, float64(c.Float("epsilon"))))))
	unit := converted(b, converted(b, b.Op("Div", x, root), stash, t), t, c.In[1].Type)
	return []string{b.Op("Mul", unit, c.Inputs[1])}, nil
}
