package job

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
)

// The kinds of work that an order can ask for.
const (
	Training = "training" // steps of a model, whose units are merged round by round
	Batch    = "batch"    // a model applied to all records of a dataset
)

// kind is what differs between kinds of work. All else in this package, and every role, knows claims
// (docs/adr/0030-claims.md), and asks by [Problem.Independent] and [Problem.Merges] at most.
type kind struct {
	name        string
	independent bool // each step of a unit reads the start state, and none what another gave
	roles       []string
	check       func(p *Problem) error // what an order of the kind must say besides
}

var kinds = []kind{
	{name: Training, roles: []string{RoleModel, RoleParent, RoleStart, RoleData, RoleCrown, RoleHeldOut, RoleTokenizer, RoleSchema}, check: checkTraining},
	{name: Batch, roles: []string{RoleModel, RoleStart}, check: checkBatch, independent: true},
}

// kindOf returns the kind of a problem that was checked.
func (p *Problem) kindOf() *kind {
	for i := range kinds {
		if kinds[i].name == p.Kind {
			return &kinds[i]
		}
	}
	return &kind{}
}

func checkTraining(p *Problem) error {
	if p.Merge.IsZero() || p.Data.IsZero() || p.Parent.Order.IsZero() != p.Parent.Final.IsZero() {
		return fmt.Errorf("the problem lacks the root of its merge program, of its training records, or of one part of its parent")
	}
	return checkBounds(bound{"records", int64(p.Records), int64(p.Shards), maxProblemRecords})
}

// checkBatch: what the units give is not merged by a program, and every unit has records.
func checkBatch(p *Problem) error {
	switch steps := (p.Records-1)/max(p.Batch, 1) + 1; {
	case !p.Merge.IsZero() || p.MergeFLOPs > 0 || p.MergeBytes > 0 || !p.Data.IsZero() || p.Parent != (Parent{}) || p.Seed != 0:
		return fmt.Errorf("a batch has no merge, training records, parent or seed")
	case p.Rounds != 1 || p.Interval != 1:
		return fmt.Errorf("a batch of %d rounds with a checkpoint every %d steps, want 1 and 1: its steps are independent", p.Rounds, p.Interval)
	case p.Records < 1 || p.Records > maxProblemRecords:
		return fmt.Errorf("%d records, want 1 to %d", p.Records, int64(maxProblemRecords))
	case steps > p.Shards*p.Steps:
		return fmt.Errorf("%d records in batches of %d take %d steps, the units have %d", p.Records, p.Batch, steps, p.Shards*p.Steps)
	case steps <= (p.Shards-1)*p.Steps:
		return fmt.Errorf("%d records in batches of %d take %d steps, so that the last of %d units has none", p.Records, p.Batch, steps, p.Shards)
	}
	return nil
}

// Independent reports whether each step of a unit reads the start state, and none what another
// gave. Then each result is a checkpoint.
func (p *Problem) Independent() bool { return p.kindOf().independent }

// Merges reports whether a program merges what the units of a round gave. If not, a round
// ends in the root over the ends of its units, which nobody can get wrong.
func (p *Problem) Merges() bool { return !p.Merge.IsZero() }

// RecordsOf returns which records the steps of a unit read.
func (p *Problem) RecordsOf(unit int) dispute.Batch {
	if p.Independent() {
		return dispute.Batch{Order: p.Order(), First: unit * p.Steps, Straight: true}
	}
	return dispute.Batch{Order: p.Order(), Shard: unit % p.Shards, First: unit / p.Shards * p.Steps}
}

// RunOf returns which unit, which of its steps and which row of that reads a record, where steps
// are independent: the inverse of RecordsOf.
func (p *Problem) RunOf(record int) (unit, step, row int) {
	run := record / p.Batch
	return run / p.Steps, run % p.Steps, record % p.Batch
}

// Before returns the root of the state that a segment of a receipt's unit starts from.
func (p *Problem) Before(r *Receipt, segment int) canon.Hash {
	if p.Independent() {
		return r.Start
	}
	return r.Checkpoints[segment]
}

// End returns what stands for all that a receipt's unit gave: its last state, or the root over
// the results of independent steps.
func (p *Problem) End(r *Receipt) canon.Hash {
	if p.Independent() && !r.OnlyEnd() {
		return canon.Root(r.Checkpoints[1:])
	}
	return r.Checkpoints[len(r.Checkpoints)-1]
}

// voided returns how much of the whole work can become void with n units, the first of round r, as
// a fraction: all that descends from them, or of independent steps these units.
func (p *Problem) voided(r, n int) (part, whole uint64) {
	if p.Independent() {
		return uint64(n), uint64(p.Units())
	}
	return uint64(p.Rounds - r), uint64(p.Rounds)
}

// checkRole returns an error unless an order of the kind may have such a file.
func (p *Problem) checkRole(role string) error {
	if roles := p.kindOf().roles; !slices.Contains(roles, role) {
		return fmt.Errorf("no file of a %s order is a %q; leave it out, or use one of %v", p.Kind, role, roles)
	}
	return nil
}
