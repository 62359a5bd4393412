package train_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// programs returns real programs: steps of models that differ in kind, and a merge.
func programs(t *testing.T) map[string]*graph.Program {
	t.Helper()
	out := map[string]*graph.Program{}
	for name, g := range map[string]*graph.Graph{"bigram": bigram(), "mlp": deepMLP(3, 8, batch, context), "images": images(batch, context), "gpt": small.graph(batch)} {
		tr, err := train.New(g, recipe(), tensor.Shape{records, small.context + 1})
		if err != nil {
			if tr, err = train.New(g, recipe(), tensor.Shape{records, context + 1}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		out[name] = tr.Program
		if name == "gpt" {
			_, merge, err := train.Merge(tr.Start.Slots, 3)
			if err != nil {
				t.Fatal(err)
			}
			out["merge"] = merge
		}
	}
	return out
}

// lies are what a leaf can say that is not so: each returns false if it cannot be said of it.
var lies = map[string]func(p *graph.Program, i int, n *graph.Leaf) bool{
	"sum":        func(_ *graph.Program, i int, n *graph.Leaf) bool { n.Before.FLOPs += 1e9; return true },
	"bytes":      func(_ *graph.Program, i int, n *graph.Leaf) bool { n.Before.Bytes++; return true },
	"of no use":  func(_ *graph.Program, i int, n *graph.Leaf) bool { n.Reader = 0; return true },
	"read early": func(_ *graph.Program, i int, n *graph.Leaf) bool { n.Reader = i; return i > 0 },
	"misread": func(p *graph.Program, i int, n *graph.Leaf) bool {
		for r := i + 1; r < len(p.Nodes); r++ {
			if !slices.Contains(p.Nodes[r].From, graph.Ref{Kind: graph.RefNode, Index: i}) {
				n.Reader = r
				return true
			}
		}
		return false
	},
	"not given": func(p *graph.Program, i int, n *graph.Leaf) bool {
		for q, r := range p.Outputs {
			if r != (graph.Ref{Kind: graph.RefNode, Index: i}) {
				n.Reader = len(p.Nodes) + q
				return true
			}
		}
		return false
	},
	"constant": func(_ *graph.Program, _ int, n *graph.Leaf) bool { was := n.Source; n.Source = 0; return was != 0 },
	"follows from a constant": func(_ *graph.Program, _ int, n *graph.Leaf) bool {
		for j, r := range n.From {
			if r.Kind == graph.RefConst {
				n.Source = j + 1
				return true
			}
		}
		return false
	},
	"larger operand": func(_ *graph.Program, _ int, n *graph.Leaf) bool {
		for j := range n.Args {
			if a := &n.Args[j]; !a.Flat && len(a.Shape) > 0 {
				a.Shape = slices.Clone(a.Shape)
				a.Shape[0]++
				return n.Check() == nil
			}
		}
		return false
	},
	"larger result": func(_ *graph.Program, _ int, n *graph.Leaf) bool {
		if len(n.Fold) > 0 || n.Fn.Scatters() || len(n.Shape) == 0 {
			return false
		}
		n.Shape = slices.Clone(n.Shape)
		n.Shape[0]++
		return n.Check() == nil
	},
	"no primitive": func(_ *graph.Program, _ int, n *graph.Leaf) bool { n.Fn = 255; return true },
}

// For the nodes of real programs, and each kind of lie about it, whoever knows the program finds
// what shows it, and the judge agrees. The sums are made to follow, as a careful liar would.
func TestEveryLieAboutRealProgramsIsExposed(t *testing.T) {
	for name, p := range programs(t) {
		if p.Commit().Refute() != nil {
			t.Fatalf("%s: the honest program is exposed", name)
		}
		told, largest := 0, 0
		every := len(p.Nodes)/200 + 1 // of the largest one node in four: each lie commits to all of it again
		for i := 0; i < len(p.Nodes); i += every {
			for what, lie := range lies {
				leaves := p.Leaves()
				n := &leaves[i]
				own := *n.Primitive
				own.Args = slices.Clone(own.Args)
				n.Primitive, n.From = &own, slices.Clone(n.From)
				if !lie(p, i, n) {
					continue
				}
				told++
				cost := p.Cost()
				if what != "sum" && what != "bytes" {
					cost = resum(leaves)
				}
				c := p.CommitAs(leaves, cost)
				x := c.Refute()
				if x == nil {
					t.Fatalf("%s, node %d of %d (%s): %s: nobody finds it", name, i, len(p.Nodes), n.Origin.Op, what)
				}
				if why, err := x.Judge(c.Root()); err != nil {
					t.Fatalf("%s, node %d: %s: %q, %v", name, i, what, why, err)
				}
				size := 0
				for _, o := range x.Opened {
					size += len(o.Leaf) + 32*len(o.Path)
				}
				largest = max(largest, size)
			}
		}
		if told < 5*len(p.Nodes)/every {
			t.Errorf("%s: %d lies were told about %d nodes", name, told, len(p.Nodes))
		}
		t.Logf("%s: %d lies about %d nodes, at most %d bytes each to show", name, told, len(p.Nodes), largest)
	}
}

// resum makes the sums follow from what the leaves say, and returns the last.
func resum(leaves []graph.Leaf) (sum graph.Cost) {
	for i := range leaves {
		leaves[i].Before = sum
		c := leaves[i].Cost()
		sum = graph.Cost{FLOPs: sum.FLOPs + c.FLOPs, Bytes: sum.Bytes + c.Bytes}
	}
	return sum
}

// Whatever is opened of a real program, it shows nothing.
func TestHonestProgramsAreNeverExposed(t *testing.T) {
	for name, p := range programs(t) {
		c := p.Commit()
		rapid.Check(t, func(t *rapid.T) {
			i := rapid.IntRange(0, len(p.Nodes)-1).Draw(t, "node")
			parts := []graph.Opened{{List: graph.InNodes, Index: i}}
			for l, n := range map[graph.List]int{graph.InNodes: len(p.Nodes), graph.InSlots: len(p.Slots), graph.InConsts: len(p.Consts), graph.InOutputs: len(p.Outputs)} { // order: one is drawn
				if n > 0 {
					parts = append(parts[:1], graph.Opened{List: l, Index: rapid.IntRange(0, n-1).Draw(t, "other")})
					if why, err := c.Open(slices.Clone(parts)...).Judge(c.Root()); !errors.Is(err, graph.ErrSound) {
						t.Fatalf("%s: %v: %q, %v", name, parts, why, err)
					}
				}
			}
			for _, r := range p.Nodes[i].From { // what it reads, above all
				lists := map[graph.RefKind]graph.List{graph.RefNode: graph.InNodes, graph.RefSlot: graph.InSlots, graph.RefConst: graph.InConsts}
				if l := lists[r.Kind]; l != 0 {
					if why, err := c.Open(parts[0], graph.Opened{List: l, Index: r.Index}).Judge(c.Root()); !errors.Is(err, graph.ErrSound) {
						t.Fatalf("%s: node %d, %v: %q, %v", name, i, r, why, err)
					}
				}
			}
		})
	}
}
