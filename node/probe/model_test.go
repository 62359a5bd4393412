package probe_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/probe"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/node/replay"
)

// batch returns the work of a probe, and what its order says of it.
func batch(t *testing.T, g *graph.Graph, records *graph.State) (*replay.Job, job.Problem) {
	t.Helper()
	j, err := replay.NewBatch(replay.Dataset{Model: g, Records: records, Batch: 1}, cpu.New(2))
	if err != nil {
		t.Fatal(err)
	}
	p := job.Problem{Rounds: 1, Interval: 1, Steps: 1}
	if err := j.Bind(&p); err != nil {
		t.Fatal(err)
	}
	p.Shards = p.Records
	return j, p
}

// The chain knows the model's programs and costs: it holds them as constants, for it reads no model.
func TestTheChainKnowsTheModel(t *testing.T) {
	g, seed := probe.Model(), probe.Seed(canon.Hash{1}, "tally1")
	for runs := probe.Fewest; runs <= probe.MostRuns; runs *= 2 {
		want, err := probe.Problem(seed, runs, 1)
		if _, p := batch(t, g, probe.Records(seed, runs)); err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("%d runs: the model gives\n%+v, the chain knows\n%+v, %v", runs, p, want, err)
		}
	}
}

// What is computed for one seed is of no use for another, and no two sums of a run are alike.
func TestRunsDiffer(t *testing.T) {
	g, seen := probe.Model(), map[float32]bool{}
	for _, account := range []string{"tally1", "tally2"} {
		j, p := batch(t, g, probe.Records(probe.Seed(canon.Hash{}, account), probe.Fewest))
		for unit := range 2 {
			out, err := j.UnitOf(&p, unit).Play(t.Context(), j.Start, 0, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range tensor.Of[float32](out.Tensors[0]) {
				if x := math.Abs(float64(v)); seen[v] || !(x > 1 && x < 1e9) {
					t.Fatalf("a sum of %v, which is out of bounds or had come before", v)
				}
				seen[v] = true
			}
		}
	}
}

// A model with another weight is another program.
func TestAnotherModelIsNoProbe(t *testing.T) {
	g, seed := probe.Model(), canon.Hash{2}
	g.Consts = slices.Clone(g.Consts)
	for i := range g.Consts {
		if c := &g.Consts[i]; c.Tensor.Type == tensor.Float32 && len(c.Tensor.Shape) == 2 {
			zero := tensor.Must(tensor.New(tensor.Float32, c.Tensor.Shape))
			c.Tensor = zero
			break
		}
	}
	if _, p := batch(t, g, probe.Records(seed, probe.Fewest)); probe.IsProbe(&p) {
		t.Error("a model of zeros passes for a probe")
	}
}
