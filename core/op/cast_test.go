package op_test

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "BitCast to int32", op: "BitCast", attrs: to(tensor.Int32), in: []arg{f(6)}, want: pointwise(func(x []float64) float64 { return float64(int32(math.Float32bits(float32(x[0])))) })},
	sample{name: "BitCast to uint8", op: "BitCast", attrs: to(tensor.Uint8), in: []arg{ints(tensor.Int8, -9, 9, 6)}, want: pointwise(func(x []float64) float64 { return float64(uint8(int8(x[0]))) })},
	sample{name: "BitCast to float64", op: "BitCast", attrs: to(tensor.Float64), in: []arg{given(tensor.Int64, []int{2}, 0x3ff0000000000000, 0)}, want: func([]array) []array { return []array{{[]int{2}, []float64{1, 0}}} }},
	sample{name: "CastLike", op: "CastLike", in: []arg{f(6), few(2)}, want: func(in []array) []array {
		return pointwise(func(x []float64) float64 { return math.Trunc(x[0]) })(in[:1])
	}},
	sample{name: "CastLike, float32", op: "CastLike", in: []arg{f(6), f(2)}, want: func(in []array) []array { return in[:1] }},
	sample{name: "Cast, attributes of small floats", op: "Cast", attrs: []graph.Attr{graph.String("round_mode", "down"), graph.Int("saturate", 0), graph.Int("to", int(tensor.Uint8))},
		in: []arg{within(0, 9, 6)}, want: pointwise(func(x []float64) float64 { return math.Trunc(x[0]) })},
	sample{name: "Cast to int32", op: "Cast", attrs: []graph.Attr{graph.Int("to", int(tensor.Int32))}, in: []arg{f(6)},
		want: pointwise(func(x []float64) float64 { return math.Trunc(x[0]) })},
	sample{name: "Cast to float32", op: "Cast", attrs: []graph.Attr{graph.Int("to", int(tensor.Float32))}, in: []arg{few(6)},
		want: pointwise(func(x []float64) float64 { return x[0] })},
	sample{name: "Cast to bool", op: "Cast", attrs: []graph.Attr{graph.Int("to", int(tensor.Bool))}, in: []arg{few(6)}, want: truth(func(x, _ float64) bool { return x != 0 })},
	sample{name: "Cast to the same", op: "Cast", attrs: []graph.Attr{graph.Int("to", int(tensor.Float32))}, in: []arg{f(6)},
		want: pointwise(func(x []float64) float64 { return x[0] })},
)

var _ = withoutGradient("BitCast")

var _ = refuse(
	refusal{"element type 8 is not supported", "Cast", []graph.Attr{graph.Int("to", 8)}, []arg{f(2)}, 1},
	refusal{"elements of different sizes", "BitCast", to(tensor.Int64), []arg{f(2)}, 1},
)
