package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/plan"
	"github.com/tally-network/tally/internal/testkit/conform"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// Elided joins of what contractions, pools and maps have made, of constants, of joins and
// of the same again, which are read whole or in part, or kept.
func TestConcatElision(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 2))
	var executors []engine.Executor
	for _, set := range asm.Sets() {
		executors = append(executors, kerneltest.Eager(set)(1), kerneltest.Eager(set)(2))
	}
	joined, rounds := 0, 400
	if testing.Short() {
		rounds = 60
	}
	for round := range rounds {
		p, in := (&joiner{r: r, batch: 1 + r.IntN(6)/5, lines: 3 + 3*r.IntN(2), p: &graph.Program{Groups: 1}}).draw()
		if err := conform.Compare(executors, p, in); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		joined += plan.ElidedConcats(p, asm.Sets()[0])
	}
	if joined < rounds/8 {
		t.Errorf("only %d joins are elided", joined)
	}
}

// joiner draws programs of values [batch channels lines 5]. With an odd number of lines, a
// part may begin at no multiple of eight bytes, where no tensor can be.
type joiner struct {
	r      *rand.Rand
	batch  int
	lines  int
	p      *graph.Program
	values []graph.Ref
}

func (j *joiner) constant(s ...int) graph.Ref {
	j.p.Consts = append(j.p.Consts, kerneltest.Drawn(j.r, tensor.Float32, s, 0, kerneltest.NegativeZero, 1, -1, 2.5, -0.75))
	return graph.Ref{Kind: graph.RefConst, Index: len(j.p.Consts) - 1}
}

// access reads all of a value, from a place along its channels on.
func (j *joiner) access(ref graph.Ref, from int) tensor.Access {
	_, s, _ := j.p.Typed(ref, len(j.p.Nodes))
	a := tensor.Access{Type: tensor.Float32, Shape: s, Dims: kerneltest.Dims(0, 1, 2, 3)}
	a.Dims[1].Offset = from
	return a
}

func (j *joiner) node(fn tensor.Fn, channels int, fold []int, args []tensor.Access, from ...graph.Ref) {
	n := &tensor.Primitive{Fn: fn, Type: tensor.Float32, Shape: tensor.Shape{j.batch, channels, j.lines, 5}, Fold: fold, Args: args}
	if fn.Kind() == tensor.KindIndex {
		n.Imm = []tensor.Word{0}
	}
	j.p.Nodes = append(j.p.Nodes, graph.Opcode{Primitive: n, From: from})
	j.values = append(j.values, graph.Ref{Kind: graph.RefNode, Index: len(j.p.Nodes) - 1})
}

func (j *joiner) draw() (*graph.Program, graph.Inputs) {
	j.values = []graph.Ref{j.constant(j.batch, 3, j.lines, 5)}
	for range 6 + j.r.IntN(14) {
		x := j.values[max(len(j.values)-1-j.r.IntN(4), 0)]
		all := j.access(x, 0)
		channels := all.Shape[1]
		switch j.r.IntN(7) {
		case 0:
			out := 1 + j.r.IntN(20)
			all.Dims = kerneltest.Dims(0, 4, 2, 3)
			weights := tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{out, channels}, Dims: kerneltest.Dims(1, 4)}
			j.node(tensor.Dot, out, []int{channels}, []tensor.Access{all, weights}, x, j.constant(out, channels))
		case 1:
			all.Dims[2] = tensor.Dim{Offset: -1, Terms: []tensor.Term{{Axis: 2, Step: 1}, {Axis: 4, Step: 1}}}
			all.Dims[3] = tensor.Dim{Offset: -1, Terms: []tensor.Term{{Axis: 3, Step: 1}, {Axis: 5, Step: 1}}}
			j.node(tensor.FoldMax, channels, []int{3, 3}, []tensor.Access{all}, x)
		case 2: // a part
			n := 1 + j.r.IntN(channels)
			j.node(tensor.Copy, n, nil, []tensor.Access{j.access(x, j.r.IntN(channels-n+1))}, x)
		case 3:
			bias := tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{channels}, Dims: kerneltest.Dims(1)}
			j.node(tensor.Add, channels, nil, []tensor.Access{all, bias}, x, j.constant(channels))
		case 4:
			one := tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{1}, Dims: []tensor.Dim{{}}}
			j.node(tensor.Max, channels, nil, []tensor.Access{all, one}, x, j.constant(1))
		default:
			j.join()
		}
	}
	state := &graph.State{}
	for i := range 1 + j.r.IntN(2) {
		ref := j.values[len(j.values)-1-i*j.r.IntN(len(j.values))]
		_, s, _ := j.p.Typed(ref, len(j.p.Nodes))
		j.p.Slots, j.p.Outputs = append(j.p.Slots, graph.Slot{Name: fmt.Sprint(i), Type: tensor.Float32, Shape: s}), append(j.p.Outputs, ref)
		state.Tensors = append(state.Tensors, tensor.Must(tensor.New(tensor.Float32, s)))
	}
	state.Slots = j.p.Slots
	return j.p, graph.Inputs{States: []*graph.State{state}}
}

// join puts some of the last values together.
func (j *joiner) join() {
	var args []tensor.Access
	var from []graph.Ref
	channels := 0
	for range 2 + j.r.IntN(2) {
		x := j.values[max(len(j.values)-1-j.r.IntN(3), 0)]
		a := j.access(x, -channels)
		if j.r.IntN(12) == 0 { // nothing is there, as if it were a line further on
			a.Dims[2].Offset, a.Dims[3].Offset = 1, -5
		}
		if channels += a.Shape[1]; channels > 60 {
			return
		}
		args, from = append(args, a), append(from, x)
	}
	j.node(tensor.Join, channels, nil, args, from...)
}

// Planning a tree of joins that many nodes read takes time in proportion to its nodes.
func BenchmarkTreeOfJoins(b *testing.B) {
	for _, n := range []int{1024, 2048, 4096} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			j := &joiner{r: rand.New(rand.NewPCG(6, 3)), batch: 1, lines: 6, p: &graph.Program{Groups: 1}}
			x := j.constant(1, 1, 6, 5)
			for range n {
				j.node(tensor.Add, 1, nil, []tensor.Access{j.access(x, 0), j.access(x, 0)}, x, x)
			}
			level := j.values
			for len(level) > 1 {
				j.values = nil
				for i := 0; i < len(level); i += 2 {
					left := j.access(level[i], 0)
					channels := left.Shape[1]
					j.node(tensor.Join, 2*channels, nil, []tensor.Access{left, j.access(level[i+1], -channels)}, level[i], level[i+1])
				}
				level = j.values
			}
			for i := range n {
				j.node(tensor.Copy, 1, nil, []tensor.Access{j.access(level[0], i)}, level[0])
				j.p.Slots = append(j.p.Slots, graph.Slot{Name: fmt.Sprint(i), Type: tensor.Float32, Shape: tensor.Shape{1, 1, 6, 5}})
			}
			j.p.Outputs = j.values[1:]
			for b.Loop() {
				plan.ElidedConcats(j.p, asm.Sets()[0])
			}
		})
	}
}
