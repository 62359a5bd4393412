package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "GroupNormalization", op: "GroupNormalization", attrs: []graph.Attr{graph.Int("num_groups", 2)}, in: []arg{f(2, 4, 3), positive(4), f(4)}, want: groupNorm(2, 1e-5)},
	sample{name: "GroupNormalization of images", op: "GroupNormalization", attrs: []graph.Attr{graph.Int("num_groups", 3), epsilon(0.01)}, in: []arg{f(2, 3, 2, 3), positive(3), f(3)}, want: groupNorm(3, float64(float32(0.01)))},
	sample{name: "GroupNormalization, bfloat16", op: "GroupNormalization", attrs: []graph.Attr{graph.Int("num_groups", 2)},
		in: []arg{as(tensor.BFloat16, f(2, 4, 3)), as(tensor.BFloat16, positive(4)), as(tensor.BFloat16, f(4))}, want: groupNorm(2, 1e-5)},
	sample{name: "InstanceNormalization", op: "InstanceNormalization", in: []arg{f(2, 3, 4), positive(3), f(3)}, want: groupNorm(3, 1e-5)},
	sample{name: "InstanceNormalization, float16", op: "InstanceNormalization", attrs: []graph.Attr{epsilon(0.5)},
		in: []arg{as(tensor.Float16, f(2, 3, 2, 2)), as(tensor.Float16, positive(3)), as(tensor.Float16, f(3))}, want: groupNorm(3, 0.5)},
)

var _ = refuse(
	refusal{"3 channels do not make 2 groups", "GroupNormalization", []graph.Attr{graph.Int("num_groups", 2)}, []arg{f(2, 3, 1), f(3), f(3)}, 1},
	refusal{"3 channels do not make 0 groups", "GroupNormalization", nil, []arg{f(2, 3, 1), f(3), f(3)}, 1},
	refusal{"a number for each channel", "InstanceNormalization", nil, []arg{f(2, 3, 1), f(3), f(2)}, 1},
	refusal{"should have at least 3 axes", "InstanceNormalization", nil, []arg{f(2, 3), f(3), f(3)}, 1},
)

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

func groupNorm(groups int, epsilon float64) func([]array) []array {
	return func(in []array) []array {
		size := in[0].shape[1] / groups
		return []array{scaled(grouped(in[0], func(at []int) int { return at[0]*groups + at[1]/size }, standard(epsilon)), in[1:]...)}
	}
}
