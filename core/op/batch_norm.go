package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Normalisation over the batch.

var _ = define(
	lower.Operator{Name: "BatchNormalization", Min: 5, Max: 5, Outputs: 3, Expand: expandBatchNorm, Settings: []int{3, 4}, Attrs: []graph.Attr{
		epsilonIs(1e-5), graph.Float("momentum", 0.9), graph.Int("training_mode", 0),
	}},
	lower.Operator{Name: "MeanVarianceNormalization", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Ints("axes", 0, 2, 3)}, Expand: inFloat32(expandMeanVariance)},
)

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
