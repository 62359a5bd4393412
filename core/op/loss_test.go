package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "SoftmaxCrossEntropyLoss", op: "SoftmaxCrossEntropyLoss", in: []arg{f(4, 5), ints(tensor.Int64, 0, 4, 4)}, want: crossEntropy("mean", -1)},
	sample{name: "SoftmaxCrossEntropyLoss, sum", op: "SoftmaxCrossEntropyLoss", attrs: []graph.Attr{reduction("sum")},
		in: []arg{f(2, 5, 3), ints(tensor.Int32, 0, 4, 2, 3)}, want: crossEntropy("sum", -1)},
	sample{name: "SoftmaxCrossEntropyLoss, none", op: "SoftmaxCrossEntropyLoss", attrs: []graph.Attr{reduction("none")},
		in: []arg{f(4, 5), ints(tensor.Int32, 0, 4, 4)}, want: crossEntropy("none", -1)},
	sample{name: "SoftmaxCrossEntropyLoss, ignoring", op: "SoftmaxCrossEntropyLoss", attrs: []graph.Attr{graph.Int("ignore_index", -100)},
		in: []arg{f(4, 5), given(tensor.Int64, []int{4}, 3, -100, 0, 4)}, want: crossEntropy("mean", -100)},
	sample{name: "SoftmaxCrossEntropyLoss, weighted", op: "SoftmaxCrossEntropyLoss", attrs: []graph.Attr{graph.Int("ignore_index", 2)},
		in: []arg{f(4, 5), given(tensor.Int64, []int{4}, 3, 2, 0, 4), fixed(positive(5))}, want: crossEntropy("mean", 2)},
	sample{name: "SoftmaxCrossEntropyLoss with logarithms", op: "SoftmaxCrossEntropyLoss", in: []arg{f(4, 5), ints(tensor.Int64, 0, 4, 4)}, outs: 2,
		want: func(in []array) []array { return append(crossEntropy("mean", -1)(in), logSoftmax(1)(in)...) }},
	sample{name: "NegativeLogLikelihoodLoss", op: "NegativeLogLikelihoodLoss", in: []arg{f(4, 5), ints(tensor.Int64, 0, 4, 4)}, want: likelihood("mean", -1)},
	sample{name: "NegativeLogLikelihoodLoss, many axes", op: "NegativeLogLikelihoodLoss", attrs: []graph.Attr{reduction("none")},
		in: []arg{f(2, 5, 3, 1, 2), ints(tensor.Int32, 0, 4, 2, 3, 1, 2), positive(5)}, want: likelihood("none", -1)},
	sample{name: "NegativeLogLikelihoodLoss, ignoring", op: "NegativeLogLikelihoodLoss", attrs: []graph.Attr{graph.Int("ignore_index", -100)},
		in: []arg{f(4, 5), given(tensor.Int64, []int{4}, 3, -100, 0, 4)}, want: likelihood("mean", -100)},
	sample{name: "NegativeLogLikelihoodLoss, ignoring nothing to learn", op: "NegativeLogLikelihoodLoss", attrs: []graph.Attr{graph.Int("ignore_index", 2), reduction("sum")},
		in: []arg{given(tensor.Float32, []int{2, 3}, math.Inf(-1), 1, 2, 1, 2, 3), given(tensor.Int64, []int{2}, 2, 1)}, want: likelihood("sum", 2)},
	sample{name: "NegativeLogLikelihoodLoss, ignoring what no label is", op: "NegativeLogLikelihoodLoss", attrs: []graph.Attr{graph.Int("ignore_index", 1<<32)},
		in: []arg{f(2, 3), given(tensor.Int32, []int{2}, 0, 1)}, want: likelihood("mean", 1<<32)},
	sample{name: "NegativeLogLikelihoodLoss, weighted, ignoring", op: "NegativeLogLikelihoodLoss", attrs: []graph.Attr{graph.Int("ignore_index", 10)},
		in: []arg{f(4, 5), given(tensor.Int64, []int{4}, 3, 10, 0, 4), positive(5)}, want: likelihood("mean", 10)},
	sample{name: "NegativeLogLikelihoodLoss, sum, float16", op: "NegativeLogLikelihoodLoss", attrs: []graph.Attr{reduction("sum")},
		in: []arg{as(tensor.Float16, f(4, 5)), ints(tensor.Int64, 0, 4, 4), as(tensor.Float16, positive(5))}, want: likelihood("sum", -1)},
)

var _ = refuse(
	refusal{"weights are float32[2], but should be float32[3]", "NegativeLogLikelihoodLoss", nil, []arg{f(2, 3), few(2), f(2)}, 1},
	refusal{`reduction "max" is not supported`, "NegativeLogLikelihoodLoss", []graph.Attr{reduction("max")}, []arg{f(2, 3), few(2)}, 1},
	refusal{"labels have shape [3], but should have [2]", "SoftmaxCrossEntropyLoss", nil, []arg{f(2, 3), few(3)}, 1},
)

// crossEntropy is the meaning of SoftmaxCrossEntropyLoss.
func crossEntropy(reduction string, ignore float64) func([]array) []array {
	return func(in []array) []array {
		return likelihood(reduction, ignore)(append(logSoftmax(1)(in), in[1:]...))
	}
}

// likelihood is the meaning of NegativeLogLikelihoodLoss.
func likelihood(reduction string, ignore float64) func([]array) []array {
	return func(in []array) []array {
		logs := in[0]
		losses, weights := array{shape: in[1].shape}, 0.0
		at := make([]int, len(in[1].shape))
		for i, label := range in[1].v {
			tensor.Shape(in[1].shape).Coords(i, at)
			if label == ignore {
				losses.v = append(losses.v, 0)
				continue
			}
			w := 1.0
			if len(in) > 2 {
				w = in[2].v[int(label)]
			}
			weights += w
			losses.v = append(losses.v, -w*logs.at(slices.Insert(slices.Clone(at), 1, int(label))))
		}
		switch reduction {
		case "sum":
			losses = array{nil, []float64{total(losses.v)}}
		case "mean":
			losses = array{nil, []float64{total(losses.v) / weights}}
		}
		return []array{losses}
	}
}

func reduction(r string) graph.Attr { return graph.String("reduction", r) }
