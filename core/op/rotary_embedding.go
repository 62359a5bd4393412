package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// The rotation by which queries and keys know their places.

var _ = define(
	lower.Operator{Name: "RotaryEmbedding", Min: 3, Max: 4, Outputs: 1, Expand: inFloat32(expandRotaryEmbedding), Attrs: []graph.Attr{
		graph.Int("interleaved", 0), graph.Int("num_heads", 0), graph.Int("rotary_embedding_dim", 0),
	}},
)

// expandRotaryEmbedding turns each pair of elements by the angle of its place:
// (cos·x − sin·y, sin·x + cos·y). Pairs are neighbours if interleaved, else an
// element of the first half and one of the second.
func expandRotaryEmbedding(c *lower.Call, b *graph.Builder) ([]string, error) {
	if !c.In[0].Type.Float() {
		return nil, fmt.Errorf("it does not take %v", c.In[0].Type)
	}
	x, s, err := unpackHeads(b, c.Inputs[0], c.In[0].Shape, c.Int("num_heads"))
	if err != nil {
		return nil, err
	}
	batch, places, size := s[0], s[2], s[3]
	turned := c.Int("rotary_embedding_dim")
	if turned == 0 {
		turned = size
	}
	if turned < 0 || turned > size || turned%2 != 0 {
		return nil, fmt.Errorf("%d of %d elements cannot be turned in pairs", turned, size)
	}
	var angle [2]string
	for i := range angle {
		table := c.In[1+i]
		angle[i] = c.Inputs[1+i]
		have := table.Shape
		if c.Has(3) {
			if len(have) != 2 || !c.In[3].Shape.Equal(tensor.Shape{batch, places}) {
				return nil, fmt.Errorf("input %q has shape %v and the positions %v, but should have [positions %d] and [%d %d]", c.Inputs[1+i], have, c.In[3].Shape, turned/2, batch, places)
			}
			angle[i] = b.With(graph.Int("axis", 0)).Op("Gather", angle[i], c.Inputs[3])
			have = tensor.Shape{batch, places, have[1]}
		}
		if !have.Equal(tensor.Shape{batch, places, turned / 2}) || table.Type != c.In[0].Type {
			return nil, fmt.Errorf("input %q is %v%v and does not fit %v%v, of which %d elements are turned", c.Inputs[1+i], table.Type, table.Shape, c.In[0].Type, c.In[0].Shape, turned)
		}
		angle[i] = b.Op("Unsqueeze", angle[i], b.Ints(1))
	}
	cos, sin := angle[0], angle[1]
	part := func(from, to, step int) string {
		return b.Op("Slice", x, b.Ints(from), b.Ints(to), b.Ints(3), b.Ints(step))
	}
	first, second := part(0, turned/2, 1), part(turned/2, turned, 1)
	if c.Flag("interleaved") {
		first, second = part(0, turned, 2), part(1, turned, 2)
	}
	first, second = b.Op("Sub", b.Op("Mul", cos, first), b.Op("Mul", sin, second)), b.Op("Add", b.Op("Mul", sin, first), b.Op("Mul", cos, second))
	last := b.With(graph.Int("axis", -1))
	y := ""
	if c.Flag("interleaved") {
		y = last.Op("Concat", b.Op("Unsqueeze", first, b.Ints(4)), b.Op("Unsqueeze", second, b.Ints(4)))
		y = reshaped(b, y, tensor.Shape{batch, s[1], places, turned / 2, 2}, tensor.Shape{batch, s[1], places, turned})
	} else {
		y = last.Op("Concat", first, second)
	}
	if turned < size {
		y = last.Op("Concat", y, part(turned, size, 1))
	}
	if len(c.In[0].Shape) == 3 {
		y = packed(b, y, s)
	}
	return []string{y}, nil
}
