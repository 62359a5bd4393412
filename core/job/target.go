package job

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
)

// TargetKind says what a dispute is about.
type TargetKind uint8

// The kinds of target.
const (
	AboutUnit    TargetKind = iota + 1 // the receipt of a unit
	AboutMerge                         // the merge of a round
	AboutVerdict                       // an auditor's word that segments of a unit hold
	AboutTruth                         // what a provider says to be true of a segment of a forced attempt
	AboutResult                        // what a replica has shown of a segment of a unit
)

// String returns the kind's name.
func (k TargetKind) String() string {
	return [...]string{"nothing", "unit", "merge", "verdict", "truth", "result"}[min(k, 6)%6]
}

// Target names what a dispute is about. It is one of five kinds, and each thing has one name: targets
// that are equal with == name the same, others do not. The zero Target names nothing.
type Target struct {
	kind    TargetKind
	index   int    // round of a merge, else the unit
	account string // of a verdict its auditor, of a result its replica
	segment int    // of a truth or a result
}

// UnitTarget names the receipt of a unit.
func UnitTarget(unit int) Target { return Target{kind: AboutUnit, index: unit} }

// MergeTarget names the merge of a round.
func MergeTarget(round int) Target { return Target{kind: AboutMerge, index: round} }

// VerdictTarget names an auditor's verdict about a unit.
func VerdictTarget(unit int, auditor string) Target {
	return Target{kind: AboutVerdict, index: unit, account: auditor}
}

// TruthTarget names what was shown of a segment, counted from 0, of a forced attempt of a unit.
func TruthTarget(unit, segment int) Target {
	return Target{kind: AboutTruth, index: unit, segment: segment}
}

// ResultTarget names what a replica of a unit has shown of a segment, counted from 0.
func ResultTarget(unit int, replica string, segment int) Target {
	return Target{kind: AboutResult, index: unit, account: replica, segment: segment}
}

// Kind says what t names; 0 for nothing.
func (t Target) Kind() TargetKind { return t.kind }

// Index returns the round of a merge, and the unit of all others.
func (t Target) Index() int { return t.index }

// Account returns whose verdict or result t names, "" if it names none.
func (t Target) Account() string { return t.account }

// Segment returns the segment of which t names the truth or the result, 0 if it names none.
func (t Target) Segment() int { return t.segment }

// String returns t as people read it.
func (t Target) String() string {
	switch t.kind {
	case AboutMerge:
		return fmt.Sprintf("merge of round %d", t.index)
	case AboutVerdict:
		return fmt.Sprintf("verdict of %s about unit %d", t.account, t.index)
	case AboutResult:
		return fmt.Sprintf("result of %s for segment %d of unit %d", t.account, t.segment, t.index)
	case AboutTruth:
		return fmt.Sprintf("truth of segment %d of unit %d", t.segment, t.index)
	}
	return fmt.Sprintf("%v %d", t.kind, t.index)
}

// Check returns an error unless t can name something in some order.
func (t Target) Check() error {
	switch {
	case t.kind < AboutUnit || t.kind > AboutResult:
		return fmt.Errorf("the target names nothing: give a unit, a merge, a verdict, a truth or a result")
	case t.index < 0 || t.index >= MaxUnits:
		return fmt.Errorf("the target has index %d, want 0 to %d", t.index, MaxUnits-1)
	case t.segment < 0 || t.segment >= MaxSegments:
		return fmt.Errorf("the target has segment %d, want 0 to %d", t.segment, MaxSegments-1)
	case (t.kind == AboutVerdict || t.kind == AboutResult) != (t.account != "") || len(t.account) > maxAccount:
		return fmt.Errorf("a verdict's auditor or a result's replica has %d bytes, want 1 to %d", len(t.account), maxAccount)
	}
	return nil
}

// Code walks the fields of t.
func (t *Target) Code(w *canon.Codec) {
	w.U8((*uint8)(&t.kind))
	w.Int(&t.index, MaxUnits)
	switch t.kind {
	case AboutVerdict:
		w.String(&t.account, maxAccount)
	case AboutResult:
		w.String(&t.account, maxAccount)
		w.Int(&t.segment, MaxSegments)
	case AboutTruth:
		w.Int(&t.segment, MaxSegments)
	}
	if err := t.Check(); err != nil {
		w.Fail("%v", err)
	}
}

// Subject is what a dispute judges.
type Subject struct {
	Defender string // who answers for it
	Claim    dispute.Claim
	Points   []canon.Hash // the states that the claim's checkpoints bind; nil if it has none
	Audited  []int        // segments of a verdict, the only ones that can be disputed
}

// Subject returns what t names, of the given attempt. A receipt and a merge must
// stand; verdicts and truths outlive their attempt.
func (l *Lease) Subject(t Target, attempt int) (Subject, error) {
	switch t.kind {
	case AboutUnit:
		return l.receiptSubject(t.index, attempt)
	case AboutMerge:
		return l.mergeSubject(t.index, attempt)
	case AboutVerdict:
		return l.verdictSubject(t, attempt)
	case AboutTruth:
		return l.truthSubject(t, attempt)
	case AboutResult:
		return l.replicaSubject(t, attempt)
	}
	return Subject{}, t.Check()
}

func (l *Lease) receiptSubject(i, attempt int) (Subject, error) {
	if i < 0 || i >= len(l.Units) || l.Units[i].Receipt == nil {
		return Subject{}, fmt.Errorf("unit %d has no receipt", i)
	}
	u := &l.Units[i]
	return l.claimed(u.Receipt), stands(attempt, u.Attempt)
}

func (l *Lease) mergeSubject(round, attempt int) (Subject, error) {
	if round < 0 || round >= l.Round {
		return Subject{}, fmt.Errorf("round %d is not merged", round)
	}
	if !l.Order.Problem.Merges() {
		return Subject{}, fmt.Errorf("round %d is merged by no program: nobody can get it wrong", round)
	}
	m := &l.Merges[round]
	claim := dispute.Claim{Program: l.Order.Problem.Merge, Inputs: m.Inputs, Steps: 1, End: m.Root}
	return Subject{Defender: m.By, Claim: claim}, stands(attempt, m.Attempt)
}

func stands(attempt, current int) error {
	if attempt != current {
		return fmt.Errorf("attempt %d was given up; attempt %d stands", attempt, current)
	}
	return nil
}

// A verdict asserts what the receipt does, of the segments that were audited. It
// can be disputed as long as a bond stands behind it.
func (l *Lease) verdictSubject(t Target, attempt int) (Subject, error) {
	a, r, err := l.Verdict(t.index, attempt, t.account)
	if err != nil {
		return Subject{}, err
	}
	s := l.claimed(r)
	s.Defender, s.Audited = a.Auditor, a.Segments
	if !a.Pass || !a.Bonded {
		return s, fmt.Errorf("%s did not say that the unit holds, or lost its word's bond already", a.Auditor)
	}
	return s, nil
}

// truthSubject returns what a provider says to be true of a segment of a forced attempt.
func (l *Lease) truthSubject(t Target, attempt int) (Subject, error) {
	f := l.Shown(t.index, attempt)
	if f == nil || t.segment < 0 || t.segment >= len(f.Truth) {
		return Subject{}, fmt.Errorf("no truth of segment %d of attempt %d of unit %d was shown", t.segment, attempt, t.index)
	}
	p := &l.Order.Problem
	_, steps := p.Segment(t.segment)
	return l.segmentSubject(f.Unit.Receipt, t.segment, steps-1, f.Points(p, t.segment)), nil
}

// segmentSubject returns the claim that a segment of a receipt leads from the first to the last of
// some points. If they are three, the one between is the state after inner steps.
func (l *Lease) segmentSubject(r *Receipt, segment, inner int, points []canon.Hash) Subject {
	s := l.claimed(r)
	first, steps := l.Order.Problem.Segment(segment)
	s.Points = points
	c := &s.Claim
	c.Inputs, c.Batch.First = points[:1], c.Batch.First+first
	c.Steps, c.Interval = steps, steps
	if len(points) > 2 {
		c.Interval = inner
	}
	c.Checkpoints, c.End = canon.Root(points), points[len(points)-1]
	return s
}

// claimed returns what a receipt asserts.
func (l *Lease) claimed(r *Receipt) Subject {
	p := &l.Order.Problem
	return Subject{Defender: r.Provider, Points: r.Checkpoints, Claim: dispute.Claim{
		Program: p.Step, Independent: p.Independent(), Inputs: []canon.Hash{r.Start}, Data: p.Data, Batch: p.RecordsOf(r.Unit),
		Steps: p.Steps, Interval: p.Interval, Checkpoints: canon.Root(r.Checkpoints), End: p.End(r),
	}}
}
