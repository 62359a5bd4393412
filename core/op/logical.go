package op

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Logic of bools, and the choice by one.

var _ = define(
	lower.Operator{Name: "And", Min: 2, Max: 2, Outputs: 1, Lower: logic(tensor.And)},
	lower.Operator{Name: "Or", Min: 2, Max: 2, Outputs: 1, Lower: logic(tensor.Or)},
	lower.Operator{Name: "Xor", Min: 2, Max: 2, Outputs: 1, Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
		for i := range c.In {
			if err := wantType(c, i, tensor.Bool); err != nil {
				return nil, err
			}
		}
		same, err := e.Map(tensor.Eq, tensor.Bool, c.In...)
		if err != nil {
			return nil, err
		}
		return one(e.Map(tensor.Not, tensor.Bool, same))
	}},
	lower.Operator{Name: "Not", Min: 1, Max: 1, Outputs: 1, Lower: logic(tensor.Not)},
	lower.Operator{Name: "Where", Min: 3, Max: 3, Outputs: 1,
		Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
			if err := wantType(c, 0, tensor.Bool); err != nil {
				return nil, err
			}
			if err := wantOneType(c, 1); err != nil {
				return nil, err
			}
			return one(e.Map(tensor.Where, c.In[1].Type, c.In...))
		},
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			zero := b.Scalar(0)
			return []string{
				"",
				unbroadcast(c, b, 1, b.Op("Where", c.Inputs[0], dy[0], zero)),
				unbroadcast(c, b, 2, b.Op("Where", c.Inputs[0], zero, dy[0])),
			}, nil
		}},
)

func logic(fn tensor.Fn) lowerFunc {
	return func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
		for i := range c.In {
			if err := wantType(c, i, tensor.Bool); err != nil {
				return nil, err
			}
		}
		return one(e.Map(fn, tensor.Bool, c.In...))
	}
}
