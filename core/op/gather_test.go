package op_test

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "Gather", op: "Gather", in: []arg{f(4, 3), ints(tensor.Int64, -4, 3, 2, 5)}, want: gathered(0)},
	sample{name: "Gather, middle axis", op: "Gather", attrs: axisIs(-2), in: []arg{f(2, 4, 3), ints(tensor.Int32, -4, 3, 2, 2)}, want: gathered(1)},
	sample{name: "Gather, one", op: "Gather", attrs: axisIs(1), in: []arg{f(2, 4), ints(tensor.Int64, 2, 2)}, want: gathered(1)},
	sample{name: "Gather, outside", op: "Gather", in: []arg{f(3, 2), given(tensor.Int64, []int{5}, 7, -9, 2, 1<<50, 2)}, want: gathered(0)},
	sample{name: "GatherElements", op: "GatherElements", attrs: axisIs(1), in: []arg{f(3, 4), ints(tensor.Int64, -4, 3, 3, 6)}, want: gatheredElements(1)},
	sample{name: "GatherElements, smaller", op: "GatherElements", in: []arg{f(3, 4), ints(tensor.Int32, 0, 2, 2, 3)}, want: gatheredElements(0)},
	sample{name: "GatherND", op: "GatherND", in: []arg{f(3, 4, 2), ints(tensor.Int64, -3, 2, 2, 3, 2)}, want: gatheredND},
	sample{name: "GatherND, elements", op: "GatherND", in: []arg{f(2, 2), ints(tensor.Int64, 0, 1, 5, 2)}, want: gatheredND},
	sample{name: "GatherND, one", op: "GatherND", in: []arg{f(2, 3), ints(tensor.Int64, 1, 1, 1)}, want: gatheredND},
	sample{name: "GatherND, batches", op: "GatherND", attrs: []graph.Attr{graph.Int("batch_dims", 1)}, in: []arg{f(2, 3, 4, 2), ints(tensor.Int64, -3, 2, 2, 5, 2)},
		want: func(in []array) []array {
			return []array{filled([]int{2, 5, 2}, func(at []int) float64 {
				i := index(in[1].at([]int{at[0], at[1], 0}), 3)
				j := index(in[1].at([]int{at[0], at[1], 1}), 4)
				return in[0].at([]int{at[0], i, j, at[2]})
			})}
		}},
	sample{name: "GatherND, batches of batches", op: "GatherND", attrs: []graph.Attr{graph.Int("batch_dims", 2)}, in: []arg{f(2, 3, 4), ints(tensor.Int32, 0, 3, 2, 3, 1)},
		want: func(in []array) []array {
			return []array{filled([]int{2, 3}, func(at []int) float64 {
				return in[0].at([]int{at[0], at[1], index(in[1].at([]int{at[0], at[1], 0}), 4)})
			})}
		}},
)

var _ = refuse(
	refusal{"with 1 axes of batches", "GatherND", []graph.Attr{graph.Int("batch_dims", 1)}, []arg{f(2, 3), few(3, 1)}, 1},
	refusal{"indices are int32 or int64", "Gather", nil, []arg{f(4), f(1)}, 1},
	refusal{"do not go with data", "GatherElements", nil, []arg{f(4), few(1, 1)}, 1},
	refusal{"reach outside data", "GatherElements", nil, []arg{f(4, 2), few(1, 3)}, 1},
	refusal{"do not select from data", "GatherND", nil, []arg{f(4), few(1, 2)}, 1},
)

// index returns the place that a possibly negative index means, −1 for none.
func index(v float64, n int) int {
	i := int(v)
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return -1
	}
	return i
}

func gathered(axis int) func([]array) []array {
	return func(in []array) []array {
		x, idx := in[0], in[1]
		k := len(idx.shape)
		return []array{filled(slices.Concat(x.shape[:axis], idx.shape, x.shape[axis+1:]), func(at []int) float64 {
			i := index(idx.at(at[axis:axis+k]), x.shape[axis])
			if i < 0 {
				return 0
			}
			return x.at(slices.Concat(at[:axis], []int{i}, at[axis+k:]))
		})}
	}
}

func gatheredElements(axis int) func([]array) []array {
	return func(in []array) []array {
		return []array{filled(in[1].shape, func(at []int) float64 {
			x := slices.Clone(at)
			if x[axis] = index(in[1].at(at), in[0].shape[axis]); x[axis] < 0 {
				return 0
			}
			return in[0].at(x)
		})}
	}
}

// place returns where the tuple at the given coordinates points, nil if nowhere.
func place(x, idx array, at []int) []int {
	k := idx.shape[len(idx.shape)-1]
	out := make([]int, k)
	for j := range out {
		if out[j] = index(idx.at(append(slices.Clone(at), j)), x.shape[j]); out[j] < 0 {
			return nil
		}
	}
	return out
}

func gatheredND(in []array) []array {
	x, idx := in[0], in[1]
	n := len(idx.shape) - 1
	return []array{filled(slices.Concat(idx.shape[:n], x.shape[idx.shape[n]:]), func(at []int) float64 {
		p := place(x, idx, at[:n])
		if p == nil {
			return 0
		}
		return x.at(append(p, at[n:]...))
	})}
}

var (
	setting     merged = func(_, update float64) float64 { return update }
	adding      merged = func(old, update float64) float64 { return old + update }
	multiplying merged = func(old, update float64) float64 { return old * update }
)

func axisIs(a int) []graph.Attr { return []graph.Attr{graph.Int("axis", a)} }
