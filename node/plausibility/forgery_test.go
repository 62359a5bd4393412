package plausibility

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// The forgeries here train nothing, or little. That they pass is why tally verify
// executes segments again, and why these rules are called a filter.

// interpolate invents checkpoints on the straight line between two states.
func interpolate(from, to *graph.State, points, interval int) []Checkpoint {
	var chain []Checkpoint
	for i := range points + 1 {
		s := &graph.State{Slots: from.Slots, Tensors: slices.Clone(to.Tensors)}
		for j, slot := range s.Slots {
			if !strings.HasPrefix(slot.Name, "p/") {
				continue
			}
			s.Tensors[j] = s.Tensors[j].Clone()
			a, b, v := tensor.Of[float32](from.Tensors[j]), tensor.Of[float32](to.Tensors[j]), tensor.Of[float32](s.Tensors[j])
			x := float32(i) / float32(points)
			for k := range v {
				v[k] = a[k] + float32((b[k]-a[k])*x)
			}
		}
		chain = append(chain, Checkpoint{Step: i * interval, State: s})
	}
	return chain
}

// invent returns a start of the same distributions as another, in which some of
// the entries of each matrix stand in the order of those of the end.
func invent(r *rand.Rand, start, end *graph.State, matched float64) *graph.State {
	out := &graph.State{Slots: start.Slots, Tensors: slices.Clone(start.Tensors)}
	for j, slot := range out.Slots {
		if !strings.HasPrefix(slot.Name, "p/") {
			continue
		}
		out.Tensors[j] = out.Tensors[j].Clone()
		v, e := tensor.Of[float32](out.Tensors[j]), tensor.Of[float32](end.Tensors[j])
		r.Shuffle(len(v), func(i, k int) { v[i], v[k] = v[k], v[i] })
		places := r.Perm(len(v))[:int(matched*float64(len(v)))]
		values := make([]float32, len(places))
		for i, p := range places {
			values[i] = v[p]
		}
		slices.Sort(values)
		slices.SortFunc(places, func(a, b int) int { return cmp.Compare(e[a], e[b]) })
		for i, p := range places {
			v[p] = values[i]
		}
	}
	return out
}

// A stolen model, an invented start and a straight line between them.
func TestRankMatchedStartPasses(t *testing.T) {
	s := newSchool(t)
	honest := s.train(3, checkpoints, interval, 3e-3)
	start, end := honest[0].State, honest[checkpoints].State
	r := rand.New(rand.NewPCG(2, 2))
	for _, c := range []struct {
		matched float64
		passes  bool
	}{{0, false}, {0.3, true}} {
		forged := interpolate(invent(r, start, end, c.matched), end, checkpoints, interval)
		s.judge(forged)
		report := s.assess(forged)
		var text strings.Builder
		report.Tell(&text)
		t.Logf("%.0f %% matched:\n%s", 100*c.matched, &text)
		if (report.Passed == len(report.Rules)) != c.passes {
			t.Errorf("with %.0f %% matched, %d rules hold", 100*c.matched, report.Passed)
		}
	}
}

// The start that the order fixes, a quarter of the steps, and a straight line.
// Committing to the start does not help: only execution tells.
func TestSkippedStepsPass(t *testing.T) {
	s := newSchool(t)
	short := s.train(3, checkpoints, interval/4, 6e-3)
	forged := interpolate(short[0].State, short[checkpoints].State, checkpoints, interval)
	s.judge(forged)
	if r := s.assess(forged); r.Passed != len(r.Rules) {
		t.Errorf("%d of %d rules hold: %+v", r.Passed, len(r.Rules), r.Rules)
	}
}
