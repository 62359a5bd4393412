package op_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "RandomUniform", op: "RandomUniform", attrs: sown(3, graph.Float("low", -2), graph.Float("high", 6), graph.Ints("shape", 3, 5)), want: uniform(3, -2, 6, 3, 5)},
	sample{name: "RandomUniform, doubles", op: "RandomUniform", attrs: sown(0.5, graph.Int("dtype", int(tensor.Float64)), graph.Ints("shape", 4)), want: uniform(0.5, 0, 1, 4)},
	sample{name: "RandomUniformLike", op: "RandomUniformLike", attrs: sown(-1, graph.Int("dtype", int(tensor.Float16))), in: []arg{ints(tensor.Int8, 0, 1, 2, 3)}, want: uniform(-1, 0, 1, 2, 3)},
	sample{name: "RandomNormal", op: "RandomNormal", attrs: sown(7, graph.Float("mean", 1), graph.Float("scale", 0.5), graph.Ints("shape", 40)), want: gaussian(7, 1, 0.5, 40)},
	sample{name: "RandomNormalLike", op: "RandomNormalLike", attrs: sown(0), in: []arg{f(2, 2)}, want: gaussian(0, 0, 1, 2, 2)},
	sample{name: "Bernoulli", op: "Bernoulli", attrs: sown(5), in: []arg{given(tensor.Float32, []int{8}, 0, 1, 0.5, 0.5, 0.25, 0.75, 0.125, 0.875)}, want: trials},
	sample{name: "Bernoulli of halves, to bool", op: "Bernoulli", attrs: sown(5, graph.Int("dtype", int(tensor.Bool))), in: []arg{given(tensor.Float16, []int{2, 2}, 0.5, 0.25, 0.75, 1)}, want: trials},
	sample{name: "Multinomial", op: "Multinomial", attrs: sown(2, graph.Int("sample_size", 5), graph.Int("dtype", int(tensor.Int64))), in: []arg{f(2, 3)},
		want: func(in []array) []array {
			u := seeded(2).fractions(2*5*3, true)
			return []array{filled([]int{2, 5}, func(at []int) float64 {
				var logs []float64
				for k := range 3 {
					logs = append(logs, in[0].at([]int{at[0], k})-math.Log(-math.Log(u[(at[0]*5+at[1])*3+k])))
				}
				return float64(slices.Index(logs, slices.Max(logs)))
			})}
		}},
)

var _ = withoutGradient("RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli", "Multinomial")

var _ = refuse(
	refusal{"give it the attribute seed", "RandomNormal", []graph.Attr{graph.Ints("shape", 2)}, nil, 1},
	refusal{"more than 2^32 elements", "RandomNormal", sown(1, graph.Ints("shape", 1<<33)), nil, 1},
	refusal{"it draws floats, not int64", "RandomUniformLike", sown(1), []arg{few(2)}, 1},
	refusal{"should be a float", "Bernoulli", sown(1), []arg{few(2)}, 1},
	refusal{"should be floats [batch classes]", "Multinomial", sown(1), []arg{f(2)}, 1},
)

// generator draws what chance draws, in integers of Go.
type generator struct{ seed, next uint32 }

func (g *generator) mix(x uint32) uint32 {
	x = (x ^ x>>16) * 0x7feb352d
	x = (x ^ x>>15) * 0x846ca68b
	return x ^ x>>16
}

func (g *generator) words(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		x := uint32(i)
		for round := range uint32(2) {
			x = g.mix(x + g.mix(g.seed+g.mix(g.next+round+1)))
		}
		out[i] = x
	}
	g.next += 2
	return out
}

func (g *generator) fractions(n int, inner bool) []float64 {
	out := make([]float64, n)
	for i, w := range g.words(n) {
		if out[i] = float64(w>>8) / (1 << 24); inner {
			out[i] = (float64(w>>9) + 0.5) / (1 << 23)
		}
	}
	return out
}

func seeded(s float32) *generator { return &generator{seed: math.Float32bits(s)} }

func uniform(seed float32, low, high float64, shape ...int) func([]array) []array {
	return func([]array) []array {
		v := seeded(seed).fractions(elements(shape), false)
		for i := range v {
			v[i] = low + v[i]*(high-low)
		}
		return []array{{shape, v}}
	}
}

func gaussian(seed float32, mean, scale float64, shape ...int) func([]array) []array {
	return func([]array) []array {
		g := seeded(seed)
		u, v := g.fractions(elements(shape), true), g.fractions(elements(shape), false)
		for i := range u {
			u[i] = mean + scale*math.Sqrt(-2*math.Log(u[i]))*math.Cos(2*math.Pi*v[i])
		}
		return []array{{shape, u}}
	}
}

func sown(seed float32, more ...graph.Attr) []graph.Attr {
	return append(more, graph.Float("seed", seed))
}

func trials(in []array) []array {
	u := seeded(5).fractions(len(in[0].v), false)
	out := array{in[0].shape, make([]float64, len(u))}
	for i, p := range in[0].v {
		out.v[i] = oneIf(u[i] < p)
	}
	return []array{out}
}

// What is drawn looks as it should: moments, neighbours and seeds tell nothing.
func TestChanceIsFair(t *testing.T) {
	const n = 1 << 14
	draw := func(seed float32) []float64 {
		b := graph.NewBuilder("chance")
		x := b.With(sown(seed, graph.Ints("shape", n))...).Op("RandomUniform")
		return read(evaluate(t, infer(t, b, x), nil, nil)[0]).v
	}
	mean := func(f func(i int) float64) (sum float64) {
		for i := range n {
			sum += f(i)
		}
		return sum / n
	}
	x, y := draw(1), draw(2)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"mean", mean(func(i int) float64 { return x[i] }), 1.0 / 2},
		{"mean square", mean(func(i int) float64 { return x[i] * x[i] }), 1.0 / 3},
		{"product of neighbours", mean(func(i int) float64 { return x[i] * x[(i+1)%n] }), 1.0 / 4},
		{"product of two seeds", mean(func(i int) float64 { return x[i] * y[i] }), 1.0 / 4},
	} {
		if math.Abs(c.got-c.want) > 0.01 {
			t.Errorf("%s is %v, want about %v", c.name, c.got, c.want)
		}
	}
}
