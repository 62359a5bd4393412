package fuse_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/fuse"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// node is a primitive and what it reads: slots, or nodes before it.
type node struct {
	*tensor.Primitive
	from []graph.Ref
}

// program implements fuse.Graph.
type program []node

func (p program) Primitive(i int) *tensor.Primitive { return p[i].Primitive }

func (p program) Source(i, j int) graph.Ref { return p[i].from[j] }

func (p program) Producers(i int, do func(int)) {
	for _, r := range p[i].from {
		if r.Kind == graph.RefNode {
			do(r.Index)
		}
	}
}

func slot(i int) graph.Ref  { return graph.Ref{Kind: graph.RefSlot, Index: i} }
func from(i int) graph.Ref  { return graph.Ref{Kind: graph.RefNode, Index: i} }
func all(n int) (out []int) { return append(out, []int{0, 1, 2, 3}[:n]...) }

// access reads a tensor of a shape along axes.
func access(of tensor.DType, shape tensor.Shape, axes ...int) tensor.Access {
	return tensor.Access{Type: of, Shape: shape, Dims: kerneltest.Dims(axes...)}
}

// mapped is a map of operands over a shape.
func mapped(fn tensor.Fn, of tensor.DType, shape tensor.Shape, args ...tensor.Access) *tensor.Primitive {
	return &tensor.Primitive{Fn: fn, Type: of, Shape: shape, Args: args}
}

const f32 = tensor.Float32

// groups are nodes that a plan fuses, of rows that a chunk holds, and of more.
func groups(rows, width int) map[string]struct {
	program
	rows  int // of the group
	slots []tensor.Access
} {
	s, row, col := tensor.Shape{rows, width}, tensor.Shape{width}, tensor.Shape{rows}
	x, bias, scale := access(f32, s, 0, 1), access(f32, row, 1), access(f32, col, 0)
	most := &tensor.Primitive{Fn: tensor.FoldMax, Type: f32, Shape: col, Fold: []int{width}, Args: []tensor.Access{access(f32, s, 0, 1)}}
	sum := &tensor.Primitive{Fn: tensor.FoldSum, Type: f32, Shape: col, Fold: []int{width}, Args: []tensor.Access{access(f32, s, 0, 1)}}
	turned := &tensor.Primitive{Fn: tensor.Copy, Type: f32, Shape: s, Imm: []tensor.Word{0}, Args: []tensor.Access{access(f32, tensor.Shape{width, rows}, 1, 0)}}
	padded := &tensor.Primitive{Fn: tensor.Copy, Type: f32, Shape: s, Imm: []tensor.Word{tensor.F32(-3)}, Args: []tensor.Access{
		{Type: f32, Shape: s, Dims: []tensor.Dim{kerneltest.Axis(0), {Offset: -1, Terms: []tensor.Term{{Axis: 1, Step: 1}}}}},
	}}
	joined := &tensor.Primitive{Fn: tensor.Join, Type: f32, Shape: s, Imm: []tensor.Word{0}, Args: []tensor.Access{padded.Args[0], x}}
	transposed, across := access(f32, tensor.Shape{width, rows}, 0, 1), access(f32, tensor.Shape{width, rows}, 1, 0)
	mostAcross := &tensor.Primitive{Fn: tensor.FoldMax, Type: f32, Shape: col, Fold: []int{width}, Args: []tensor.Access{across}}
	half := access(tensor.BFloat16, s, 0, 1)
	return map[string]struct {
		program
		rows  int
		slots []tensor.Access
	}{
		"a chain": {program{
			{mapped(tensor.Add, f32, s, x, x), []graph.Ref{slot(0), slot(1)}},
			{mapped(tensor.Mul, f32, s, x, x), []graph.Ref{from(0), slot(0)}},
			{mapped(tensor.Sub, f32, s, x, x), []graph.Ref{slot(1), from(1)}},
		}, 0, []tensor.Access{x, x}},
		"a bias and a scale": {program{
			{mapped(tensor.Add, f32, s, x, bias), []graph.Ref{slot(0), slot(1)}},
			{mapped(tensor.Mul, f32, s, x, scale), []graph.Ref{from(0), slot(2)}},
			{mapped(tensor.Max, f32, s, x, x), []graph.Ref{from(0), from(1)}},
		}, rows, []tensor.Access{x, access(f32, row, 0), access(f32, col, 0)}},
		"a value read twice": {program{
			{mapped(tensor.Add, f32, s, x, x), []graph.Ref{slot(0), slot(1)}},
			{mapped(tensor.ExpF, f32, s, x), []graph.Ref{from(0)}},
			{mapped(tensor.Mul, f32, s, x, x), []graph.Ref{from(0), from(1)}},
			{mapped(tensor.Sub, f32, s, x, x), []graph.Ref{from(2), slot(0)}},
		}, 0, []tensor.Access{x, x}},
		"two ways from a value": {program{
			{mapped(tensor.Neg, f32, s, x), []graph.Ref{slot(0)}},
			{mapped(tensor.Add, f32, s, x, x), []graph.Ref{from(0), slot(1)}},
			{mapped(tensor.ErfF, f32, s, x), []graph.Ref{from(0)}},
			{mapped(tensor.Sub, f32, s, x, x), []graph.Ref{from(1), from(2)}},
		}, 0, []tensor.Access{x, x}},
		"two ways from an operand": {program{
			{mapped(tensor.Mul, f32, s, x, x), []graph.Ref{slot(0), slot(1)}},
			{mapped(tensor.TanhF, f32, s, x), []graph.Ref{slot(0)}},
			{mapped(tensor.Div, f32, s, x, x), []graph.Ref{from(0), from(1)}},
			{mapped(tensor.Mul, f32, s, x, x), []graph.Ref{from(2), from(2)}},
		}, 0, []tensor.Access{x, x}},
		"a row without its greatest": {program{
			{most, []graph.Ref{slot(0)}},
			{mapped(tensor.Sub, f32, s, x, scale), []graph.Ref{slot(0), from(0)}},
			{sum, []graph.Ref{from(1)}},
			{mapped(tensor.Div, f32, s, x, scale), []graph.Ref{from(1), from(2)}},
		}, rows, []tensor.Access{x}},
		"turned, and pushed aside": {program{
			{turned, []graph.Ref{slot(0)}},
			{padded, []graph.Ref{slot(1)}},
			{mapped(tensor.Add, f32, s, x, x), []graph.Ref{from(0), from(1)}},
		}, 0, []tensor.Access{access(f32, tensor.Shape{width, rows}, 0, 1), x}},
		"a transposed operand": {program{
			{mapped(tensor.Mul, f32, s, x, across), []graph.Ref{slot(1), slot(0)}},
			{mapped(tensor.Add, f32, s, x, across), []graph.Ref{from(0), slot(2)}},
			{mapped(tensor.Sub, f32, s, across, x), []graph.Ref{slot(0), from(1)}},
		}, 0, []tensor.Access{transposed, x, transposed}},
		"transposed rows without their greatest": {program{
			{mostAcross, []graph.Ref{slot(0)}},
			{mapped(tensor.Sub, f32, s, across, scale), []graph.Ref{slot(0), from(0)}},
		}, rows, []tensor.Access{transposed}},
		"the first that has an element": {program{
			{joined, []graph.Ref{slot(0), slot(1)}},
			{mapped(tensor.Neg, f32, s, x), []graph.Ref{from(0)}},
		}, 0, []tensor.Access{x, x}},
		"halves": {program{
			{mapped(tensor.Add, tensor.BFloat16, s, half, half), []graph.Ref{slot(0), slot(1)}},
			{mapped(tensor.Cast, f32, s, half), []graph.Ref{from(0)}},
			{mapped(tensor.Mul, f32, s, x, x), []graph.Ref{from(1), from(1)}},
		}, 0, []tensor.Access{half, half}},
	}
}

// A fusion gives, for every node that others read, what its primitive says, whatever the
// ranges of rows in which it is computed, and overwrites what it may.
func TestFusionsEqualTheirNodes(t *testing.T) {
	r, over := rand.New(rand.NewPCG(9, 1)), 0
	for _, size := range [][2]int{{5, 7}, {3, 64}, {1, 33}, {40, 1}, {40, 70}, {2, kernel.Chunk + 5}, {kernel.Chunk + 5, 2}} {
		for _, name := range slices.Sorted(maps.Keys(groups(size[0], size[1]))) {
			g := groups(size[0], size[1])[name]
			for i, n := range g.program {
				if err := n.Check(); err != nil {
					t.Fatalf("%s, node %d: %v", name, i, err)
				}
			}
			for _, values := range [][]float64{kerneltest.Wild, kerneltest.NearTies} {
				for escaping := 1; escaping < 1<<len(g.program); escaping++ {
					if escaping>>(len(g.program)-1) == 0 { // nobody would read the last
						continue
					}
					escapes := func(i int) bool { return escaping>>i&1 != 0 }
					for _, set := range asm.Sets() {
						at := fmt.Sprintf("%s of %v, %b read, %s", name, size, escaping, set.Name)
						var slots []*tensor.Tensor
						for _, a := range g.slots {
							slots = append(slots, kerneltest.Drawn(r, a.Type, a.Shape, values...))
						}
						over += play(t, at, r, set, g.program, &fuse.Group{Nodes: all(len(g.program)), Elements: size[0] * size[1], Rows: g.rows, Head: fuse.NoHead}, escapes, slots)
					}
				}
			}
		}
	}
	if over < 100 {
		t.Errorf("only %d outputs were computed over an operand", over)
	}
}

// play runs a group, first with outputs of their own, then with one over an operand; it
// returns how often that was.
func play(t *testing.T, name string, r *rand.Rand, set *asm.KernelSet, p program, m *fuse.Group, escapes func(int) bool, slots []*tensor.Tensor) (over int) {
	t.Helper()
	var made []*tensor.Tensor
	read := func(ref graph.Ref) *tensor.Tensor {
		if ref.Kind == graph.RefNode {
			return made[ref.Index]
		}
		return slots[ref.Index]
	}
	for i := range p {
		var args []*tensor.Tensor
		for _, ref := range p[i].from {
			args = append(args, read(ref))
		}
		x, err := p[i].Eval(args)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		made = append(made, x)
	}
	b := fuse.Build(set, p, m, escapes)
	fresh := func() (outs, args []*tensor.Tensor) {
		for _, i := range b.Outs {
			outs = append(outs, tensor.Must(tensor.New(p[i].Type, p[i].Shape)))
		}
		for _, ref := range b.Args {
			args = append(args, read(ref).Clone())
		}
		return outs, args
	}
	run := func(how string, outs, args []*tensor.Tensor) {
		t.Helper()
		w := kernel.NewWorker()
		for lo := 0; lo < b.Fusion.Blocks(); {
			hi := lo + 1 + r.IntN(b.Fusion.Blocks()-lo)
			if err := b.Fusion.Run(w, outs, args, lo, hi); err != nil {
				t.Fatalf("%s%s: %v", name, how, err)
			}
			lo = hi
		}
		for o, i := range b.Outs {
			if !outs[o].Equal(made[i]) {
				t.Fatalf("%s%s: node %d is not what its primitive says", name, how, i)
			}
		}
	}
	outs, args := fresh()
	for _, x := range outs { // what is not written shows
		for i := range x.Bytes() {
			x.Bytes()[i] = 0xa5
		}
	}
	run("", outs, args)
	for o := range b.Outs {
		for _, a := range b.Overwrites(o) {
			outs, args := fresh()
			if slices.ContainsFunc(args, func(x *tensor.Tensor) bool { return len(x.Bytes()) == 0 }) || !args[a].Shape.Equal(outs[o].Shape) || args[a].Type != outs[o].Type {
				continue
			}
			outs[o] = args[a]
			over++
			run(fmt.Sprintf(", output %d over operand %d", o, a), outs, args)
		}
	}
	return over
}

func TestDescriptionsTellHowAFusionRuns(t *testing.T) {
	g := groups(5, 64)
	g["a transposed operand of 40 rows"] = groups(40, 70)["a transposed operand"]
	for name, want := range map[string]string{
		"a value read twice": "1 chain", "two ways from a value": "1 chain", "two ways from an operand": "1 chain",
		"a chain": "1 chain", "a bias and a scale": "1 chain, 1 load", "a row without its greatest": "2 chains, 2 maps and folds", "turned, and pushed aside": "1 chain, 2 loads",
		"a transposed operand of 40 rows": "2 transposed loads",
	} {
		p := g[name].program
		b := fuse.Build(asm.Sets()[0], p, &fuse.Group{Nodes: all(len(p)), Elements: p[len(p)-1].Shape.Elements(), Rows: g[name].rows, Head: fuse.NoHead}, func(i int) bool { return i == len(p)-1 })
		if d := b.Fusion.Describe(); d.Kernel != "elementwise" || !strings.Contains(d.Fusion, want) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
