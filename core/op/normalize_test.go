package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// logSoftmax is the meaning of LogSoftmax over an axis.
func logSoftmax(axis int) func([]array) []array {
	return func(in []array) []array {
		x := in[0]
		return []array{filled(x.shape, func(at []int) float64 {
			sum := 0.0
			other := slices.Clone(at)
			for other[axis] = range x.shape[axis] {
				sum += math.Exp(x.at(other))
			}
			return x.at(at) - math.Log(sum)
		})}
	}
}

func softmax(axis int) func([]array) []array {
	return func(in []array) []array {
		y := logSoftmax(axis)(in)
		for i, v := range y[0].v {
			y[0].v[i] = math.Exp(v)
		}
		return y
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

var _ = add(
	sample{name: "Softmax", op: "Softmax", in: []arg{f(3, 5)}, want: softmax(1)},
	sample{name: "Softmax, first axis", op: "Softmax", attrs: axisIs(0), in: []arg{f(3, 5)}, want: softmax(0)},
	sample{name: "LogSoftmax", op: "LogSoftmax", in: []arg{f(3, 5)}, want: logSoftmax(1)},
	sample{name: "LogSoftmax, middle axis", op: "LogSoftmax", attrs: axisIs(1), in: []arg{f(2, 5, 3)}, want: logSoftmax(1)},
	sample{name: "LayerNormalization", op: "LayerNormalization", in: []arg{f(3, 8), f(8), f(8)}, want: layerNorm(1, 1e-5, 1)},
	sample{name: "LayerNormalization, two axes", op: "LayerNormalization", attrs: []graph.Attr{graph.Int("axis", 1), graph.Float("epsilon", 0.5)},
		in: []arg{f(2, 3, 4), f(3, 4), f(4)}, want: layerNorm(1, 0.5, 1)},
	sample{name: "LayerNormalization without shift", op: "LayerNormalization", in: []arg{f(3, 8), f(8)}, want: layerNorm(1, 1e-5, 1)},
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
