package op_test

import (
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "BatchNormalization", op: "BatchNormalization", in: batchInputs(2, 3, 4), want: batchNorm(1e-5)},
	sample{name: "BatchNormalization of images", op: "BatchNormalization", attrs: []graph.Attr{epsilon(0.01)}, in: batchInputs(2, 3, 2, 2), want: batchNorm(float64(float32(0.01)))},
	sample{name: "BatchNormalization of a vector", op: "BatchNormalization", in: append([]arg{f(5)}, channelInputs(tensor.Float32, 1)...), want: batchNorm(1e-5)},
	sample{name: "BatchNormalization, known statistics", op: "BatchNormalization", in: []arg{f(4, 3), positive(3), f(3), fixed(f(3)), fixed(positive(3))}, want: batchNorm(1e-5)},
	sample{name: "BatchNormalization, float16 by float32", op: "BatchNormalization", in: append([]arg{as(tensor.Float16, f(2, 3, 4))}, channelInputs(tensor.Float32, 3)...), want: batchNorm(1e-5)},
	sample{name: "BatchNormalization, training", op: "BatchNormalization", attrs: []graph.Attr{training}, in: batchInputs(4, 2, 3), outs: 3, want: batchNormTraining(float64(float32(0.9)))},
	sample{name: "BatchNormalization, training with momentum", op: "BatchNormalization", attrs: []graph.Attr{training, graph.Float("momentum", 0.25)}, in: batchInputs(5, 2), outs: 3, want: batchNormTraining(0.25)},
	sample{name: "MeanVarianceNormalization", op: "MeanVarianceNormalization", in: []arg{f(2, 3, 2, 2)}, want: meanVariance(true)},
	sample{name: "MeanVarianceNormalization, all axes", op: "MeanVarianceNormalization", attrs: []graph.Attr{graph.Ints("axes", 0, -1)}, in: []arg{as(tensor.Float16, f(3, 4))}, want: meanVariance(false)},
)

var _ = refuse(
	refusal{"in training_mode only", "BatchNormalization", nil, []arg{f(2, 3), f(3), f(3), f(3), f(3)}, 3},
	refusal{"axis 3 does not exist", "MeanVarianceNormalization", nil, []arg{f(2, 3, 4)}, 1},
)

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

func batchInputs(shape ...int) []arg {
	return append([]arg{f(shape...)}, channelInputs(tensor.Float32, shape[min(1, len(shape)-1)])...)
}

var training = graph.Int("training_mode", 1)

func channelInputs(t tensor.DType, n int) []arg {
	return []arg{as(t, positive(n)), as(t, f(n)), as(t, f(n)), as(t, positive(n))}
}
