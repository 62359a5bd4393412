package values

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Within returns an error if a record is beyond the least and the greatest value of an input, two for each name.
func Within(records *graph.State, bounds map[string][]float64) error {
	for _, name := range slices.Sorted(maps.Keys(bounds)) {
		i := slices.IndexFunc(records.Slots, func(x graph.Slot) bool { return x.Name == name })
		if i < 0 {
			return fmt.Errorf("problem.within names %q, and there are no records of it", name)
		}
		t, b := records.Tensors[i], bounds[name]
		for j := range t.Len() {
			if x := number(t, j); !(b[0] <= x && x <= b[1]) {
				return fmt.Errorf("%s is %v in record %d, and problem.within says %v to %v: the model is not made for it", name, x, j/(t.Len()/t.Shape[0]), b[0], b[1])
			}
		}
	}
	return nil
}

// number returns an element as a number.
func number(t *tensor.Tensor, i int) float64 {
	if t.Type.Integer() || t.Type == tensor.Bool {
		return float64(int64(t.At(i)))
	}
	return tensor.FloatOf(t.Type, t.At(i))
}

// NotFinite counts the records of which an element is infinite or not a number.
func NotFinite(records *graph.State) (n int) {
	for r := range records.Slots[0].Shape[0] {
		if slices.ContainsFunc(records.Tensors, func(t *tensor.Tensor) bool { return !finite(t, r) }) {
			n++
		}
	}
	return n
}

// finite reports whether all elements of a record are finite.
func finite(t *tensor.Tensor, record int) bool {
	if t.Type.Integer() || t.Type == tensor.Bool {
		return true
	}
	each := t.Len() / t.Shape[0]
	for i := range each {
		if x := tensor.FloatOf(t.Type, t.At(record*each+i)); math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}
