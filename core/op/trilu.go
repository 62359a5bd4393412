package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Triangles and diagonals of matrices.

var _ = define(
	lower.Operator{Name: "Trilu", Min: 1, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("upper", 1)}, Expand: expandTrilu},
	lower.Operator{Name: "EyeLike", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("dtype", 0), graph.Int("k", 0)}, Expand: expandEyeLike},
)

// diagonals writes column − row of each element of the matrices of shape s.
func diagonals(b *graph.Builder, s tensor.Shape) string {
	m := s[len(s)-2:]
	return b.Op("Sub", positions(b, m, 1), positions(b, m, 0))
}

func expandTrilu(c *lower.Call, b *graph.Builder) ([]string, error) {
	s := c.In[0].Shape
	if len(s) < 2 {
		return nil, fmt.Errorf("input %q has shape %v, but should be matrices", c.Inputs[0], s)
	}
	k := int64Const(b, 0)
	if c.Has(1) {
		if c.In[1].Type != tensor.Int64 || c.In[1].Shape.Elements() != 1 {
			return nil, fmt.Errorf("input %q is %v%v, but should be one int64", c.Inputs[1], c.In[1].Type, c.In[1].Shape)
		}
		k = reshaped(b, c.Inputs[1], c.In[1].Shape, tensor.Shape{})
	}
	keep := "LessOrEqual"
	if c.Flag("upper") {
		keep = "GreaterOrEqual"
	}
	inside := b.Op(keep, diagonals(b, s), k)
	return []string{b.Op("Where", inside, c.Inputs[0], b.Const(scalarOf(c.In[0].Type, 0)))}, nil
}

func expandEyeLike(c *lower.Call, b *graph.Builder) ([]string, error) {
	s := c.In[0].Shape
	if len(s) != 2 {
		return nil, fmt.Errorf("input %q has shape %v, but should be a matrix", c.Inputs[0], s)
	}
	to := int(c.In[0].Type)
	if c.Node.Attr("dtype") != nil {
		to = c.Int("dtype")
	}
	return []string{b.With(graph.Int("to", to)).Op("Cast", b.Op("Equal", diagonals(b, s), int64Const(b, c.Int("k"))))}, nil
}
