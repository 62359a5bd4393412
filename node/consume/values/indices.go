// Package values says what records hold that a model is not made for: entries that its tables do not have, values beyond
// their bounds, and what is no finite number.
//
// Call [Indices] and [Within] before an order is posted, and [NotFinite] to warn.
//
// Invariant: errors name the first record, counted from 0.
package values

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// sameValues are the operators that only move the elements of their first input.
var sameValues = []string{"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}

// Indices returns an error if a record names an entry that a table of the model does not have, such as
// a token beyond its vocabulary. ONNX forbids such; our Gather would select zeros in silence.
func Indices(g *graph.Graph, records *graph.State) error {
	from := map[string]*tensor.Tensor{} // the records whose elements a value has, and no others
	for i, s := range records.Slots {
		if t := records.Tensors[i]; t.Type == tensor.Int32 || t.Type == tensor.Int64 {
			from[s.Name] = t
		}
	}
	for _, n := range g.Nodes {
		if len(n.Inputs) == 0 || len(n.Outputs) == 0 {
			continue
		}
		if t := from[n.Inputs[0]]; t != nil && slices.Contains(sameValues, n.Op) {
			from[n.Outputs[0]] = t
			continue
		}
		if n.Op != "Gather" || from[n.Inputs[1]] == nil || g.Const(n.Inputs[0]) == nil {
			continue
		}
		axis, table := 0, g.Const(n.Inputs[0]).Shape
		if a := n.Attr("axis"); a != nil {
			axis = int(a.Int)
		}
		if axis < 0 {
			axis += len(table)
		}
		if axis < 0 || axis >= len(table) {
			continue // whoever reads the model says so
		}
		if entry, record, found := beyond(from[n.Inputs[1]], table[axis]); found {
			return fmt.Errorf("record %d asks for entry %d of table %q of the model, which has %d: were these records made for another model, or by another tokenizer?", record, entry, n.Inputs[0], table[axis])
		}
	}
	return nil
}

// beyond returns an element that does not count n entries from either end, and its record.
func beyond(t *tensor.Tensor, n int) (entry int64, record int, found bool) {
	per := t.Len() / max(t.Shape[0], 1)
	if t.Type == tensor.Int32 {
		return first(tensor.Of[int32](t), n, per)
	}
	return first(tensor.Of[int64](t), n, per)
}

func first[T int32 | int64](all []T, n, per int) (entry int64, record int, found bool) {
	i := slices.IndexFunc(all, func(x T) bool { return int64(x) < -int64(n) || int64(x) >= int64(n) })
	if i < 0 {
		return 0, 0, false
	}
	return int64(all[i]), i / per, true
}
