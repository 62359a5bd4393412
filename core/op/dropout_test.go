package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "Dropout", op: "Dropout", outs: 2, in: []arg{f(2), fixed(given(tensor.Float32, nil, 0.5)), fixed(given(tensor.Bool, nil, 0))},
		want: func(in []array) []array { return []array{in[0], {[]int{2}, []float64{1, 1}}} }},
	sample{name: "Dropout, training", op: "Dropout", attrs: []graph.Attr{graph.Int("seed", 9)}, outs: 2, in: []arg{f(4, 5), ratio(0.25), yes}, want: thinned(9, 0.25)},
	sample{name: "Dropout, training, by half", op: "Dropout", attrs: []graph.Attr{graph.Int("seed", 1)}, outs: 2, in: []arg{f(9), none, given(tensor.Bool, nil, 1)}, want: thinned(1, 0.5)},
	sample{name: "Dropout, of nothing", op: "Dropout", outs: 2, in: []arg{f(3), ratio(0), yes}, want: thinned(0, 0)},
)

var _ = refuse(
	refusal{"it has 3 outputs, but gives 1 to 2", "Dropout", nil, []arg{f(1)}, 3},
	refusal{"give it the attribute seed", "Dropout", nil, []arg{f(2), ratio(0.5), yes}, 1},
	refusal{"should be one value", "Dropout", nil, []arg{f(2), f(2), yes}, 1},
)

// thinned drops elements by chance, at the given ratio, and says which stay.
func thinned(seed int, ratio float64) func([]array) []array {
	return func(in []array) []array {
		g := &generator{}
		g.seed = g.mix(uint32(seed))
		u := g.fractions(len(in[0].v), false)
		y, kept := array{in[0].shape, make([]float64, len(u))}, array{in[0].shape, make([]float64, len(u))}
		for i, v := range in[0].v {
			if u[i] >= ratio {
				y.v[i], kept.v[i] = v/(1-ratio), 1
			}
		}
		return []array{y, kept}
	}
}

func ratio(v float64) arg { return fixed(given(tensor.Float32, nil, v)) }

var yes = fixed(given(tensor.Bool, nil, 1))
