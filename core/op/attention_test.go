package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "Attention", op: "Attention", in: []arg{f(2, 3, 4, 5), f(2, 3, 6, 5), f(2, 3, 6, 4)}, want: attending{}.open()},
	sample{name: "Attention, causal, shared heads", op: "Attention", attrs: []graph.Attr{causal, graph.Float("scale", 0.25)}, in: []arg{f(1, 4, 3, 2), f(1, 2, 3, 2), f(1, 2, 3, 3)},
		want: attending{causal: true, scale: 0.25}.open()},
	sample{name: "Attention, packed, with a past", op: "Attention", attrs: []graph.Attr{causal, graph.Int("q_num_heads", 4), graph.Int("kv_num_heads", 2)}, outs: 3,
		in:   []arg{f(2, 2, 12), f(2, 2, 6), f(2, 2, 4), none, f(2, 2, 3, 3), f(2, 2, 3, 2)},
		want: attending{q: 4, k: 2, causal: true, outputs: 3}.open()},
	sample{name: "Attention, mask that is too short", op: "Attention", attrs: []graph.Attr{graph.Float("softcap", 1.5), graph.Int("qk_matmul_output_mode", 1)}, outs: 4,
		in: []arg{f(1, 2, 3, 2), f(1, 2, 4, 2), f(1, 2, 4, 2), f(3, 3)}, want: attending{softcap: 1.5, mode: 1, outputs: 4}.open()},
	sample{name: "Attention, a query that sees nothing", op: "Attention", attrs: []graph.Attr{graph.Int("qk_matmul_output_mode", 3)}, outs: 4,
		in:   []arg{f(1, 1, 3, 2), f(1, 1, 3, 2), f(1, 1, 3, 2), given(tensor.Bool, []int{1, 3, 3}, 1, 0, 1, 0, 0, 0, 0, 1, 0)},
		want: attending{boolean: true, mode: 3, outputs: 4}.open()},
	sample{name: "Attention, cache with empty places", op: "Attention", attrs: []graph.Attr{causal}, in: []arg{f(2, 1, 3, 2), f(2, 1, 5, 2), f(2, 1, 5, 2), none, none, none, given(tensor.Int64, []int{2}, 2, 5)},
		want: attending{causal: true}.open()},
	sample{name: "Attention, windows", op: "Attention", attrs: []graph.Attr{graph.Int("left_window_size", 1), graph.Int("right_window_size", 0)}, in: []arg{f(1, 1, 4, 2), f(1, 1, 4, 2), f(1, 1, 4, 2)},
		want: attending{left: 1}.of},
	sample{name: "Attention of halves, in float32", op: "Attention", attrs: []graph.Attr{graph.Int("softmax_precision", 1)},
		in: []arg{as(tensor.Float16, f(1, 1, 2, 2)), as(tensor.Float16, f(1, 1, 3, 2)), as(tensor.Float16, f(1, 1, 3, 2))}, want: attending{}.open()},
	sample{name: "CachedAttention", op: "CachedAttention", in: []arg{f(2, 4, 2, 3), f(2, 2, 5, 3), f(2, 2, 5, 4)}, want: attending{causal: true}.cached},
	sample{name: "CachedAttention, window", op: "CachedAttention", attrs: []graph.Attr{graph.Int("left_window_size", 1), graph.Float("scale", 0.5), graph.Float("softcap", 2)},
		in: []arg{f(1, 2, 3, 2), f(1, 1, 6, 2), f(1, 1, 6, 2)}, want: attending{causal: true, left: 1, scale: 0.5, softcap: 2, windowed: true}.cached},
)

var _ = refuse(
	refusal{"does not go with queries", "Attention", nil, []arg{f(1, 1, 2, 2), f(1, 2, 2), f(1, 1, 2, 2)}, 1},
	refusal{"0 heads do not divide", "Attention", nil, []arg{f(1, 2, 2), f(1, 2, 2), f(1, 2, 2)}, 1},
	refusal{"do not share 2 heads", "Attention", nil, []arg{f(1, 3, 2, 2), f(1, 2, 2, 2), f(1, 2, 2, 2)}, 1},
	refusal{"which do not go together", "Attention", nil, []arg{f(1, 1, 2, 2), f(1, 1, 2, 3), f(1, 1, 2, 2)}, 1},
	refusal{"past_key and past_value go together", "Attention", nil, []arg{f(1, 1, 2, 2), f(1, 1, 2, 2), f(1, 1, 2, 2), none, f(1, 1, 1, 2)}, 1},
	refusal{"does not broadcast to [1 1 2 3]", "Attention", nil, []arg{f(1, 1, 2, 2), f(1, 1, 3, 2), f(1, 1, 3, 2), f(4, 3)}, 1},
	refusal{"qk_matmul_output_mode 4", "Attention", []graph.Attr{graph.Int("qk_matmul_output_mode", 4)}, []arg{f(1, 1, 2, 2), f(1, 1, 2, 2), f(1, 1, 2, 2)}, 1},
	refusal{"scale -1 is not supported", "Attention", []graph.Attr{graph.Float("scale", -1)}, []arg{f(1, 1, 2, 2), f(1, 1, 2, 2), f(1, 1, 2, 2)}, 1},
	refusal{"does not go with queries", "CachedAttention", nil, []arg{f(1, 1, 2, 2), f(1, 2, 2), f(1, 2, 2)}, 1},
	refusal{"3 queries have no places among 2 keys", "CachedAttention", nil, []arg{f(1, 1, 3, 2), f(1, 1, 2, 2), f(1, 1, 2, 2)}, 1},
	refusal{"which do not go together", "CachedAttention", nil, []arg{f(1, 1, 2, 2), f(1, 1, 2, 2), f(1, 1, 3, 2)}, 1},
	refusal{"no type of floats", "Attention", []graph.Attr{graph.Int("softmax_precision", 7)}, []arg{f(1, 1, 2, 2), f(1, 1, 2, 2), f(1, 1, 2, 2)}, 1},
)

// heads gives [batch, places, heads·size] the axes [batch, heads, places, size].
func heads(x array, n int) array {
	if len(x.shape) != 3 {
		return x
	}
	size := x.shape[2] / n
	return filled([]int{x.shape[0], n, x.shape[1], size}, func(at []int) float64 {
		return x.at([]int{at[0], at[2], at[1]*size + at[3]})
	})
}

// headless does the opposite.
func headless(x array) array {
	size := x.shape[3]
	return filled([]int{x.shape[0], x.shape[2], x.shape[1] * size}, func(at []int) float64 {
		return x.at([]int{at[0], at[2] / size, at[1], at[2] % size})
	})
}

// attending is what Attention does, one query at a time.
type attending struct {
	q, k           int // heads, of inputs with 3 axes
	scale, softcap float64
	causal         bool
	left, right    int // −1: unbounded
	boolean        bool
	mode           int
	outputs        int
	windowed       bool // left says so
}

// cached is what CachedAttention does: the last keys are those of the queries.
func (a attending) cached(in []array) []array {
	a.outputs, a.right = 1, -1
	if !a.windowed {
		a.left = -1
	}
	past := in[1].shape[2] - in[0].shape[2]
	cut := func(x array, from, n int) array {
		s := slices.Clone(x.shape)
		s[2] = n
		return filled(s, func(at []int) float64 {
			at = slices.Clone(at)
			at[2] += from
			return x.at(at)
		})
	}
	n := in[0].shape[2]
	return a.of([]array{in[0], cut(in[1], past, n), cut(in[2], past, n), {}, cut(in[1], 0, past), cut(in[2], 0, past)})[:1]
}

func (a attending) of(in []array) []array {
	in = append(slices.Clone(in), make([]array, 7-len(in))...)
	q, k, v := heads(in[0], a.q), heads(in[1], a.k), heads(in[2], a.k)
	mask, lengths := in[3], in[6]
	past := 0
	if in[4].shape != nil {
		past = in[4].shape[2]
		k, v = concatenated(2)([]array{in[4], k})[0], concatenated(2)([]array{in[5], v})[0]
	}
	total, group := k.shape[2], q.shape[1]/k.shape[1]
	scale := a.scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(q.shape[3]))
	}
	s := [4]int{q.shape[0], q.shape[1], q.shape[2], total}
	var seen [4]array
	for i := range seen {
		seen[i] = array{s[:], make([]float64, elements(s[:]))}
	}
	y := array{[]int{s[0], s[1], s[2], v.shape[3]}, make([]float64, s[0]*s[1]*s[2]*v.shape[3])}
	for row := range elements(s[:3]) {
		at := make([]int, 3)
		tensor.Shape(s[:3]).Coords(row, at)
		offset := past
		if lengths.shape != nil {
			offset = int(lengths.v[at[0]]) - s[2]
		}
		sum, empty := 0.0, true
		for j := range total {
			x := 0.0
			for e := range q.shape[3] {
				x += q.at([]int{at[0], at[1], at[2], e}) * k.at([]int{at[0], at[1] / group, j, e})
			}
			x *= scale
			seen[0].v[row*total+j] = x
			if a.softcap != 0 {
				x = a.softcap * math.Tanh(x/a.softcap)
			}
			seen[1].v[row*total+j] = x
			here, bias := at[2]+offset, 0.0
			visible := (!a.causal || j <= here) && (a.left < 0 || j >= here-a.left) && (a.right < 0 || j <= here+a.right) &&
				(lengths.shape == nil || j < int(lengths.v[at[0]]))
			if mask.shape != nil {
				switch last := mask.shape[len(mask.shape)-1]; {
				case j >= last:
					visible = false
				case a.boolean:
					visible = visible && mask.at(append(slices.Clone(at), j)) != 0
				default:
					bias = mask.at(append(slices.Clone(at), j))
				}
			}
			if !visible {
				bias = math.Inf(-1)
			}
			empty = empty && math.IsInf(bias, -1)
			seen[2].v[row*total+j] = x + bias
			seen[3].v[row*total+j] = math.Exp(x + bias)
			sum += math.Exp(x + bias)
		}
		for j := range total {
			p := &seen[3].v[row*total+j]
			if *p /= sum; empty {
				*p = 0
			}
			for e := range v.shape[3] {
				y.v[row*v.shape[3]+e] += *p * v.at([]int{at[0], at[1] / group, j, e})
			}
		}
	}
	if len(in[0].shape) == 3 {
		y = headless(y)
	}
	return []array{y, k, v, seen[a.mode]}[:max(1, a.outputs)]
}

// open is attention without a window.
func (a attending) open() func([]array) []array {
	a.left, a.right = -1, -1
	return a.of
}

var causal = graph.Int("is_causal", 1)
