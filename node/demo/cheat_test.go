package demo

import (
	"testing"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/testkit/faults"
	"github.com/tally-network/tally/model/zoo"
	"github.com/tally-network/tally/node/replay"
)

// The cheater's unit, disputed with the same game and the same players as on chain, but without one: of each kind of
// work that people order.
func TestUlpCheatIsFoundInItsFoldBlock(t *testing.T) {
	for _, m := range faults.Kinds {
		t.Run(m.Name, func(t *testing.T) {
			_, problem, err := m.Job(lower.FP32, cpu.New(1))
			if err != nil {
				t.Fatal(err)
			}
			witness := func(c Cheat) dispute.Witness {
				exec, err := c.Executor(cpu.New(1), problem.Kind, problem.Steps)
				if err != nil {
					t.Fatal(err)
				}
				j, _, err := m.Job(lower.FP32, exec)
				if err != nil {
					t.Fatal(err)
				}
				return j.UnitOf(problem, 1).Witness(t.Context(), j.Start)
			}
			right, wrong := witness(CheatNone), witness(CheatULP)
			l := lease(t, problem, wrong)
			s, err := l.Subject(job.UnitTarget(1), 0)
			if err != nil {
				t.Fatal(err)
			}
			o, err := dispute.Challenge(s.Claim, s.Points, right)
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
			if g.Loser != dispute.Defender || g.Lo != problem.Steps-1 || g.Opcode.Fn != tensor.Dot || g.From != 1 {
				t.Fatalf("%v lost at step %d, node %d (%s), fold block %d: %s", g.Loser, g.Lo, g.Node, g.Opcode.Origin.Op, g.From, g.Reason)
			}
			if g.Moves > 40 {
				t.Errorf("%d moves", g.Moves)
			}
		})
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
	if _, err := Cheat("lottery").Executor(cpu.New(1), job.Batch, 3); err == nil {
		t.Fatal("an unknown cheat was taken")
	}
}

// The cheater in the batch is found in its fold block, too, and changes what it gives.
func TestUlpCheatInBatch(t *testing.T) {
	model, err := zoo.GPT{Vocab: 11, Context: 8, Width: 64, Layers: 1, Heads: 2, Seed: 3}.Graph(scoreBatch)
	if err != nil {
		t.Fatal(err)
	}
	model = Scorer(model)
	text := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{2*scoreBatch + 3, 9}))
	for i := range text.Len() {
		text.Set(i, tensor.Word(i*i%11))
	}
	records, err := scoreRecords(text)
	if err != nil {
		t.Fatal(err)
	}
	play := func(c Cheat, run int) *graph.State {
		exec, err := c.Executor(cpu.New(1), job.Batch, scoreSteps)
		if err != nil {
			t.Fatal(err)
		}
		j, err := replay.NewBatch(replay.Dataset{Model: model, Records: records, Batch: scoreBatch}, exec)
		if err != nil {
			t.Fatal(err)
		}
		p := job.Problem{Rounds: 1, Interval: 1, Steps: scoreSteps, Shards: 1}
		if err := j.Bind(&p); err != nil {
			t.Fatal(err)
		}
		s, err := j.UnitOf(&p, 0).Play(t.Context(), j.Start, run, run+1, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for run, same := range []bool{true, false} {
		if got := play(CheatULP, run).Tensors[0].Equal(play(CheatNone, run).Tensors[0]); got != same {
			t.Errorf("run %d: the same losses with and without the cheat: %v, want %v", run, got, same)
		}
	}
}

func TestScoreRecords(t *testing.T) {
	text := tensor.Must(tensor.From(tensor.Shape{scoreBatch + 1, 3}, make([]int32, 3*scoreBatch+3)))
	for i := range text.Len() {
		text.Set(i, tensor.Word(i))
	}
	s, err := scoreRecords(text)
	if err != nil {
		t.Fatal(err)
	}
	next, tokens := s.Find("next"), s.Find("tokens")
	if !tokens.Shape.Equal(tensor.Shape{scoreBatch, 2}) || tokens.At(2) != 3 || tokens.At(3) != 4 || next.At(2) != 4 || next.At(3) != 5 || s.Slots[0].Name != "next" {
		t.Errorf("%v: %v, %v", s.Slots, tensor.Of[int32](tokens), tensor.Of[int32](next))
	}
}
