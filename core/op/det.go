package op

import (
	"fmt"
	"math/bits"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
)

var _ = define(
	lower.Operator{Name: "Det", Min: 1, Max: 1, Outputs: 1, Expand: inFloat32(expandDet)},
)

// maxDet bounds the matrices of which there are determinants: the products
// double with each row.
const maxDet = 8

// expandDet writes the determinant of the last two axes by the cofactors of its
// rows, from the last row upwards: of each set of columns once.
func expandDet(c *lower.Call, b *graph.Builder) ([]string, error) {
	s := c.In[0].Shape
	if len(s) < 2 || s[len(s)-1] != s[len(s)-2] || s[len(s)-1] < 1 || !c.In[0].Type.Float() {
		return nil, fmt.Errorf("input %q is %v%v, but should hold square matrices of floats", c.Inputs[0], c.In[0].Type, s)
	}
	n, lead := s[len(s)-1], s[:len(s)-2]
	if n > maxDet {
		return nil, fmt.Errorf("the determinant of %d × %d is not supported, at most %d × %d", n, n, maxDet, maxDet)
	}
	flat := append(lead.Clone(), n*n)
	cells := b.With(graph.Int("axis", len(lead)), graph.Int("num_outputs", n*n)).Ops("Split", n*n, reshaped(b, c.Inputs[0], s, flat)) // row by row
	minors := make([]string, 1<<n)
	for set := 1; set < len(minors); set++ {
		row := n - bits.OnesCount(uint(set))
		for column, sign := 0, 1; column < n; column++ {
			if set>>column&1 == 0 {
				continue
			}
			term := cells[row*n+column]
			if rest := minors[set&^(1<<column)]; rest != "" {
				term = b.Op("Mul", term, rest)
			}
			switch {
			case minors[set] == "":
				minors[set] = term
			case sign > 0:
				minors[set] = b.Op("Add", minors[set], term)
			default:
				minors[set] = b.Op("Sub", minors[set], term)
			}
			sign = -sign
		}
	}
	return []string{reshaped(b, minors[len(minors)-1], append(lead.Clone(), 1), lead)}, nil
}
