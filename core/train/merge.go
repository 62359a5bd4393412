package train

import (
	"fmt"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

// Merge writes the graph that makes one state of those that the shards ended a
// round with, and its program, whose groups are the shards in order.
//
// Parameters, running statistics, moments, gradients under way and the loss become their mean: the sum in shard order,
// times 1/shards. The rest (the number of steps, products of decay rates) is a
// function of the steps done, which are the same in every shard, and is that of
// the first.
func Merge(slots []graph.Slot, shards int) (*graph.Graph, *graph.Program, error) {
	if shards < 1 || shards > maxShards {
		return nil, nil, fmt.Errorf("%d shards are not between 1 and %d", shards, maxShards)
	}
	if len(slots) > maxMerged/shards {
		return nil, nil, fmt.Errorf("%d tensors of a state times %d shards are more than %d: use fewer shards", len(slots), shards, maxMerged)
	}
	b := graph.NewBuilder("merge")
	bind := lower.Binding{Groups: shards, Slots: slots}
	for i, slot := range slots {
		value := func(shard int) string {
			bind.Inputs = append(bind.Inputs, graph.Ref{Kind: graph.RefSlot, Index: i, Group: shard})
			return b.Input(fmt.Sprintf("%d/%s", shard, slot.Name), slot.Type, slot.Shape)
		}
		next := b.With().As("next/" + slot.Name)
		merged := value(0)
		if !averaged(slot) || shards == 1 {
			merged = next.Op("Identity", merged)
		} else {
			for shard := 1; shard < shards; shard++ {
				merged = b.Op("Add", merged, value(shard))
			}
			merged = next.Op("Mul", merged, b.Scalar(1/float32(shards)))
		}
		b.Output(merged, slot.Type, slot.Shape)
		bind.Outputs = append(bind.Outputs, i)
	}
	t, err := op.InferOwn(b.Graph())
	if err != nil {
		return nil, nil, fmt.Errorf("merge graph: %w", err)
	}
	p, err := t.Program(bind)
	return t.Graph, p, err
}

// maxShards bounds the states that are merged.
const maxShards = 1 << 10

// maxMerged bounds the tensors of all states that are merged: each takes 2 KB in the
// program, so that a short order cannot make it long.
const maxMerged = 1 << 16

// averaged reports whether a slot's values are merged by their mean.
func averaged(s graph.Slot) bool {
	for _, prefix := range []string{paramPrefix, statPrefix, "m/", "v/", "g/"} {
		if strings.HasPrefix(s.Name, prefix) {
			return s.Type == tensor.Float32
		}
	}
	return s.Name == lossSlot
}
