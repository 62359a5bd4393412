package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

var _ = define(
	lower.Operator{Name: "ArgMax", Min: 1, Max: 1, Outputs: 1, Attrs: argAttrs, Lower: lowerArgMax},
	lower.Operator{Name: "ArgMin", Min: 1, Max: 1, Outputs: 1, Attrs: argAttrs,
		// The greatest of what is turned around: −x, or all bits of an integer.
		Expand: func(c *lower.Call, b *graph.Builder) ([]string, error) {
			turn := "BitwiseNot"
			if c.In[0].Type.Float() {
				turn = "Neg"
			}
			return []string{b.With(c.Attrs...).Op("ArgMax", b.Op(turn, c.Inputs[0]))}, nil
		}},
)

var argAttrs = []graph.Attr{graph.Int("axis", 0), graph.Int("keepdims", 1), graph.Int("select_last_index", 0)}

func lowerArgMax(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	if !c.In[0].Type.Numeric() {
		return nil, fmt.Errorf("it does not take %v", c.In[0].Type)
	}
	a, err := axisOf(c.Int("axis"), len(c.In[0].Shape))
	if err != nil {
		return nil, err
	}
	last := tensor.Word(0)
	if c.Flag("select_last_index") {
		last = 1
	}
	v, err := e.Fold(tensor.FoldArgMax, tensor.Int64, c.In[0], []int{a}, last)
	if err != nil || c.Flag("keepdims") {
		return []lower.View{v}, err
	}
	return one(dropAxes(e, v, []int{a}))
}
