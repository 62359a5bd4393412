package op_test

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	elementwise("Exp", f(2, 5), math.Exp),
	elementwise("Log", positive(2, 5), math.Log),
	elementwise("Erf", f(2, 5), math.Erf),
)

var _ = refuse(
	refusal{"is int64, but should be a float", "Exp", nil, []arg{few(2)}, 1},
	refusal{"not defined on float64; cast", "Erf", nil, []arg{as(tensor.Float64, f(2))}, 1},
)
