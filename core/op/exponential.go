package op

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// The exponential function, its inverse and the error function: maps of floats.

var _ = define(
	lower.Operator{Name: "Exp", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.ExpF),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{b.Op("Mul", dy[0], c.Outputs[0])}, nil
		}},
	lower.Operator{Name: "Log", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.LogF),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{b.Op("Div", dy[0], c.Inputs[0])}, nil
		}},
	lower.Operator{Name: "Erf", Min: 1, Max: 1, Outputs: 1, Lower: floatMap(tensor.ErfF),
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			x := c.Inputs[0]
			bell := b.Op("Exp", b.Op("Neg", b.Op("Mul", x, x)))
			return []string{b.Op("Mul", dy[0], b.Op("Mul", bell, b.Scalar(2/math.SqrtPi)))}, nil
		}},
)
