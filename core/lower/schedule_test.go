package lower_test

import (
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// What was computed on the way is used up on the way, though the outputs that
// want it come last: of a long chain no more than three values are there at once,
// and the sums.
func TestMemoryGoesEarly(t *testing.T) {
	const length, large, small = 50, 64 * 64 * 4, 4
	b := graph.NewBuilder("chain")
	x := b.Input("x", tensor.Float32, tensor.Shape{64, 64})
	var sums []string
	for range length {
		x = b.Op("Tanh", x)
		sums = append(sums, b.With(graph.Int("keepdims", 0)).Op("ReduceSum", b.Op("Mul", x, x)))
	}
	p := function(t, infer(t, b, append([]string{x}, sums...)...))
	if limit := 3*large + length*small; p.Peak() > limit {
		t.Errorf("a peak of %d bytes, limit %d", p.Peak(), limit)
	}
}

// Orders are found in time that grows with the program, whatever reads what.
func BenchmarkOrder(b *testing.B) {
	g := graph.NewBuilder("star")
	x := g.Input("x", tensor.Float32, tensor.Shape{4})
	centre := g.Op("Exp", x)
	y := centre
	for range 20_000 {
		y = g.Op("Add", g.Op("Mul", y, centre), x)
	}
	typed := infer(b, g, y)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := typed.Function(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/40_000, "ns/node")
}
