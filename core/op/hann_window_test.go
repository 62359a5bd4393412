package op_test

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "HannWindow", op: "HannWindow", in: []arg{one(7)}, want: windowed(7, 7, 0.5, 0.5, 0)},
	sample{name: "HammingWindow", op: "HammingWindow", attrs: []graph.Attr{graph.Int("periodic", 0)}, in: []arg{one(8)}, want: windowed(8, 7, 25./46, 21./46, 0)},
	sample{name: "BlackmanWindow", op: "BlackmanWindow", attrs: []graph.Attr{graph.Int("output_datatype", int(tensor.Float64))}, in: []arg{one(10)}, want: windowed(10, 10, 0.42, 0.5, 0.08)},
)

var _ = withoutGradient("BlackmanWindow", "HammingWindow", "HannWindow")

// windowed is the meaning of a window of n elements that repeats after period.
func windowed(n, period int, p, q, r float64) func([]array) []array {
	return func([]array) []array {
		return []array{filled([]int{n}, func(at []int) float64 {
			x := 2 * math.Pi * float64(at[0]) / float64(period)
			return p - q*math.Cos(x) + r*math.Cos(2*x)
		})}
	}
}
