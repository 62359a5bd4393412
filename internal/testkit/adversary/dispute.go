package adversary

import (
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
)

// What disputes are about, how they are opened, and who can argue them.

// The kinds of target.
const (
	ofUnit = iota
	ofMerge
	ofVerdict
	ofTruth
	ofResult
	kinds
)

// target is what a dispute may be about, by place.
type target struct {
	kind  int
	Index int // unit or round
	which int // auditor or replica of the unit, or forced attempt of the lease
}

// An Op names by its Unit the target's Index, and by its Pick the rest: the kind in two
// bits, the segment in the eight above, which in those above them. A result is written as a
// unit of which there is a which, counted from one: so what older scripts name stays the same.
const (
	segmentBit = 2
	whichBit   = 10
)

// pick returns the Pick of an op that disputes a segment of t.
func (t target) pick(segment int) int {
	if t.kind == ofResult {
		t.kind, t.which = ofUnit, t.which+1
	}
	return t.kind + segment<<segmentBit + t.which<<whichBit
}

// aim is the inverse of pick.
func (c *composer) aim() (t target, segment int) {
	const segments = 1<<(whichBit-segmentBit) - 1
	t = target{kind: c.Pick % (1 << segmentBit), Index: c.Unit, which: c.Pick >> whichBit}
	if t.kind == ofUnit && t.which > 0 {
		t.kind, t.which = ofResult, t.which-1
	}
	return t, c.Pick >> segmentBit & segments
}

// target returns what t names in a lease.
func (p *play) target(l *job.Lease, t target, segment int) job.Target {
	switch t.kind {
	case ofMerge:
		return job.MergeTarget(t.Index)
	case ofVerdict:
		if t.Index < len(l.Units) && len(l.Units[t.Index].Audits) > 0 {
			as := l.Units[t.Index].Audits
			return job.VerdictTarget(t.Index, as[t.which%len(as)].Auditor)
		}
	case ofTruth:
		return job.TruthTarget(t.Index, segment)
	case ofResult:
		return resultTarget(l, t, segment)
	}
	return job.UnitTarget(t.Index)
}

// witness returns the account that a party has of the claim in dispute, nil if it has
// none.
func (p *play) witness(g *game, lies bool) dispute.Witness {
	i, l := p.disputed(g)
	if l == nil || p.orders[i].mind == nil {
		return nil
	}
	m := p.orders[i].mind
	t, err := wire.TargetFromProto(g.Parties.Target)
	if err != nil {
		return nil
	}
	attempt, index := int(g.Parties.Attempt), t.Index()
	switch t.Kind() {
	case job.AboutMerge:
		if w := m.merge(g.Claim.Inputs); w != nil {
			return w
		}
		return nil
	case job.AboutTruth, job.AboutResult:
		if len(g.Claim.Inputs) == 0 {
			return nil
		}
		first, steps := m.problem.Segment(t.Segment())
		if w := m.stretch(lies, index, first, first+steps, g.Claim.Inputs[0]); w != nil {
			return w
		}
		return nil
	}
	return p.ofReceipt(m, g, receiptOf(l, index, attempt), index, lies)
}

// ofReceipt is the account of a unit from the checkpoint before the disputed segment; from
// its start if the receipt is gone, because what it followed from was refuted.
func (p *play) ofReceipt(m *mind, g *game, r *job.Receipt, unit int, lies bool) dispute.Witness {
	if r == nil && len(g.Claim.Inputs) > 0 && unit < m.problem.Units() {
		if w := m.stretch(lies, unit, 0, m.problem.Steps, g.Claim.Inputs[0]); w != nil {
			return w
		}
	}
	if r == nil {
		return nil
	}
	s := g.Lo / max(g.Claim.Interval, 1)
	if s >= len(r.Checkpoints) || unit >= m.problem.Units() {
		return nil
	}
	first := s * m.problem.Interval
	if w := m.stretch(lies, unit, first, m.problem.Steps, r.Checkpoints[s]); w != nil {
		return later{w, first}
	}
	return nil
}

// receiptOf returns the receipt of an attempt of a unit, wherever the lease keeps it.
func receiptOf(l *job.Lease, unit, attempt int) *job.Receipt {
	if unit < len(l.Units) && l.Units[unit].Attempt == attempt && l.Units[unit].Receipt != nil {
		return l.Units[unit].Receipt
	}
	for _, f := range forced(l) {
		if f.Index == unit && f.Unit.Attempt == attempt {
			return f.Unit.Receipt
		}
	}
	for _, v := range verdicts(l) {
		if v.Unit == unit && v.Receipt.Attempt == attempt {
			return v.Receipt
		}
	}
	return nil
}

// disputed returns the order that a game is about, and its lease.
func (p *play) disputed(g *game) (int, *job.Lease) {
	for i, o := range p.orders {
		if o.id.String() == g.Parties.Order {
			return i, p.live(i)
		}
	}
	return 0, nil
}

// opening opens the checkpoints at the ends of a segment, as far as there are any.
func (o *order) opening(l *job.Lease, t target, segment int) *dispute.Opening {
	if t.kind == ofResult {
		return o.openResult(l, t, segment)
	}
	var points []canon.Hash
	switch {
	case t.kind == ofMerge || t.Index >= len(l.Units):
	case t.kind == ofTruth && t.which < len(forced(l)) && segment < len(forced(l)[t.which].Truth):
		f := forced(l)[t.which]
		points = f.Points(&l.Order.Problem, segment)
		first := 0
		if o.mind != nil && len(points) == 3 {
			if truth, ok := o.mind.outcome(t.Index, segment, points[0]); ok && truth.Before == points[1] {
				first = 1
			}
		}
		segment = first
	case l.Units[t.Index].Receipt != nil:
		points = l.Units[t.Index].Receipt.Checkpoints
	}
	if len(points) < 2 {
		return &dispute.Opening{}
	}
	segment %= len(points) - 1
	tree := canon.NewTree(points)
	return &dispute.Opening{Segment: segment, From: points[segment], To: points[segment+1], FromPath: tree.Prove(segment), ToPath: tree.Prove(segment + 1)}
}
