package op_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
)

func function(t fataler, typed *lower.Typed) *graph.Program {
	t.Helper()
	p, err := typed.Function()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The program follows from structure: the order in which nodes and initializers
// are stored, and all names, may change.
func TestProgramDoesNotDependOnNamesOrStorage(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, s := range samples {
		_, tensors := s.draw()
		typed, _ := gradientGraph(t, s, tensors)
		if typed == nil {
			continue
		}
		want := bound(t, typed)
		g := shuffled(r, typed.Graph)
		other, err := op.Infer(g, lower.FP32)
		if err != nil {
			t.Fatal(err)
		}
		if got := bound(t, other); got != want {
			t.Errorf("%s: another program under other names", s.name)
		}
	}
}

// bound returns the root of a program whose slots are the inputs and outputs by
// their numbers.
func bound(t *testing.T, typed *lower.Typed) canon.Hash {
	b := lower.Binding{Groups: 1}
	for i, v := range typed.Inputs {
		b.Inputs = append(b.Inputs, graph.Ref{Kind: graph.RefSlot, Index: i})
		b.Slots, b.Outputs = append(b.Slots, graph.Slot{Type: v.Type, Shape: v.Shape}), append(b.Outputs, lower.Keep)
	}
	for i, v := range typed.Outputs {
		b.Slots, b.Outputs = append(b.Slots, graph.Slot{Type: v.Type, Shape: v.Shape}), append(b.Outputs, i)
	}
	p, err := typed.Program(b)
	if err != nil {
		t.Fatal(err)
	}
	return p.Commit().Root()
}

// shuffled stores a graph in another order under other names.
func shuffled(r *rand.Rand, g *graph.Graph) *graph.Graph {
	names := map[string]string{"": ""}
	rename := func(name string) string {
		if _, ok := names[name]; !ok {
			names[name] = string(rune('a'+r.IntN(26))) + canon.Sum("name", []byte(name)).Short()
		}
		return names[name]
	}
	each := func(in []string) []string {
		out := make([]string, len(in))
		for i, n := range in {
			out[i] = rename(n)
		}
		return out
	}
	out := &graph.Graph{Name: "other"}
	for _, v := range g.Inputs {
		out.Inputs = append(out.Inputs, graph.Value{Name: rename(v.Name), Type: v.Type, Shape: v.Shape})
	}
	for _, v := range g.Outputs {
		out.Outputs = append(out.Outputs, graph.Value{Name: rename(v.Name)})
	}
	for _, i := range r.Perm(len(g.Consts)) {
		out.Consts = append(out.Consts, graph.Const{Name: rename(g.Consts[i].Name), Tensor: g.Consts[i].Tensor.Clone()})
	}
	for _, i := range r.Perm(len(g.Nodes)) {
		n := g.Nodes[i]
		out.Nodes = append(out.Nodes, graph.Node{Name: rename(n.Name), Op: n.Op, Inputs: each(n.Inputs), Outputs: each(n.Outputs), Attrs: n.Attrs})
	}
	return out
}

// peak is what graph.Program.Peak says, by its definition.
func peak(p *graph.Program) (most int) {
	for at := range p.Nodes {
		used := map[int]bool{at: true}
		note := func(r graph.Ref) {
			if r.Kind == graph.RefNode && r.Index <= at {
				used[r.Index] = true
			}
		}
		for _, n := range p.Nodes[at:] {
			for _, r := range n.From {
				note(r)
			}
		}
		for _, r := range p.Outputs {
			note(r)
		}
		sum := 0
		for i := range used {
			sum += p.Nodes[i].Shape.Elements() * p.Nodes[i].Type.Size()
		}
		most = max(most, sum)
	}
	return most
}

func TestPeakEqualsItsDefinition(t *testing.T) {
	for _, s := range samples {
		_, tensors := s.draw()
		b, _, outputs := s.build(tensors)
		if p := function(t, infer(t, b, outputs...)); p.Peak() != peak(p) {
			t.Errorf("%s: a peak of %d bytes, by definition %d", s.name, p.Peak(), peak(p))
		}
		if typed, _ := gradientGraph(t, s, tensors); typed != nil {
			if p := function(t, typed); p.Peak() != peak(p) {
				t.Errorf("%s, gradient: a peak of %d bytes, by definition %d", s.name, p.Peak(), peak(p))
			}
		}
	}
}
