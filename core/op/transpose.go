package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
)

var _ = define(
	lower.Operator{Name: "Transpose", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Ints("perm")}, Lower: lowerTranspose,
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			perm, err := permutation(c)
			back := make([]int, len(perm))
			for i, p := range perm {
				back[p] = i
			}
			return []string{b.With(graph.Ints("perm", back...)).Op("Transpose", dy[0])}, err
		}},
)

// permutation returns the order that Transpose asks for: reversed by default.
func permutation(c *lower.Call) ([]int, error) {
	rank := len(c.In[0].Shape)
	perm := make([]int, rank)
	for i := range perm {
		perm[i] = rank - 1 - i
	}
	if a := c.Node.Attr("perm"); a != nil {
		perm = toInts(a.Ints)
		sorted, err := axesOf(perm, rank)
		if err != nil || len(sorted) != rank || slices.Min(append(perm, 0)) < 0 {
			return nil, fmt.Errorf("%v does not permute %d axes", perm, rank)
		}
	}
	return perm, nil
}

func lowerTranspose(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	perm, err := permutation(c)
	if err != nil {
		return nil, err
	}
	v, err := e.Affine(c.In[0])
	if err != nil {
		return nil, err
	}
	return []lower.View{v.Transposed(perm)}, nil
}
