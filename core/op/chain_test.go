package op_test

import (
	"slices"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"pgregory.net/rapid"
)

// chain applies operators to a value and, in the reference, to its array.
type chain struct {
	t *rapid.T
	b *graph.Builder
	v string
	a array
}

func (c *chain) apply(op string, want func([]array) []array, attrs []graph.Attr, more ...string) {
	c.v = c.b.With(attrs...).Op(op, append([]string{c.v}, more...)...)
	c.a = want([]array{c.a})[0]
}

func (c *chain) int(lo, hi int, what string) int { return rapid.IntRange(lo, hi).Draw(c.t, what) }

// move applies a random operator that only moves data.
func (c *chain) move() {
	rank := len(c.a.shape)
	switch c.int(0, 5, "move") {
	case 0:
		perm := rapid.Permutation(count(rank)).Draw(c.t, "perm")
		c.apply("Transpose", transposed(perm...), []graph.Attr{graph.Ints("perm", perm...)})
	case 1: // to two axes, or one, or with a 1 in between
		cut := c.int(0, rank, "cut")
		s := []int{elements(c.a.shape[:cut]), 1, elements(c.a.shape[cut:])}
		c.apply("Reshape", become(s...), nil, c.b.Ints(s...))
	case 2: // split an axis in two
		a := c.int(0, rank-1, "axis")
		for d := 2; d < c.a.shape[a]; d++ {
			if c.a.shape[a]%d == 0 && rank < 6 {
				s := slices.Insert(slices.Clone(c.a.shape), a+1, c.a.shape[a]/d)
				s[a] = d
				c.apply("Reshape", become(s...), nil, c.b.Ints(s...))
				return
			}
		}
	case 3:
		a := c.int(0, rank-1, "axis")
		n := c.a.shape[a]
		start, step := c.int(0, n-1, "start"), 1
		if c.int(0, 1, "backwards") == 1 {
			step = -1
		}
		step *= c.int(1, 2, "step")
		s, end := slices.Clone(c.a.shape), n
		s[a] = (n - start + step - 1) / max(step, 1)
		if step < 0 {
			end, s[a] = -n-1, (start-step)/-step
		}
		c.apply("Slice", picked(s, 0, func(at []int) ([]int, bool) { at[a] = start + step*at[a]; return at, true }), nil,
			c.b.Ints(start), c.b.Ints(end), c.b.Ints(a), c.b.Ints(step))
	case 4:
		s := append([]int{2}, c.a.shape...)
		if rank < 5 && elements(s) < 500 {
			c.apply("Expand", expanded(s...), nil, c.b.Ints(s...))
		}
	case 5:
		a := c.int(0, rank, "axis")
		if rank < 6 {
			c.apply("Unsqueeze", become(slices.Insert(slices.Clone(c.a.shape), a, 1)...), nil, c.b.Ints(a))
		}
	}
}

// consume applies a random operator that reads elements.
func (c *chain) consume() {
	rank := len(c.a.shape)
	a := c.int(0, rank-1, "axis")
	switch c.int(0, 6, "operator") {
	case 0:
		c.apply("Add", pointwise(func(x []float64) float64 { return 2 * x[0] }), nil, c.v)
	case 1:
		c.apply("ReduceSum", reduced(true, total, a), nil, c.b.Ints(a))
	case 2:
		v := c.v
		c.apply("Concat", func(in []array) []array { return concatenated(a)([]array{in[0], in[0], in[0]}) }, axisIs(a), v, v)
	case 3:
		pads, before := make([]int, 2*rank), make([]int, rank)
		before[a] = c.int(-1, 1, "before")
		pads[a], pads[rank+a] = before[a], 1
		s := slices.Clone(c.a.shape)
		s[a] += before[a] + 1
		c.apply("Pad", picked(s, 0, inside(c.a.shape, before)), nil, c.b.Ints(pads...))
	case 4:
		idx := array{[]int{2}, []float64{float64(c.int(-9, 9, "index")), 0}}
		c.apply("Gather", func(in []array) []array { return gathered(a)([]array{in[0], idx}) }, axisIs(a), c.b.Const(idx.tensor(tensor.Int64)))
	case 5:
		if rank < 2 {
			return
		}
		perm := count(rank)
		perm[rank-2], perm[rank-1] = rank-1, rank-2
		v := c.b.With(graph.Ints("perm", perm...)).Op("Transpose", c.v)
		c.apply("MatMul", func(in []array) []array { return product([]array{in[0], transposed(perm...)(in)[0]}) }, nil, v)
	case 6:
		c.apply("Neg", pointwise(func(x []float64) float64 { return -x[0] }), nil)
	}
}

func count(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// However data is moved before it is read, the result is that of moving it.
func TestMovedDataIsReadWhereItCameFrom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sample{name: "chain", in: []arg{ints(tensor.Int64, -9, 9, rapid.SliceOfN(rapid.IntRange(1, 4), 1, 3).Draw(t, "shape")...)}}
		arrays, tensors := s.draw()
		b := graph.NewBuilder("chain")
		c := &chain{t: t, b: b, v: b.Input("x", tensor.Int64, arrays[0].shape), a: arrays[0]}
		for range c.int(1, 3, "rounds") {
			for range c.int(0, 4, "moves") {
				if c.move(); elements(c.a.shape) == 0 {
					return
				}
			}
			if c.consume(); elements(c.a.shape) == 0 || elements(c.a.shape) > 2000 || len(c.a.shape) > 6 {
				break
			}
		}
		b.Output(c.v, 0, nil)
		typed, err := op.Infer(b.Graph(), lower.FP32)
		if err != nil {
			t.Fatal(err)
		}
		got := read(evaluate(t, typed, tensors, nil)[0])
		if !slices.Equal(got.shape, c.a.shape) || !slices.Equal(got.v, c.a.v) {
			t.Fatalf("got %v %v\nwant %v %v", got.shape, got.v, c.a.shape, c.a.v)
		}
	})
}
