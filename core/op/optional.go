package op

import (
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Values that may be missing. Which of them are is known when a graph is lowered: a
// missing one is an input without a name.

var _ = define(
	identity("Optional"),           // of an element; one of none would need a type beside tensors'
	identity("OptionalGetElement"), // every value is there
	lower.Operator{Name: "OptionalHasElement", Min: 0, Max: 1, Outputs: 1,
		Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
			t, err := tensor.Bools(tensor.Shape{}, c.Has(0))
			if err != nil {
				return nil, err
			}
			return []lower.View{e.Const(t)}, nil
		}},
)
