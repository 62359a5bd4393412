package replay

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Distance returns how far one state is from another: the Euclidean distance over
// all elements of their float32 tensors. It ranks updates, and decides nothing that
// others must agree on.
func Distance(a, b *graph.State) float64 {
	var sum float64
	for i, x := range a.Tensors {
		if x.Type != tensor.Float32 || i >= len(b.Tensors) || b.Tensors[i].Len() != x.Len() {
			continue
		}
		for j := range x.Len() {
			d := float64(tensor.AsF32(b.Tensors[i].At(j))) - float64(tensor.AsF32(x.At(j)))
			sum += d * d
		}
	}
	return math.Sqrt(sum)
}
