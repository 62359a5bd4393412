package op_test

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "RNN", op: "RNN", outs: 2, in: []arg{f(3, 2, 3), f(1, 2, 3), f(1, 2, 2), f(1, 4)}, want: layer{act: acts{math.Tanh}}.of(1)},
	sample{name: "RNN, both ways, sequences of their own lengths", op: "RNN", outs: 2,
		attrs: []graph.Attr{toward("bidirectional"), graph.Strings("activations", "LeakyRelu", "Affine"), graph.Floats("activation_alpha", 0.25, 0.5), graph.Floats("activation_beta", 0.125)},
		in:    []arg{f(3, 2, 2), f(2, 2, 2), f(2, 2, 2), none, given(tensor.Int32, []int{2}, 3, 1), f(2, 2, 2)},
		want:  layer{act: acts{leaky(0.25), func(x float64) float64 { return 0.5*x + 0.125 }}}.of(1)},
	sample{name: "RNN, clipped, batch first", op: "RNN", outs: 2, attrs: []graph.Attr{graph.Float("clip", 0.75), graph.Int("layout", 1), toward("reverse"), graph.Strings("activations", "softsign")},
		in: []arg{f(2, 3, 2), f(1, 2, 2), f(1, 2, 2), none, none, f(2, 1, 2)}, want: layer{act: acts{func(x float64) float64 { return x / (1 + math.Abs(x)) }}, clip: 0.75, batchFirst: true, reverse: true}.of(1)},
	sample{name: "RNN of halves", op: "RNN", outs: 2, in: []arg{as(tensor.Float16, f(2, 1, 2)), as(tensor.Float16, f(1, 2, 2)), as(tensor.Float16, f(1, 2, 2))}, want: layer{act: acts{math.Tanh}}.of(1)},
	sample{name: "GRU", op: "GRU", outs: 2, in: []arg{f(2, 2, 3), f(1, 6, 3), f(1, 6, 2), f(1, 12), none, f(1, 2, 2)}, want: layer{act: acts{sigmoid, math.Tanh}}.of(3)},
	sample{name: "GRU, resets last, both ways", op: "GRU", outs: 2, attrs: []graph.Attr{graph.Int("linear_before_reset", 1), toward("bidirectional"), graph.Int("hidden_size", 2)},
		in: []arg{f(3, 2, 2), f(2, 6, 2), f(2, 6, 2), f(2, 12), given(tensor.Int32, []int{2}, 2, 3)}, want: layer{act: acts{sigmoid, math.Tanh, sigmoid, math.Tanh}, resetsLast: true}.of(3)},
	sample{name: "LSTM", op: "LSTM", outs: 3, in: []arg{f(3, 2, 2), f(1, 8, 2), f(1, 8, 2)}, want: layer{act: acts{sigmoid, math.Tanh, math.Tanh}}.of(4)},
	sample{name: "LSTM, everything", op: "LSTM", outs: 3, attrs: []graph.Attr{toward("bidirectional"), graph.Int("layout", 1)},
		in:   []arg{f(2, 3, 2), f(2, 8, 2), f(2, 8, 2), f(2, 16), given(tensor.Int32, []int{2}, 1, 3), f(2, 2, 2), f(2, 2, 2), f(2, 6)},
		want: layer{act: acts{sigmoid, math.Tanh, math.Tanh, sigmoid, math.Tanh, math.Tanh}, batchFirst: true}.of(4)},
	sample{name: "LSTM, coupled gates", op: "LSTM", outs: 3, attrs: []graph.Attr{graph.Int("input_forget", 1), toward("reverse")},
		in: []arg{f(2, 1, 2), f(1, 8, 2), f(1, 8, 2), f(1, 16)}, want: layer{act: acts{sigmoid, math.Tanh, math.Tanh}, coupled: true, reverse: true}.of(4)},
)

var _ = refuse(
	refusal{"should be float32[1 2 2]", "RNN", nil, []arg{f(1, 1, 2), f(1, 3, 2), f(1, 2, 2)}, 1},
	refusal{`direction "up" is not supported`, "LSTM", []graph.Attr{graph.String("direction", "up")}, []arg{f(1, 1, 2), f(1, 8, 2), f(1, 8, 2)}, 1},
	refusal{"1 activations are given, but it takes 2", "GRU", []graph.Attr{graph.Strings("activations", "Tanh")}, []arg{f(1, 1, 2), f(1, 6, 2), f(1, 6, 2)}, 1},
	refusal{`activation "Erf" is not supported`, "RNN", []graph.Attr{graph.Strings("activations", "Erf")}, []arg{f(1, 1, 2), f(1, 2, 2), f(1, 2, 2)}, 1},
	refusal{"hidden_size is 3", "RNN", []graph.Attr{graph.Int("hidden_size", 3)}, []arg{f(1, 1, 2), f(1, 2, 2), f(1, 2, 2)}, 1},
	refusal{"the sequence has 0 steps", "RNN", nil, []arg{f(0, 1, 2), f(1, 2, 2), f(1, 2, 2)}, 1},
)

// layer is what a recurrent layer does, one cell at a time.
type layer struct {
	act        []func(float64) float64 // of all directions
	clip       float64
	reverse    bool
	batchFirst bool
	resetsLast bool
	coupled    bool
}

// swapped exchanges the first two axes.
func swapped(x array) array {
	if x.shape == nil {
		return x
	}
	s := slices.Clone(x.shape)
	s[0], s[1] = s[1], s[0]
	return filled(s, func(at []int) float64 {
		from := slices.Clone(at)
		from[0], from[1] = from[1], from[0]
		return x.at(from)
	})
}

func (l layer) apply(i int, x float64) float64 {
	if l.clip != 0 {
		x = min(max(x, -l.clip), l.clip)
	}
	return l.act[i](x)
}

// of runs a layer with so many gates, in all directions.
func (l layer) of(gates int) func([]array) []array {
	return func(in []array) []array {
		in = append(slices.Clone(in), make([]array, 8-len(in))...)
		if l.batchFirst {
			for _, i := range []int{0, 5, 6} {
				in[i] = swapped(in[i])
			}
		}
		steps, batch, dirs, cells := in[0].shape[0], in[0].shape[1], in[1].shape[0], in[2].shape[2]
		y := array{[]int{steps, dirs, batch, cells}, make([]float64, steps*dirs*batch*cells)}
		last := array{[]int{dirs, batch, cells}, make([]float64, dirs*batch*cells)}
		lastCell := array{last.shape, slices.Clone(last.v)}
		per := len(l.act) / dirs
		for d := range dirs {
			one := l
			one.act = l.act[d*per:][:per]
			for n := range batch {
				h, k := make([]float64, cells), make([]float64, cells)
				for j := range cells {
					if in[5].shape != nil {
						h[j] = in[5].at([]int{d, n, j})
					}
					if in[6].shape != nil {
						k[j] = in[6].at([]int{d, n, j})
					}
				}
				length := steps
				if in[4].shape != nil {
					length = int(in[4].v[n])
				}
				for i := range length {
					t := i
					if l.reverse || d == 1 {
						t = length - 1 - i
					}
					h, k = one.step(gates, in, d, t, n, h, k)
					copy(y.v[((t*dirs+d)*batch+n)*cells:], h)
				}
				copy(last.v[(d*batch+n)*cells:], h)
				copy(lastCell.v[(d*batch+n)*cells:], k)
			}
		}
		if l.batchFirst {
			flat := filled([]int{batch, steps, dirs, cells}, func(at []int) float64 { return y.at([]int{at[1], at[2], at[0], at[3]}) })
			y, last, lastCell = flat, swapped(last), swapped(lastCell)
		}
		if gates == 4 {
			return []array{y, last, lastCell}
		}
		return []array{y, last}
	}
}

func (l layer) step(gates int, in []array, d, t, n int, h, k []float64) (hidden, cell []float64) {
	cells := len(h)
	bias := func(row int) float64 {
		if in[3].shape == nil {
			return 0
		}
		return in[3].at([]int{d, row})
	}
	input := func(row int) float64 {
		sum := bias(row)
		for i := range in[0].shape[2] {
			sum += in[0].at([]int{t, n, i}) * in[1].at([]int{d, row, i})
		}
		return sum
	}
	state := func(row int, h []float64) float64 {
		sum := bias(gates*cells + row)
		for i := range cells {
			sum += h[i] * in[2].at([]int{d, row, i})
		}
		return sum
	}
	peephole := func(gate, j int, k []float64) float64 {
		if in[7].shape == nil {
			return 0
		}
		return in[7].at([]int{d, gate*cells + j}) * k[j]
	}
	hidden, cell = make([]float64, cells), make([]float64, cells)
	switch gates {
	case 1:
		for j := range cells {
			hidden[j] = l.apply(0, input(j)+state(j, h))
		}
	case 3:
		z, r, reset := make([]float64, cells), make([]float64, cells), make([]float64, cells)
		for j := range cells {
			z[j], r[j] = l.apply(0, input(j)+state(j, h)), l.apply(0, input(cells+j)+state(cells+j, h))
			reset[j] = r[j] * h[j]
		}
		for j := range cells {
			inner := state(2*cells+j, reset)
			if l.resetsLast {
				inner = r[j] * state(2*cells+j, h)
			}
			hidden[j] = (1-z[j])*l.apply(1, input(2*cells+j)+inner) + z[j]*h[j]
		}
	case 4:
		for j := range cells {
			sum := func(gate int) float64 { return input(gate*cells+j) + state(gate*cells+j, h) }
			i, f := l.apply(0, sum(0)+peephole(0, j, k)), l.apply(0, sum(2)+peephole(2, j, k))
			if l.coupled {
				f = 1 - i
			}
			cell[j] = f*k[j] + i*l.apply(1, sum(3))
			hidden[j] = l.apply(0, sum(1)+peephole(1, j, cell)) * l.apply(2, cell[j])
		}
	}
	return hidden, cell
}

type acts = []func(float64) float64

func leaky(alpha float64) func(float64) float64 {
	return func(x float64) float64 {
		if x < 0 {
			return alpha * x
		}
		return x
	}
}

func toward(d string) graph.Attr { return graph.String("direction", d) }
