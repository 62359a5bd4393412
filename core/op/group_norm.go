package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Normalisation of each channel, or group of channels, to mean 0 and variance 1.

var _ = define(
	lower.Operator{Name: "GroupNormalization", Min: 3, Max: 3, Outputs: 1, Expand: expandGroupNorm, Attrs: []graph.Attr{
		graph.Int("num_groups", 0), epsilonIs(1e-5), stashAttr,
	}},
	lower.Operator{Name: "InstanceNormalization", Min: 3, Max: 3, Outputs: 1, Expand: inFloat32(expandInstanceNorm), Attrs: []graph.Attr{epsilonIs(1e-5)}},
)

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
