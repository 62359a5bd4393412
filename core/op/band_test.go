package op_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sample{name: "BandedMatMul", op: "BandedMatMul", in: []arg{f(3, 5), f(5, 2)}, want: inBand(0, -1, -1)},
	sample{name: "BandedMatMul, triangles", op: "BandedMatMul", attrs: ofBand(2, -1, 0), in: []arg{f(2, 3, 5), f(2, 5, 4)}, want: inBand(2, -1, 0)},
	sample{name: "BandedMatMul, one matrix for many", op: "BandedMatMul", attrs: ofBand(1, 2, 1), in: []arg{f(2, 4, 6), f(6, 3)}, want: inBand(1, 2, 1)},
	sample{name: "BandedMatMul, rows without terms", op: "BandedMatMul", attrs: ofBand(-2, 1, 0), in: []arg{f(6, 3), f(3, 2)}, want: inBand(-2, 1, 0)},
)

var _ = refuse(
	refusal{"not those of matrices", "BandedMatMul", nil, []arg{f(3), f(3, 2)}, 1},
	refusal{"is out of range", "BandedMatMul", []graph.Attr{graph.Int("lower", -2)}, []arg{f(2, 3), f(3, 2)}, 1},
	refusal{"is out of range", "BandedMatMul", []graph.Attr{graph.Int("offset", math.MinInt64)}, []arg{f(2, 3), f(3, 2)}, 1},
)

func ofBand(offset, lower, upper int) []graph.Attr {
	return []graph.Attr{graph.Int("lower", lower), graph.Int("offset", offset), graph.Int("upper", upper)}
}

// inBand is the meaning of BandedMatMul for finite numbers.
func inBand(offset, lower, upper int) func(in []array) []array {
	return func(in []array) []array {
		x := in[0]
		rows := len(x.shape) - 2
		kept := filled(x.shape, func(at []int) float64 {
			if d := at[rows+1] - at[rows] - offset; lower >= 0 && d < -lower || upper >= 0 && d > upper {
				return 0
			}
			return x.at(at)
		})
		return product([]array{kept, in[1]})
	}
}

// attend returns the result of queries that follow past keys, [heads, rows, 2].
func attend(t *testing.T, window int, q, k, v *tensor.Tensor, past int) []tensor.Word {
	t.Helper()
	b := graph.NewBuilder("attention")
	var in [3]string
	for i, x := range []*tensor.Tensor{q, k, v} {
		in[i] = b.Input(fmt.Sprint("x", i), x.Type, x.Shape)
	}
	cut := func(x string, from, to int) string {
		return b.Op("Slice", x, b.Ints(from), b.Ints(to), b.Ints(2))
	}
	n := k.Shape[2]
	y := b.With(graph.Int("is_causal", 1), graph.Int("left_window_size", window)).Op("Attention",
		in[0], cut(in[1], past, n), cut(in[2], past, n), "", cut(in[1], 0, past), cut(in[2], 0, past))
	cached := b.With(graph.Int("left_window_size", window)).Op("CachedAttention", in[0], in[1], in[2])
	both := evaluate(t, infer(t, b, y, cached), []*tensor.Tensor{q, k, v}, nil)
	out := both[0]
	if !out.Equal(both[1]) {
		t.Fatalf("%d queries after %d: a cache gives others than a past", q.Shape[2], past)
	}
	words := make([]tensor.Word, out.Len())
	for i := range words {
		words[i] = out.At(i)
	}
	return words
}

// A query has the same result alone, behind its past, as in a chunk with others after it, whatever these hold: what decodes one token
// after the other equals what reads them at once, bit for bit.
func TestDecodingEqualsPrefill(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	odd := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, -math.MaxFloat32}
	tiny := []float32{float32(math.Copysign(0, -1)), 0, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32}
	const heads, shared, width, chunk = 2, 1, 2, 3
	usual := func(int) float32 { return float32(r.NormFloat64()) }
	fill := func(at func(place int) float32, s ...int) *tensor.Tensor {
		x := tensor.Must(tensor.New(tensor.Float32, s))
		for i := range x.Len() {
			x.Set(i, tensor.F32(at(i/width%s[2])))
		}
		return x
	}
	for _, n := range []int{4, 31, 32, 33, 129, 4095, 4096, 4097, 8193, 12_289} {
		ends := func(place int) float32 { // strange where the first query of the chunk does not see
			if place > n-chunk && r.IntN(2) == 0 {
				return odd[r.IntN(len(odd))]
			}
			return usual(place)
		}
		vanish := func(int) float32 { return tiny[r.IntN(len(tiny))] }
		for _, window := range []int{-1, 0, 5, 31, 4096} {
			for name, x := range map[string]struct{ keys, values func(int) float32 }{
				"usual": {usual, usual}, "keys at the end": {ends, usual}, "values at the end": {usual, ends}, "both": {ends, ends}, "vanishing": {usual, vanish},
			} {
				q, k, v := fill(usual, 1, heads, chunk, width), fill(x.keys, 1, shared, n, width), fill(x.values, 1, shared, n, width)
				past := n - chunk
				whole := attend(t, window, q, k, v, past)
				for i := range chunk {
					end := past + i + 1
					alone := attend(t, window, part(q, i, i+1), part(k, 0, end), part(v, 0, end), end-1)
					for h := range heads {
						got, want := whole[(h*chunk+i)*width:][:width], alone[h*width:][:width]
						if !slices.Equal(got, want) {
							t.Fatalf("%d keys, window %d, %s, query %d of head %d: %x in the chunk, %x alone", n, window, name, i, h, got, want)
						}
					}
				}
			}
		}
	}
}

// part returns places from…to−1 of x [1, heads, places, width].
func part(x *tensor.Tensor, from, to int) *tensor.Tensor {
	s := x.Shape.Clone()
	s[2] = to - from
	out := tensor.Must(tensor.New(x.Type, s))
	at := make([]int, 4)
	for i := range out.Len() {
		s.Coords(i, at)
		out.Set(i, x.At((at[1]*x.Shape[2]+from+at[2])*x.Shape[3]+at[3]))
	}
	return out
}
