package bench

import (
	"testing"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/model/zoo"
)

// A model too large for any memory here has a real program, and any of its nodes
// can be disputed.
func TestImaginedDisputes(t *testing.T) {
	m := zoo.GPT{Vocab: 1 << 14, Context: 256, Width: 2048, Layers: 19, Heads: 16}
	p, err := outline(m, 4)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Parameters(); n < 1e9 {
		t.Fatalf("%d parameters", n)
	}
	c := p.Commit()
	tried := map[tensor.Fn]bool{}
	for node := range p.Nodes {
		n := &p.Nodes[node]
		if tried[n.Fn] {
			continue
		}
		tried[n.Fn] = true
		g, err := imagine(dispute.DefaultRules, p, c, 1000, 100, 777, node, n.Shape.Elements()-1, max(n.Blocks()-1, 0))
		if err != nil {
			t.Fatal(err)
		}
		end, err := g.play(func(before *dispute.Game, m dispute.Move) error {
			_, err := dispute.DecodeMove(dispute.EncodeMove(m))
			return err
		})
		if err != nil {
			t.Fatalf("%v: %v", n.Fn, err)
		}
		t.Logf("%v%v: %d moves", n.Fn, n.Shape, end.Moves)
	}
	if len(tried) < 10 {
		t.Errorf("only %d functions", len(tried))
	}
}
