package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/engine/merkle"
	"github.com/tally-network/tally/model/zoo"
	"github.com/tally-network/tally/store"
)

// proofs measures what it costs to make work checkable, to check it, and to
// dispute it.
func proofs(ctx context.Context, o Options) ([]Row, error) {
	var rows []Row
	for _, part := range []func(context.Context, Options) ([]Row, error){proving, keeping, disputing, longest, refereeing, others} {
		r, err := part(ctx, o)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}
	return rows, nil
}

// How training is proved here.
const (
	interval = 8    // steps between checkpoints, as an order has by default
	audited  = 0.05 // of the segments
)

// proving relates roots, checkpoints and audits to the training.
func proving(ctx context.Context, o Options) ([]Row, error) {
	const rounds = 10
	threads := runtime.GOMAXPROCS(0)
	o.Tell("training a language model for %d steps, half of them with proofs, on %d processors", interval*(2*rounds+2), threads)
	t, err := newProvenTraining(threads)
	if err != nil {
		return nil, err
	}
	defer t.close()
	plain, proven, roots, err := t.measure(ctx, rounds)
	if err != nil {
		return nil, err
	}
	// Each segment with proofs stands beside the one before it and the one after.
	var more []float64
	for i, with := range proven {
		more = append(more, 100*(2*with/(plain[i]+plain[i+1])-1))
	}
	step, root := middle(plain)/interval, middle(roots)
	rows := []Row{
		row("proof: training step", "s", step),
		row("proof: checkpoint", "MB", float64(t.in.States[0].Size())/1e6),
		row("proof: root of a state", "s", root),
		row("proof: roots and checkpoints", "% of training", 0).among(more).atMost(2),
		row("audit: computation for 5 % of the segments", "% of training", 100*audited*(1+2*root/(interval*step))).atMost(6), // the roots before the last step, and after
	}
	const segments = 100
	for _, forged := range []int{1, 10, 30, segments} {
		name := fmt.Sprintf("audit: finds that %d of %d segments are forged, auditing 5 %%", forged, segments)
		odds := proof.Detected(segments, forged, int(math.Round(audited*segments)), 1)
		rows = append(rows, row(name, "%", 100*float64(odds)/proof.Certain))
	}
	return rows, nil
}

// provenTraining trains a segment after the other.
type provenTraining struct {
	run     engine.Runner
	in      graph.Inputs
	dir     string
	store   *store.Store
	threads int
}

func newProvenTraining(threads int) (*provenTraining, error) {
	p, in, err := gptStep()
	if err != nil {
		return nil, err
	}
	run, err := cpu.New(threads).Prepare(p)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return nil, err
	}
	s, err := store.Open(dir, 4<<30)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &provenTraining{run: run, in: in, dir: dir, store: s, threads: threads}, nil
}

func (t *provenTraining) close() { os.RemoveAll(t.dir) }

// measure returns the seconds of so many segments with proofs, of one more without, between
// which they lie, and of a root after each.
func (t *provenTraining) measure(ctx context.Context, rounds int) (plain, proven, roots []float64, err error) {
	for i := range 2*rounds + 2 {
		beside := t.keep
		if i%2 == 1 || i == 0 { // the first one warms up
			beside = func(*graph.State) error { return nil }
		}
		took, err := t.segment(ctx, beside)
		if err != nil {
			return nil, nil, nil, err
		}
		begun := time.Now()
		if _, err := merkle.StateRoot(t.in.States[0], t.threads); err != nil {
			return nil, nil, nil, err
		}
		switch {
		case i == 0:
		case i%2 == 1:
			plain = append(plain, took.Seconds())
			roots = append(roots, time.Since(begun).Seconds())
		default:
			proven = append(proven, took.Seconds())
		}
	}
	return plain, proven, roots, nil
}

// keep hashes and stores a checkpoint, as a provider does while it computes the next
// segment.
func (t *provenTraining) keep(at *graph.State) error {
	if _, err := merkle.StateRoot(at, t.threads); err != nil {
		return err
	}
	_, err := t.store.Put("bench", store.Joined(at.Parts()))
	return err
}

// segment trains for an interval, and meanwhile does something with the state before it.
func (t *provenTraining) segment(ctx context.Context, beside func(*graph.State) error) (time.Duration, error) {
	begun := time.Now()
	var save errgroup.Group
	at := t.in.States[0]
	save.Go(func() error { return beside(at) })
	for range interval {
		next, err := t.run.Run(ctx, t.in, nil)
		if err != nil {
			return 0, errors.Join(err, save.Wait())
		}
		t.in.States[0] = next
	}
	return time.Since(begun), save.Wait()
}

// The models whose disputes are compared, of 10⁵ to 10⁹ parameters.
var sizes = []zoo.GPT{
	{Vocab: 96, Context: 128, Width: 48, Layers: 3, Heads: 4},
	{Vocab: 96, Context: 128, Width: 128, Layers: 5, Heads: 4},
	{Vocab: 96, Context: 128, Width: 320, Layers: 8, Heads: 4},
	{Vocab: 96, Context: 128, Width: 768, Layers: 14, Heads: 12},
	{Vocab: 96, Context: 128, Width: 2048, Layers: 20, Heads: 16},
}

// The unit in which they are disputed.
const disputedSteps, disputedInterval = 1000, 100

// disputing plays, for each size of model, the dispute that takes the most bytes,
// on the chain.
func disputing(ctx context.Context, o Options) ([]Row, error) {
	var rows []Row
	for _, m := range sizes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := outline(m, gptBatch)
		if err != nil {
			return nil, err
		}
		worst, at, err := dearest(p)
		if err != nil {
			return nil, err
		}
		n := &p.Nodes[worst.node]
		o.Tell("%d parameters: a step of %d nodes; the dearest dispute is about %v%v (%s)", m.Parameters(), len(p.Nodes), n.Fn, n.Shape, n.Origin.Op)
		bytes, largest, gas, err := worst.settle()
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("dispute, %.0e parameters: ", float64(m.Parameters()))
		rows = append(rows,
			row(name+"moves", "", float64(at.Moves)),
			row(name+"transactions", "KiB", float64(bytes)/1024).atMost(256),
			row(name+"largest transaction", "KiB", float64(largest)/1024).atMost(64),
			row(name+"gas", "", float64(gas)),
		)
	}
	return rows, nil
}

// dearest imagines a dispute about one node for each function and shape of
// computation in p, and returns the one that takes the most bytes.
func dearest(p *graph.Program) (worst *imagined, end dispute.Game, err error) {
	// Of the nodes with one function, the one with the most tiles and blocks
	// takes the most moves, the one with the widest opening the most bytes.
	choices := map[tensor.Fn][2]int{}
	size := func(i int) int { return p.Nodes[i].Shape.Elements() * max(p.Nodes[i].Terms(), 1) }
	for i := range p.Nodes {
		fn := p.Nodes[i].Fn
		c, ok := choices[fn]
		if !ok {
			c = [2]int{i, i}
		}
		if size(i) > size(c[0]) {
			c[0] = i
		}
		if len(p.Nodes[i].Args) > len(p.Nodes[c[1]].Args) {
			c[1] = i
		}
		choices[fn] = c
	}
	com, most := p.Commit(), 0
	for _, c := range choices {
		for _, node := range c {
			n := &p.Nodes[node]
			g, err := imagine(dispute.DefaultRules, p, com, disputedSteps, disputedInterval, disputedSteps*7/9, node, n.Shape.Elements()-1, max(n.Blocks()-1, 0))
			if err != nil {
				return nil, end, err
			}
			bytes := len(canon.Marshal(&g.opening))
			at, err := g.play(func(_ *dispute.Game, m dispute.Move) error {
				bytes += len(dispute.EncodeMove(m))
				return nil
			})
			if err != nil {
				return nil, end, err
			}
			if bytes > most || bytes == most && node < worst.node {
				worst, end, most = g, at, bytes
			}
		}
	}
	return worst, end, nil
}

// settle plays the game on a chain, and returns what its transactions take.
func (g *imagined) settle() (bytes, largest int, gas uint64, err error) {
	at, err := dispute.Open(g.claim, g.rules, g.opening, 0)
	if err != nil {
		return 0, 0, 0, err
	}
	l, err := newLedger(at)
	if err != nil {
		return 0, 0, 0, err
	}
	bytes = len(canon.Marshal(&g.opening))
	_, err = g.play(func(before *dispute.Game, m dispute.Move) error {
		_, last := m.(*dispute.Block)
		n, used, err := l.move(before.Stage.Turn(), m, last)
		bytes, largest, gas = bytes+n, max(largest, n), gas+used
		return err
	})
	return bytes, largest, gas, err
}
