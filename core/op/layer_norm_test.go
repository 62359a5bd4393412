package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "LayerNormalization", op: "LayerNormalization", in: []arg{f(3, 8), f(8), f(8)}, want: layerNorm(1, 1e-5, 1)},
	sample{name: "LayerNormalization, two axes", op: "LayerNormalization", attrs: []graph.Attr{graph.Int("axis", 1), graph.Float("epsilon", 0.5)},
		in: []arg{f(2, 3, 4), f(3, 4), f(4)}, want: layerNorm(1, 0.5, 1)},
	sample{name: "LayerNormalization without shift", op: "LayerNormalization", in: []arg{f(3, 8), f(8)}, want: layerNorm(1, 1e-5, 1)},
	sample{name: "LayerNormalization, statistics", op: "LayerNormalization", in: []arg{f(3, 8), f(8), f(8)}, outs: 3, want: layerNorm(1, 1e-5, 3)},
	sample{name: "LayerNormalization, all axes", op: "LayerNormalization", attrs: []graph.Attr{graph.Int("axis", -3)}, in: []arg{f(2, 3, 2), f(3, 1)}, outs: 2, want: layerNorm(0, 1e-5, 2)},
	sample{name: "LayerNormalization, float16", op: "LayerNormalization", in: []arg{as(tensor.Float16, f(3, 8)), as(tensor.Float16, f(8)), as(tensor.Float16, f(8))}, want: layerNorm(1, 1e-5, 1)},
	sample{name: "LayerNormalization, float64", op: "LayerNormalization", in: []arg{as(tensor.Float64, f(3, 8)), as(tensor.Float64, f(8))}, outs: 3, want: layerNorm(1, 1e-5, 3)},
	sample{name: "LayerNormalization, stashed as bfloat16", op: "LayerNormalization", attrs: []graph.Attr{graph.Int("stash_type", int(tensor.BFloat16))},
		in: []arg{given(tensor.Float32, []int{2, 2}, 1, 3, -2, 2), given(tensor.Float32, []int{1}, 1)}, want: layerNorm(1, 1e-5, 1)},
	sample{name: "RMSNormalization", op: "RMSNormalization", in: []arg{f(3, 8), f(8)}, want: rmsNorm(1, 1e-5)},
	sample{name: "RMSNormalization, two axes", op: "RMSNormalization", attrs: []graph.Attr{graph.Int("axis", 1), epsilon(0.5)}, in: []arg{f(2, 3, 4), f(3, 4)}, want: rmsNorm(1, 0.5)},
	sample{name: "RMSNormalization to float16", op: "RMSNormalization", in: []arg{f(3, 8), as(tensor.Float16, f(8))}, want: rmsNorm(1, 1e-5)},
)

var _ = refuse(
	refusal{"stash_type is int64, but should be a float", "LayerNormalization", []graph.Attr{graph.Int("stash_type", 7)}, []arg{f(2), f(2)}, 1},
	refusal{"does not broadcast to [2]", "LayerNormalization", nil, []arg{f(2), f(3)}, 1},
)

func epsilon(v float32) graph.Attr { return graph.Float("epsilon", v) }

func variance(x []float64) float64 {
	m, v := mean(x), 0.0
	for _, e := range x {
		v += (e - m) * (e - m) / float64(len(x))
	}
	return v
}

func standard(epsilon float64) func(v float64, all []float64) float64 {
	return func(v float64, all []float64) float64 { return (v - mean(all)) / math.Sqrt(variance(all)+epsilon) }
}

// scaled multiplies by a number for each channel and adds another.
func scaled(x array, by ...array) array {
	return filled(x.shape, func(at []int) float64 {
		channel := 0
		if len(at) > 1 {
			channel = at[1]
		}
		return x.at(at)*by[0].v[channel] + by[1].v[channel]
	})
}

// rmsNorm is the meaning of RMSNormalization from an axis on.
func rmsNorm(axis int, epsilon float64) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		strides := tensor.Shape(x.shape[:axis]).Strides()
		row := func(at []int) (i int) {
			for d, s := range strides {
				i += at[d] * s
			}
			return i
		}
		unit := grouped(x, row, func(v float64, all []float64) float64 {
			return v / math.Sqrt(squares(all)/float64(len(all))+epsilon)
		})
		return []array{filled(x.shape, func(at []int) float64 { return unit.at(at) * in[1].at(at) })}
	}
}

// layerNorm is the meaning of LayerNormalization from an axis on.
func layerNorm(axis int, epsilon float64, outs int) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		n := elements(x.shape[axis:])
		y := array{x.shape, make([]float64, len(x.v))}
		kept := slices.Clone(x.shape)
		for d := axis; d < len(kept); d++ {
			kept[d] = 1
		}
		means, inverses := array{shape: kept}, array{shape: kept}
		at := make([]int, len(x.shape))
		for lo := 0; lo < len(x.v); lo += n {
			row := x.v[lo : lo+n]
			m, v := mean(row), 0.0
			for _, e := range row {
				v += (e - m) * (e - m) / float64(n)
			}
			inverse := 1 / math.Sqrt(v+epsilon)
			means.v, inverses.v = append(means.v, m), append(inverses.v, inverse)
			for i, e := range row {
				tensor.Shape(x.shape).Coords(lo+i, at)
				y.v[lo+i] = (e - m) * inverse * in[1].at(at)
				if len(in) > 2 {
					y.v[lo+i] += in[2].at(at)
				}
			}
		}
		return []array{y, means, inverses}[:outs]
	}
}
