package adversary

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// mind is what people know who work on one problem: the honest ones compute it, the
// liars get an accumulator wrong in every unit. What was computed once is kept.
type mind struct {
	tail    int
	problem job.Problem
	honest  *worktest.Training
	liar    *worktest.Training
	runs    map[string]*worktest.Witness
	merged  map[string]*worktest.Witness
}

func newMind(tb testing.TB, tail int) *mind {
	name := strings.Repeat("n", tail)
	m := &mind{tail: tail, honest: worktest.NewTrainingNamed(tb, nil, name), runs: map[string]*worktest.Witness{}, merged: map[string]*worktest.Witness{}}
	m.liar = worktest.NewTrainingNamed(tb, &worktest.Lie{Unit: -1, Step: 1, Element: 3}, name)
	m.problem = m.honest.Problem
	return m
}

// party returns who computes honestly, or not.
func (m *mind) party(lies bool) *worktest.Training {
	if lies {
		return m.liar
	}
	return m.honest
}

// knows makes both know a state that one of them knows.
func (m *mind) knows(root canon.Hash) bool {
	if !m.honest.Knows(root) && !m.liar.Knows(root) {
		return false
	}
	m.honest.Learn(m.liar)
	m.liar.Learn(m.honest)
	return true
}

// stretch computes steps of a unit; nil if the state is not known.
func (m *mind) stretch(lies bool, unit, first, last int, start canon.Hash) *worktest.Witness {
	key := fmt.Sprint(lies, unit, first, last, start)
	if w, ok := m.runs[key]; ok {
		return w
	}
	if !m.knows(start) {
		return nil
	}
	if lies {
		m.liar.Lie.Unit = unit
	}
	w := m.party(lies).Stretch(unit, first, last, start)
	m.runs[key] = w
	return w
}

// checkpoints are the states of a unit that a receipt shows; nil if its start is not
// known.
func (m *mind) checkpoints(lies bool, unit int, start canon.Hash) []canon.Hash {
	w := m.stretch(lies, unit, 0, m.problem.Steps, start)
	if w == nil {
		return nil
	}
	var out []canon.Hash
	for _, step := range proof.Checkpoints(m.problem.Steps, m.problem.Interval) {
		root, _ := w.Root(step)
		out = append(out, root)
	}
	return out
}

// outcome is what a segment gives from a state.
func (m *mind) outcome(unit, segment int, from canon.Hash) (o proof.Outcome, ok bool) {
	first, steps := m.problem.Segment(segment)
	w := m.stretch(false, unit, first, first+steps, from)
	if w == nil {
		return o, false
	}
	o.Before, _ = w.Root(steps - 1)
	o.End, _ = w.Root(steps)
	return o, true
}

// merge computes a merge; nil if a state is not known.
func (m *mind) merge(ends []canon.Hash) *worktest.Witness {
	if len(ends) != m.problem.Shards {
		return nil // no merge of these could be computed
	}
	key := fmt.Sprint(ends)
	if w, ok := m.merged[key]; ok {
		return w
	}
	for _, e := range ends {
		if !m.knows(e) {
			return nil
		}
	}
	w := m.honest.Merged(ends)
	m.merged[key] = w
	return w
}

// later is an account that begins at a step of the claim.
type later struct {
	*worktest.Witness
	first int
}

// Root implements dispute.Witness.
func (l later) Root(step int) (canon.Hash, error) {
	if step < l.first {
		return canon.Hash{}, fmt.Errorf("the account begins at step %d", l.first)
	}
	return l.Witness.Root(step - l.first)
}

// Execution implements dispute.Witness.
func (l later) Execution(step int) (*dispute.Execution, error) {
	if step < l.first {
		return nil, fmt.Errorf("the account begins at step %d", l.first)
	}
	return l.Witness.Execution(step - l.first)
}
