package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

func epsilon(v float32) graph.Attr { return graph.Float("epsilon", v) }

// grouped is x with each element divided by a function of those that share its
// group.
func grouped(x array, group func(at []int) int, f func(v float64, all []float64) float64) array {
	all := map[int][]float64{}
	at := make([]int, len(x.shape))
	for i, v := range x.v {
		tensor.Shape(x.shape).Coords(i, at)
		all[group(at)] = append(all[group(at)], v)
	}
	return filled(x.shape, func(at []int) float64 { return f(x.at(at), all[group(at)]) })
}

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

func groupNorm(groups int, epsilon float64) func([]array) []array {
	return func(in []array) []array {
		size := in[0].shape[1] / groups
		return []array{scaled(grouped(in[0], func(at []int) int { return at[0]*groups + at[1]/size }, standard(epsilon)), in[1:]...)}
	}
}

// batchNorm is the meaning of BatchNormalization with the given statistics.
func batchNorm(epsilon float64) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		unit := filled(x.shape, func(at []int) float64 {
			c := 0
			if len(at) > 1 {
				c = at[1]
			}
			return (x.at(at) - in[3].v[c]) / math.Sqrt(in[4].v[c]+epsilon)
		})
		return []array{scaled(unit, in[1:]...)}
	}
}

// batchNormTraining is that with the statistics of the batch, which move the
// running ones.
func batchNormTraining(momentum float64) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		y := scaled(grouped(x, func(at []int) int { return at[1] }, standard(1e-5)), in[1:]...)
		means, variances := array{shape: in[3].shape}, array{shape: in[4].shape}
		for c := range x.shape[1] {
			var all []float64
			at := make([]int, len(x.shape))
			for i, v := range x.v {
				if tensor.Shape(x.shape).Coords(i, at); at[1] == c {
					all = append(all, v)
				}
			}
			means.v = append(means.v, in[3].v[c]*momentum+mean(all)*(1-momentum))
			variances.v = append(variances.v, in[4].v[c]*momentum+variance(all)*(1-momentum))
		}
		return []array{y, means, variances}
	}
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

// alongAxis groups by all coordinates but one.
func alongAxis(axis int, f func(v float64, all []float64) float64) func([]array) []array {
	return func(in []array) []array {
		strides := tensor.Shape(in[0].shape).Strides()
		strides[axis] = 0
		return []array{grouped(in[0], func(at []int) (i int) {
			for d, s := range strides {
				i += at[d] * s
			}
			return i
		}, f)}
	}
}

func divided(p int) func(v float64, all []float64) float64 {
	return func(v float64, all []float64) float64 {
		if n := normOf(p)(all); n != 0 {
			return v / n
		}
		return 0
	}
}

func hardmax(axis int) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		return []array{filled(x.shape, func(at []int) float64 {
			other := slices.Clone(at)
			for other[axis] = range x.shape[axis] {
				if v := x.at(other); v > x.at(at) || v == x.at(at) && other[axis] < at[axis] {
					return 0
				}
			}
			return 1
		})}
	}
}

func localResponse(size int, alpha, beta, bias float64) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		return []array{filled(x.shape, func(at []int) float64 {
			sum, other := 0.0, slices.Clone(at)
			for other[1] = range x.shape[1] {
				if other[1] >= at[1]-(size-1)/2 && other[1] <= at[1]+size/2 {
					sum += x.at(other) * x.at(other)
				}
			}
			return x.at(at) / math.Pow(bias+alpha/float64(size)*sum, beta)
		})}
	}
}

func meanVariance(channel bool) func([]array) []array {
	return func(in []array) []array {
		return []array{grouped(in[0], func(at []int) int {
			if channel {
				return at[1]
			}
			return 0
		}, func(v float64, all []float64) float64 { return (v - mean(all)) / (math.Sqrt(variance(all)) + 1e-9) })}
	}
}

func channelInputs(t tensor.DType, n int) []arg {
	return []arg{as(t, positive(n)), as(t, f(n)), as(t, f(n)), as(t, positive(n))}
}

func batchInputs(shape ...int) []arg {
	return append([]arg{f(shape...)}, channelInputs(tensor.Float32, shape[min(1, len(shape)-1)])...)
}

func lrnAttrs(size int, alpha, beta, bias float32) []graph.Attr {
	return []graph.Attr{graph.Int("size", size), graph.Float("alpha", alpha), graph.Float("beta", beta), graph.Float("bias", bias)}
}

var training = graph.Int("training_mode", 1)

var _ = withoutGradient("Hardmax")

var _ = add(
	sample{name: "LayerNormalization, statistics", op: "LayerNormalization", in: []arg{f(3, 8), f(8), f(8)}, outs: 3, want: layerNorm(1, 1e-5, 3)},
	sample{name: "LayerNormalization, all axes", op: "LayerNormalization", attrs: []graph.Attr{graph.Int("axis", -3)}, in: []arg{f(2, 3, 2), f(3, 1)}, outs: 2, want: layerNorm(0, 1e-5, 2)},
	sample{name: "LayerNormalization, float16", op: "LayerNormalization", in: []arg{as(tensor.Float16, f(3, 8)), as(tensor.Float16, f(8)), as(tensor.Float16, f(8))}, want: layerNorm(1, 1e-5, 1)},
	sample{name: "LayerNormalization, float64", op: "LayerNormalization", in: []arg{as(tensor.Float64, f(3, 8)), as(tensor.Float64, f(8))}, outs: 3, want: layerNorm(1, 1e-5, 3)},
	sample{name: "LayerNormalization, stashed as bfloat16", op: "LayerNormalization", attrs: []graph.Attr{graph.Int("stash_type", int(tensor.BFloat16))},
		in: []arg{given(tensor.Float32, []int{2, 2}, 1, 3, -2, 2), given(tensor.Float32, []int{1}, 1)}, want: layerNorm(1, 1e-5, 1)},
	sample{name: "RMSNormalization", op: "RMSNormalization", in: []arg{f(3, 8), f(8)}, want: rmsNorm(1, 1e-5)},
	sample{name: "RMSNormalization, two axes", op: "RMSNormalization", attrs: []graph.Attr{graph.Int("axis", 1), epsilon(0.5)}, in: []arg{f(2, 3, 4), f(3, 4)}, want: rmsNorm(1, 0.5)},
	sample{name: "RMSNormalization to float16", op: "RMSNormalization", in: []arg{f(3, 8), as(tensor.Float16, f(8))}, want: rmsNorm(1, 1e-5)},
	sample{name: "GroupNormalization", op: "GroupNormalization", attrs: []graph.Attr{graph.Int("num_groups", 2)}, in: []arg{f(2, 4, 3), positive(4), f(4)}, want: groupNorm(2, 1e-5)},
	sample{name: "GroupNormalization of images", op: "GroupNormalization", attrs: []graph.Attr{graph.Int("num_groups", 3), epsilon(0.01)}, in: []arg{f(2, 3, 2, 3), positive(3), f(3)}, want: groupNorm(3, float64(float32(0.01)))},
	sample{name: "GroupNormalization, bfloat16", op: "GroupNormalization", attrs: []graph.Attr{graph.Int("num_groups", 2)},
		in: []arg{as(tensor.BFloat16, f(2, 4, 3)), as(tensor.BFloat16, positive(4)), as(tensor.BFloat16, f(4))}, want: groupNorm(2, 1e-5)},
	sample{name: "InstanceNormalization", op: "InstanceNormalization", in: []arg{f(2, 3, 4), positive(3), f(3)}, want: groupNorm(3, 1e-5)},
	sample{name: "InstanceNormalization, float16", op: "InstanceNormalization", attrs: []graph.Attr{epsilon(0.5)},
		in: []arg{as(tensor.Float16, f(2, 3, 2, 2)), as(tensor.Float16, positive(3)), as(tensor.Float16, f(3))}, want: groupNorm(3, 0.5)},
	sample{name: "BatchNormalization", op: "BatchNormalization", in: batchInputs(2, 3, 4), want: batchNorm(1e-5)},
	sample{name: "BatchNormalization of images", op: "BatchNormalization", attrs: []graph.Attr{epsilon(0.01)}, in: batchInputs(2, 3, 2, 2), want: batchNorm(float64(float32(0.01)))},
	sample{name: "BatchNormalization of a vector", op: "BatchNormalization", in: append([]arg{f(5)}, channelInputs(tensor.Float32, 1)...), want: batchNorm(1e-5)},
	sample{name: "BatchNormalization, known statistics", op: "BatchNormalization", in: []arg{f(4, 3), positive(3), f(3), fixed(f(3)), fixed(positive(3))}, want: batchNorm(1e-5)},
	sample{name: "BatchNormalization, float16 by float32", op: "BatchNormalization", in: append([]arg{as(tensor.Float16, f(2, 3, 4))}, channelInputs(tensor.Float32, 3)...), want: batchNorm(1e-5)},
	sample{name: "BatchNormalization, training", op: "BatchNormalization", attrs: []graph.Attr{training}, in: batchInputs(4, 2, 3), outs: 3, want: batchNormTraining(float64(float32(0.9)))},
	sample{name: "BatchNormalization, training with momentum", op: "BatchNormalization", attrs: []graph.Attr{training, graph.Float("momentum", 0.25)}, in: batchInputs(5, 2), outs: 3, want: batchNormTraining(0.25)},
	sample{name: "MeanVarianceNormalization", op: "MeanVarianceNormalization", in: []arg{f(2, 3, 2, 2)}, want: meanVariance(true)},
	sample{name: "MeanVarianceNormalization, all axes", op: "MeanVarianceNormalization", attrs: []graph.Attr{graph.Ints("axes", 0, -1)}, in: []arg{as(tensor.Float16, f(3, 4))}, want: meanVariance(false)},
	sample{name: "Hardmax", op: "Hardmax", in: []arg{as(tensor.Float32, few(3, 5))}, want: hardmax(1)},
	sample{name: "Hardmax, first axis", op: "Hardmax", attrs: axisIs(0), in: []arg{as(tensor.Float16, few(5, 3))}, want: hardmax(0)},
	sample{name: "LpNormalization", op: "LpNormalization", in: []arg{f(3, 4)}, want: alongAxis(1, divided(2))},
	sample{name: "LpNormalization, by absolute values", op: "LpNormalization", attrs: []graph.Attr{graph.Int("axis", 0), graph.Int("p", 1)}, in: []arg{f(3, 4)}, want: alongAxis(0, divided(1))},
	sample{name: "LpNormalization of zeros", op: "LpNormalization", in: []arg{fixed(given(tensor.Float64, []int{2, 2}, 0, 0, 3, 4))}, want: alongAxis(1, divided(2))},
	sample{name: "LRN", op: "LRN", attrs: lrnAttrs(3, 0.5, 0.75, 1), in: []arg{f(2, 5, 2)}, want: localResponse(3, 0.5, 0.75, 1)},
	sample{name: "LRN, even", op: "LRN", attrs: lrnAttrs(4, 0.25, 0.5, 2), in: []arg{f(1, 3, 2, 2)}, want: localResponse(4, 0.25, 0.5, 2)},
	sample{name: "LRN, one channel", op: "LRN", attrs: []graph.Attr{graph.Int("size", 1)}, in: []arg{as(tensor.Float16, f(2, 3))}, want: localResponse(1, 1e-4, 0.75, 1)},
)
