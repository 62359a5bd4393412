package op_test

import "math"

var _ = add(
	elementwise("Exp", f(2, 5), math.Exp),
	elementwise("Log", positive(2, 5), math.Log),
	elementwise("Erf", f(2, 5), math.Erf),
)
