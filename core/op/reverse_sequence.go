package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
)

// Sequences of a batch, each with a length of its own.

var _ = define(
	lower.Operator{Name: "ReverseSequence", Min: 2, Max: 2, Outputs: 1, Expand: expandReverseSequence,
		Attrs: []graph.Attr{graph.Int("batch_axis", 1), graph.Int("time_axis", 0)}},
)

// expandReverseSequence gathers, at time t of a sequence of length n, from
// n−1−t if that is not before the start, else from t.
func expandReverseSequence(c *lower.Call, b *graph.Builder) ([]string, error) {
	s := c.In[0].Shape
	time, batch := c.Int("time_axis"), c.Int("batch_axis")
	if len(s) < 2 || time+batch != 1 || time*batch != 0 {
		return nil, fmt.Errorf("time axis %d and batch axis %d of shape %v; they should be axes 0 and 1", time, batch, s)
	}
	length, err := perSequence(c, b, 1, s[batch], batch, len(s))
	if err != nil {
		return nil, err
	}
	at := positions(b, s, time)
	mirrored := b.Op("Sub", b.Op("Sub", length, int64Const(b, 1)), at)
	from := b.Op("Where", b.Op("Less", at, length), mirrored, at)
	return []string{b.With(graph.Int("axis", time)).Op("GatherElements", c.Inputs[0], b.Op("Expand", from, b.Ints(s...)))}, nil
}
