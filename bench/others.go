package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
)

// What opML's authors report of a whole dispute: it takes about so many times the
// inference (arXiv 2401.17555).
const opML = 60

// others sets a dispute about one training step of the demo's model beside what
// other schemes would take for the same step: opML by its own report; Verde, whose
// referee runs a whole operator again, by the largest operator of the step.
func others(ctx context.Context, o Options) ([]Row, error) {
	p, in, err := demoStep()
	if err != nil {
		return nil, err
	}
	o.Tell("disputing a step of the demo's model, of %d nodes", len(p.Nodes))
	d, err := newDuel(ctx, p, in)
	if err != nil {
		return nil, err
	}
	var steps, duels time.Duration
	for range 3 { // interleaved, so that load slows both alike
		begun := time.Now()
		if _, err := d.runner.Run(ctx, in, nil); err != nil {
			return nil, err
		}
		steps += time.Since(begun)
		begun = time.Now()
		if err := d.play(); err != nil {
			return nil, err
		}
		duels += time.Since(begun)
	}
	mine, theirs, theirBytes := 0, 0, 0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		flops, _ := n.Cost()
		terms := max(n.Terms(), 1)
		mine = max(mine, flops/max(n.Shape.Elements()*terms, 1)*min(n.BlockTerms(), terms))
		bytes := 0
		for _, a := range n.Args {
			bytes += a.Shape.Elements() * a.Type.Size()
		}
		theirs, theirBytes = max(theirs, flops), max(theirBytes, bytes)
	}
	return []Row{
		row("dispute of a step, both sides and referee", "steps", duels.Seconds()/steps.Seconds()).beside("opML, by its report", opML),
		row("referee: arithmetic", "FLOP", float64(mine)).beside("Verde, largest operator", float64(theirs)),
		row("referee: operands", "KiB", float64(d.proof)/1024).beside("Verde, largest operator", float64(theirBytes)/1024),
	}, nil
}

// duel is a dispute about one step between a defender that is wrong in one
// element and a challenger.
type duel struct {
	ctx        context.Context
	program    *graph.Program
	commitment *graph.Commitment
	runner     engine.Runner
	in         graph.Inputs
	node       int // in which the defender is wrong
	proof      int // bytes of the last move
}

func newDuel(ctx context.Context, p *graph.Program, in graph.Inputs) (*duel, error) {
	d := &duel{ctx: ctx, program: p, commitment: p.Commit(), in: in}
	for i := range p.Nodes { // the longest sum there is
		if p.Nodes[i].Blocks() > p.Nodes[d.node].Blocks() {
			d.node = i
		}
	}
	var err error
	d.runner, err = cpu.New(1).Prepare(p)
	return d, err
}

// witness is a side's account of the step.
type witness struct{ run *dispute.Execution }

// Root implements dispute.Witness.
func (w witness) Root(int) (canon.Hash, error) { return w.run.Out.Root() }

// Execution implements dispute.Witness.
func (w witness) Execution(int) (*dispute.Execution, error) { return w.run, nil }

// account executes the step; wrongly it shows another output of one node, and
// claims another state.
func (d *duel) account(wrongly bool) (witness, error) {
	e, err := dispute.Execute(d.program, d.commitment, d.in, func(in graph.Inputs, observe graph.Observer) (*graph.State, error) {
		s, err := d.runner.Run(d.ctx, in, func(i int, t *tensor.Tensor) error {
			if wrongly && i == d.node {
				t = t.Clone()
				t.Set(t.Len()-1, t.At(t.Len()-1)^1)
			}
			return observe(i, t)
		})
		if err == nil && wrongly {
			x := s.Tensors[0].Clone()
			x.Set(0, x.At(0)^1)
			s = &graph.State{Slots: s.Slots, Tensors: append([]*tensor.Tensor{x}, s.Tensors[1:]...)}
		}
		return s, err
	})
	return witness{e}, err
}

// play makes both accounts and plays the game to its end.
func (d *duel) play() error {
	wrong, err := d.account(true)
	if err != nil {
		return err
	}
	right, err := d.account(false)
	if err != nil {
		return err
	}
	start, err := d.in.States[0].Root()
	if err != nil {
		return err
	}
	c := dispute.Claim{Program: d.commitment.Root(), Inputs: []canon.Hash{start}, Data: d.in.Data.Root(), Steps: 1}
	if c.End, err = wrong.run.Out.Root(); err != nil {
		return err
	}
	o, err := dispute.Challenge(c, nil, right)
	if err != nil {
		return err
	}
	g, err := dispute.Open(c, dispute.DefaultRules, o, 0)
	for err == nil && g.Stage != dispute.Over {
		w := right
		if g.Stage.Turn() == dispute.Defender {
			w = wrong
		}
		var m dispute.Move
		if m, err = dispute.Play(&g, w); err == nil {
			d.proof = len(dispute.EncodeMove(m))
			g, err = dispute.Apply(g, g.Stage.Turn(), m, 0)
		}
	}
	if err == nil && (g.Loser != dispute.Defender || g.Node != d.node) {
		err = fmt.Errorf("the dispute ended at node %d, not %d, and the %v lost: %s", g.Node, d.node, g.Loser, g.Reason)
	}
	return err
}
