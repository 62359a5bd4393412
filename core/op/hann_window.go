package op

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Windows that weight the frames of a signal.

var _ = define(
	lower.Operator{Name: "HannWindow", Min: 1, Max: 1, Outputs: 1, Attrs: windowOfAttrs, Expand: expandWindow(0.5, 0.5, 0)},
	lower.Operator{Name: "HammingWindow", Min: 1, Max: 1, Outputs: 1, Attrs: windowOfAttrs, Expand: expandWindow(25.0/46, 21.0/46, 0)},
	lower.Operator{Name: "BlackmanWindow", Min: 1, Max: 1, Outputs: 1, Attrs: windowOfAttrs, Expand: expandWindow(0.42, 0.5, 0.08)},
)

var windowOfAttrs = []graph.Attr{graph.Int("output_datatype", int(tensor.Float32)), graph.Int("periodic", 1)}

// expandWindow writes the constants p − q·cos(2πi/n) + r·cos(4πi/n).
func expandWindow(p, q, r float64) expandFunc {
	return func(c *lower.Call, b *graph.Builder) ([]string, error) {
		size, err := intInput(c, 0, 0)
		if err != nil {
			return nil, err
		}
		n := size
		if !c.Flag("periodic") {
			n = size - 1
		}
		w, err := floatTable(c, tensor.Float64, tensor.Shape{size}, func(i int) float64 {
			once, _ := turn(i, max(n, 1))
			twice, _ := turn(2*i, max(n, 1))
			return p - float64(q*once) + float64(r*twice)
		})
		if err != nil {
			return nil, err
		}
		return []string{b.With(graph.Int("to", c.Int("output_datatype"))).Op("Cast", b.Const(w))}, nil
	}
}
