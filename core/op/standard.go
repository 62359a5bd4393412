package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Normalisation to mean 0 and variance 1, or to a mean square of 1.

func epsilonIs(v float32) graph.Attr { return graph.Float("epsilon", v) }

var stashAttr = graph.Int("stash_type", int(tensor.Float32))

var _ = define(
	lower.Operator{Name: "LayerNormalization", Min: 2, Max: 3, Outputs: 3, Expand: expandLayerNorm, Grad: layerNormGrad, Attrs: []graph.Attr{
		graph.Int("axis", -1), epsilonIs(1e-5), stashAttr,
	}},
	lower.Operator{Name: "RMSNormalization", Min: 2, Max: 2, Outputs: 1, Expand: expandRMSNorm, Attrs: []graph.Attr{
		graph.Int("axis", -1), epsilonIs(1e-5), stashAttr,
	}},
	lower.Operator{Name: "GroupNormalization", Min: 3, Max: 3, Outputs: 1, Expand: expandGroupNorm, Attrs: []graph.Attr{
		graph.Int("num_groups", 0), epsilonIs(1e-5), stashAttr,
	}},
	lower.Operator{Name: "InstanceNormalization", Min: 3, Max: 3, Outputs: 1, Expand: inFloat32(expandInstanceNorm), Attrs: []graph.Attr{epsilonIs(1e-5)}},
	lower.Operator{Name: "BatchNormalization", Min: 5, Max: 5, Outputs: 3, Expand: expandBatchNorm, Settings: []int{3, 4}, Attrs: []graph.Attr{
		epsilonIs(1e-5), graph.Float("momentum", 0.9), graph.Int("training_mode", 0),
	}},
	lower.Operator{Name: "MeanVarianceNormalization", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Ints("axes", 0, 2, 3)}, Expand: inFloat32(expandMeanVariance)},
)

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

// channelCount returns the number of channels of the first input, which are on its
// second axis, once it has seen that the inputs from the second on give one
// number to each. A tensor with one axis has one channel.
func channelCount(c *lower.Call, rank int) (int, error) {
	x := c.In[0].Shape
	if len(x) < rank {
		return 0, fmt.Errorf("input %q has shape %v, but should have at least %d axes", c.Inputs[0], x, rank)
	}
	n := 1
	if len(x) > 1 {
		n = x[1]
	}
	for i, v := range c.In[1:] {
		if !v.Shape.Equal(tensor.Shape{n}) {
			return 0, fmt.Errorf("input %q has shape %v, but should have %v, a number for each channel", c.Inputs[i+1], v.Shape, tensor.Shape{n})
		}
	}
	return n, wantFloats(c)
}

// perChannel gives a value of one number for each channel the rank of the first
// input.
func perChannel(c *lower.Call, b *graph.Builder, value string) string {
	rank := len(c.In[0].Shape)
	if rank == 1 {
		return value
	}
	return b.Op("Unsqueeze", value, b.Ints(slices.Delete(upTo(rank), 1, 2)...))
}

// byChannel writes x·scale + bias, which are the second and the third input.
func byChannel(c *lower.Call, b *graph.Builder, x string) string {
	return b.Op("Add", b.Op("Mul", x, perChannel(c, b, c.Inputs[1])), perChannel(c, b, c.Inputs[2]))
}

func expandGroupNorm(c *lower.Call, b *graph.Builder) ([]string, error) {
	n, err := channelCount(c, 2)
	if err != nil {
		return nil, err
	}
	stash, err := stashType(c)
	if err != nil {
		return nil, err
	}
	groups := c.Int("num_groups")
	if groups < 1 || n%groups != 0 {
		return nil, fmt.Errorf("%d channels do not make %d groups", n, groups)
	}
	x, t := c.In[0].Shape, c.In[0].Type
	grouped := tensor.Shape{x[0], groups, n / groups * x[2:].Elements()}
	value := reshaped(b, converted(b, c.Inputs[0], t, stash), x, grouped)
	_, _, unit := standardize(c, b, value, stash, []int{2})
	return []string{byChannel(c, b, converted(b, reshaped(b, unit, grouped, x), stash, t))}, nil
}

func expandInstanceNorm(c *lower.Call, b *graph.Builder) ([]string, error) {
	if _, err := channelCount(c, 3); err != nil {
		return nil, err
	}
	_, _, unit := standardize(c, b, c.Inputs[0], c.In[0].Type, upTo(len(c.In[0].Shape))[2:])
	return []string{byChannel(c, b, unit)}, nil
}

// expandBatchNorm writes (x − mean)/√(variance + ε)·scale + bias by channel, in
// float32, or float64 if x is. In training mode mean and variance are those of
// x, and the running ones move towards them.
func expandBatchNorm(c *lower.Call, b *graph.Builder) ([]string, error) {
	if _, err := channelCount(c, 1); err != nil {
		return nil, err
	}
	training := c.Flag("training_mode")
	if !training && slices.ContainsFunc(c.Outputs[1:], func(o string) bool { return o != "" }) {
		return nil, fmt.Errorf("it gives running statistics in training_mode only")
	}
	t := tensor.Float32
	if c.In[0].Type == tensor.Float64 {
		t = tensor.Float64
	}
	in := make([]string, 5)
	for i, v := range c.In {
		if in[i] = converted(b, c.Inputs[i], v.Type, t); i > 0 {
			in[i] = perChannel(c, b, in[i])
		}
	}
	mean, variance := in[3], in[4]
	d := b.Op("Sub", in[0], mean)
	if training {
		over := upTo(len(c.In[0].Shape))
		if len(over) > 1 {
			over = slices.Delete(over, 1, 2)
		}
		mean, d, variance = deviation(b, in[0], over)
	}
	unit := b.Op("Mul", d, inverseRoot(c, b, variance, t))
	out := []string{converted(b, b.Op("Add", b.Op("Mul", unit, in[1]), in[2]), t, c.In[0].Type)}
	if !training {
		return out, nil
	}
	momentum := c.Float("momentum")
	old, now := b.Const(floatOf(t, float64(momentum))), b.Const(floatOf(t, float64(1-momentum)))
	for i, value := range []string{mean, variance} {
		running := b.Op("Add", b.Op("Mul", in[3+i], old), b.Op("Mul", value, now))
		s := c.In[3+i].Shape
		out = append(out, converted(b, b.Op("Reshape", running, b.Ints(s...)), t, c.In[3+i].Type))
	}
	return out, nil
}

// expandMeanVariance writes (x − mean)/(√variance + 10⁻⁹).
func expandMeanVariance(c *lower.Call, b *graph.Builder) ([]string, error) {
	if err := wantFloats(c); err != nil {
		return nil, err
	}
	over, err := axesOf(toInts(c.AttrOrDefault("axes").Ints), len(c.In[0].Shape))
	if err != nil {
		return nil, err
	}
	if len(over) == 0 {
		over = upTo(len(c.In[0].Shape))
	}
	_, d, variance := deviation(b, c.Inputs[0], over)
	return []string{b.Op("Div", d, b.Op("Add", b.Op("Sqrt", variance), floatLike(c, b, 1e-9)))}, nil
}
