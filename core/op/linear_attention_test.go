package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "LinearAttention", op: "LinearAttention", attrs: headCounts(4, 2), outs: 2,
		in: []arg{f(2, 3, 12), f(2, 3, 6), f(2, 3, 4), f(2, 2, 3, 2), f(2, 3, 6), f(2, 3, 2)}, want: remembered(4, 2, 0, true, true)},
	sample{name: "LinearAttention, sums", op: "LinearAttention", attrs: headCounts(1, 1, rule("linear"), graph.Float("scale", 0.5)), outs: 2,
		in: []arg{f(1, 3, 2), f(1, 3, 2), f(1, 3, 3)}, want: remembered(1, 1, 0.5, false, false)},
	sample{name: "LinearAttention, a gate for each head", op: "LinearAttention", attrs: headCounts(2, 2, rule("gated")), outs: 2,
		in: []arg{f(1, 2, 4), f(1, 2, 4), f(1, 2, 2), none, f(1, 2, 2)}, want: remembered(2, 2, 0, true, false)},
	sample{name: "LinearAttention, corrections", op: "LinearAttention", attrs: headCounts(2, 1, rule("delta")), outs: 2,
		in: []arg{f(1, 2, 4), f(1, 2, 2), f(1, 2, 2), none, none, f(1, 2, 1)}, want: remembered(2, 1, 0, false, true)},
)

var _ = refuse(
	refusal{`update_rule "fast" is not supported`, "LinearAttention", headCounts(1, 1, rule("fast")), []arg{f(1, 1, 2), f(1, 1, 2), f(1, 1, 2)}, 1},
	refusal{"decay (input 5) is required", "LinearAttention", headCounts(1, 1), []arg{f(1, 1, 2), f(1, 1, 2), f(1, 1, 2)}, 1},
	refusal{"may have 1 to 4096", "LinearAttention", headCounts(1, 1, rule("linear")), []arg{f(1, 20000, 1), f(1, 20000, 1), f(1, 20000, 1)}, 1},
)

// remembered is LinearAttention: state [batch, shared, size, width], step by step.
func remembered(n, shared int, scale float64, gated, delta bool) func([]array) []array {
	return func(in []array) []array {
		in = append(slices.Clone(in), make([]array, 6-len(in))...)
		q, k, v := heads(in[0], n), heads(in[1], shared), heads(in[2], shared)
		batch, steps, size, width := q.shape[0], q.shape[2], q.shape[3], v.shape[3]
		if scale == 0 {
			scale = 1 / math.Sqrt(float64(size))
		}
		s := filled([]int{batch, shared, size, width}, func(at []int) float64 {
			if in[3].shape != nil {
				return in[3].at(at)
			}
			return 0
		})
		y := array{[]int{batch, n, steps, width}, make([]float64, batch*n*steps*width)}
		for t := range steps {
			old := s
			decayed := filled(s.shape, func(at []int) float64 {
				if !gated {
					return old.at(at)
				}
				g := in[4].at([]int{at[0], t, (at[1]*size + at[2]) % in[4].shape[2]})
				if in[4].shape[2] == shared {
					g = in[4].at([]int{at[0], t, at[1]})
				}
				return math.Exp(g) * old.at(at)
			})
			s = filled(s.shape, func(at []int) float64 {
				news := v.at([]int{at[0], at[1], t, at[3]})
				if delta {
					for e := range size {
						news -= decayed.at([]int{at[0], at[1], e, at[3]}) * k.at([]int{at[0], at[1], t, e})
					}
					news *= in[5].at([]int{at[0], t, at[1]})
				}
				return decayed.at(at) + k.at([]int{at[0], at[1], t, at[2]})*news
			})
			for i := range y.v {
				at := make([]int, 4)
				tensor.Shape(y.shape).Coords(i, at)
				if at[2] == t {
					for e := range size {
						y.v[i] += scale * q.at([]int{at[0], at[1], t, e}) * s.at([]int{at[0], at[1] / (n / shared), e, at[3]})
					}
				}
			}
		}
		return []array{headless(y), s}
	}
}

func headCounts(q, kv int, more ...graph.Attr) []graph.Attr {
	return append(more, graph.Int("q_num_heads", q), graph.Int("kv_num_heads", kv))
}

func rule(r string) graph.Attr { return graph.String("update_rule", r) }
