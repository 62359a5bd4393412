package demo

import (
	"context"
	"testing"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/node/replay"
)

// The cheater's unit, disputed with the same game and the same players as on
// chain, but without one.
func TestUlpCheatIsFoundInItsFoldBlock(t *testing.T) {
	const steps, interval = 4, 2
	gpt := GPT{Vocab: 11, Context: 8, Width: 8, Layers: 1, Heads: 2, Seed: 3}
	model, err := gpt.Graph(8)
	if err != nil {
		t.Fatal(err)
	}
	data := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{40, 9}))
	for i := range data.Len() {
		data.Set(i, tensor.Word(i*i%11))
	}
	recipe := train.Recipe{Loss: "next-token-cross-entropy", Optimizer: "adamw", Rate: train.Rate{LearningRate: 1e-2}, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Batch: 8}
	work := func(c Cheat) *replay.Job {
		exec, err := c.Executor(cpu.New(2), steps)
		if err != nil {
			t.Fatal(err)
		}
		w, err := replay.New(replay.Inputs{Model: model, Recipe: recipe, Data: data}, 2, exec)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	honest, cheater := work(CheatNone), work(CheatULP)
	problem := job.Problem{Rounds: 2, Steps: steps, Interval: interval, Seed: 5}
	if err := honest.Bind(&problem); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	start := honest.Start
	right := honest.UnitOf(&problem, 1).Witness(ctx, start)
	wrong := cheater.UnitOf(&problem, 1).Witness(ctx, start)
	l := lease(t, &problem, wrong)
	s, err := l.Subject(job.UnitTarget(1), 0)
	if err != nil {
		t.Fatal(err)
	}
	o, err := dispute.Challenge(s.Claim, l.Units[1].Receipt.Checkpoints, right)
	if err != nil {
		t.Fatal(err)
	}
	g, err := dispute.Open(s.Claim, dispute.DefaultRules, o, 0)
	for err == nil && g.Stage != dispute.Over {
		w := right
		if g.Stage.Turn() == dispute.Defender {
			w = wrong
		}
		var m dispute.Move
		if m, err = dispute.Play(&g, w); err == nil {
			if n := len(dispute.EncodeMove(m)); n > dispute.MaxMove {
				t.Errorf("%v: a move of %d bytes", g.Stage, n)
			}
			g, err = dispute.Apply(g, g.Stage.Turn(), m, 0)
		}
	}
	if err != nil {
		t.Fatalf("stage %v: %v", g.Stage, err)
	}
	if g.Loser != dispute.Defender || g.Lo != steps-1 || g.Opcode.Origin.Op != "MatMul" || g.From != 1 {
		t.Fatalf("%v lost at step %d, node %d (%s), fold block %d: %s", g.Loser, g.Lo, g.Node, g.Opcode.Origin.Op, g.From, g.Reason)
	}
	if g.Moves > 40 {
		t.Errorf("%d moves", g.Moves)
	}
}

// lease returns a lease in which unit 1 has the receipt of what w computed.
func lease(t *testing.T, p *job.Problem, w dispute.Witness) *job.Lease {
	l := &job.Lease{Order: job.Order{Problem: *p}, Units: make([]job.Unit, p.Units()), Merges: make([]job.Merge, p.Rounds)}
	r := &job.Receipt{Unit: 1}
	for s := 0; s <= p.Steps; s += p.Interval {
		root, err := w.Root(s)
		if err != nil {
			t.Fatal(err)
		}
		r.Checkpoints = append(r.Checkpoints, root)
	}
	r.Start = r.Checkpoints[0]
	l.Units[1].Receipt = r
	return l
}

func TestCheatIsNamed(t *testing.T) {
	if _, err := Cheat("lottery").Executor(cpu.New(1), 3); err == nil {
		t.Fatal("an unknown cheat was taken")
	}
}
