package conform

import (
	"math/rand/v2"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Fusible returns a random program of the kind that executors run several nodes of
// at once: maps over one shape, sums and maxima of its rows, and what is
// broadcast to it, as in a softmax, a normalisation or an optimizer.
func Fusible(r *rand.Rand) (*graph.Program, graph.Inputs) {
	rows, cols := 1+r.IntN(9), pick(r, 1, 2, 7, 16, 31, 32, 33, 48, 100, 1030)
	if r.IntN(8) == 0 {
		rows = 1 + r.IntN(300)
	}
	return fusibleOf(r, rows, cols)
}

func fusibleOf(r *rand.Rand, rows, cols int) (*graph.Program, graph.Inputs) {
	b := &builder{r: r, p: &graph.Program{Groups: 1}}
	f := &fusible{builder: b, rows: rows, cols: cols}
	f.typ = pick(r, tensor.Float32, tensor.Float32, tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64, tensor.Int32, tensor.Uint8)
	for i, s := range [][]int{{f.rows, f.cols}, {f.rows, f.cols}, {f.rows, 1}, {1, f.cols}, {1, 1}} {
		ref := graph.Ref{Kind: graph.RefSlot, Index: i}
		b.slot(string(rune('a'+i)), f.typ, s, ref)
		f.values = append(f.values, ref)
	}
	for range 3 + r.IntN(20) {
		f.grow()
	}
	for i, s := range b.p.Slots {
		if same := f.like(s.Shape, s.Type); len(same) > 0 && r.IntN(4) > 0 {
			b.p.Outputs[i] = pick(r, same...)
		}
	}
	return b.p, b.inputs()
}

// fusible draws such a program.
type fusible struct {
	*builder
	rows, cols int
	typ        tensor.DType
	values     []graph.Ref
}

// like returns the values of a type and shape.
func (f *fusible) like(s tensor.Shape, t tensor.DType) (out []graph.Ref) {
	for _, v := range f.values {
		if typ, shape, _ := f.p.Typed(v, len(f.p.Nodes)); typ == t && shape.Equal(s) {
			out = append(out, v)
		}
	}
	return out
}

// grow appends a node that reads values there are, most often late ones.
func (f *fusible) grow() {
	r := f.r
	late := func() graph.Ref { return f.values[len(f.values)-1-r.IntN(min(len(f.values), 1+r.IntN(len(f.values))))] }
	x := late()
	t, s, _ := f.p.Typed(x, len(f.p.Nodes))
	p := &tensor.Primitive{Type: t, Shape: s}
	from := []graph.Ref{x}
	read := func(v graph.Ref) { // as broadcasting does
		vt, vs, _ := f.p.Typed(v, len(f.p.Nodes))
		a := tensor.Access{Type: vt, Shape: vs, Dims: make([]tensor.Dim, 2)}
		for d := range vs {
			if vs[d] > 1 || p.Shape[d] == 1 {
				a.Dims[d].Terms = []tensor.Term{{Axis: d, Step: 1}}
			}
		}
		p.Args = append(p.Args, a)
	}
	float := t.Float()
	switch k := r.IntN(10); {
	case k < 5:
		p.Fn = pick(r, tensor.Add, tensor.Sub, tensor.Mul, tensor.Div, tensor.Max, tensor.Min)
		y := late()
		yt, ys, _ := f.p.Typed(y, len(f.p.Nodes))
		if yt != t {
			return
		}
		p.Shape = tensor.Shape{max(s[0], ys[0]), max(s[1], ys[1])}
		read(x)
		read(y)
		from = append(from, y)
	case k < 6 && float:
		p.Fn = pick(r, tensor.ExpF, tensor.TanhF, tensor.SqrtF, tensor.LogF, tensor.Neg, tensor.Abs)
		read(x)
	case k < 8 && !t.Half():
		p.Fn = pick(r, tensor.FoldSum, tensor.FoldSum, tensor.FoldMax, tensor.FoldMin, tensor.FoldProd)
		p.Shape, p.Fold = tensor.Shape{s[0], 1}, []int{s[1]}
		p.Args = []tensor.Access{{Type: t, Shape: s, Dims: []tensor.Dim{{Terms: []tensor.Term{{Axis: 0, Step: 1}}}, {Terms: []tensor.Term{{Axis: 2, Step: 1}}}}}}
	case k < 9:
		p.Fn, p.Imm = tensor.Copy, []tensor.Word{0}
		p.Args = []tensor.Access{{Type: t, Shape: s, Flat: true}}
	default: // back to front
		p.Fn, p.Imm = tensor.Copy, []tensor.Word{0}
		p.Args = []tensor.Access{{Type: t, Shape: s, Dims: []tensor.Dim{{Offset: s[0] - 1, Terms: []tensor.Term{{Axis: 0, Step: -1}}}, {Terms: []tensor.Term{{Axis: 1, Step: 1}}}}}}
	}
	f.values = append(f.values, f.node(p, from))
}
