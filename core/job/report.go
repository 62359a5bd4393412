package job

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/proof"
)

// Submit posts a provider's receipt.
type Submit struct {
	Receipt   Receipt
	Signature []byte
}

func (e Submit) apply(l *Lease, now int64) ([]Effect, error) {
	r := &e.Receipt
	u, err := l.current(r.Unit, r.Attempt, Assigned)
	if err != nil {
		return nil, err
	}
	switch {
	case l.replicated():
		return nil, fmt.Errorf("unit %d is computed by %d providers: commit to a result, then show it", r.Unit, l.Order.Conditions.Replicas)
	case r.Provider != u.Provider:
		return nil, fmt.Errorf("unit %d is assigned to %s, not to %s", r.Unit, u.Provider, r.Provider)
	case !l.ForcedDrawn(r.Unit):
		return nil, fmt.Errorf("the forced draw of unit %d is made in a later block than its assignment: compute it then", r.Unit)
	}
	if err := l.checkReceipt(r, e.Signature, now); err != nil {
		return nil, err
	}
	u.Status, u.Receipt, u.Proof = Received, r, e.Signature
	u.Due = now + l.Order.Conditions.UnitTimeout // who keeps it is drawn by then
	u.Took = now - l.BegunAt
	l.await(r.Unit, now) // who audits and keeps it is drawn in a later block
	return []Effect{{Emit, r.Provider, uint64(r.Unit), "received"}}, nil
}

// checkReceipt returns an error unless a receipt says what one of the current attempt can, in time, and
// its provider has signed it.
func (l *Lease) checkReceipt(r *Receipt, signature []byte, now int64) error {
	p := &l.Order.Problem
	party := find(l.Providers, r.Provider)
	if party == nil {
		return fmt.Errorf("%s is not a provider of this lease", r.Provider)
	}
	if err := verify("the receipt", party.Key, r.SignBytes(), signature); err != nil {
		return err
	}
	start := l.RoundStart(r.Unit / p.Shards)
	switch {
	case r.Order != l.Order.ID():
		return fmt.Errorf("the receipt is for another order")
	case r.Start != start:
		return fmt.Errorf("the receipt starts from state %v, the round from %v", r.Start.Short(), start.Short())
	case len(r.Checkpoints) != p.Segments()+1 || r.Checkpoints[0] != start:
		return fmt.Errorf("the receipt has %d checkpoints, want %d beginning with the start state", len(r.Checkpoints), p.Segments()+1)
	case r.FLOPs != p.UnitFLOPs():
		return fmt.Errorf("the receipt claims %d FLOPs, a unit has %d", r.FLOPs, p.UnitFLOPs())
	case now > l.Units[r.Unit].Due:
		return fmt.Errorf("the receipt is late: the unit's time ran out")
	}
	return r.Data.check()
}

// Report is an auditor's answer. Output is the output of its VRF over
// proof.AuditInput, which the caller has verified.
type Report struct {
	By            string
	Unit, Attempt int
	Output        []byte
	Top           []int // segments with the largest updates, beside those that Output picks
	Digest        canon.Hash
	Pass          bool
}

func (e Report) apply(l *Lease, now int64) ([]Effect, error) {
	u, err := l.current(e.Unit, e.Attempt, Received, Counted)
	if err != nil {
		return nil, err
	}
	for i := range u.Audits {
		a := &u.Audits[i]
		if a.Auditor != e.By {
			continue
		}
		if a.Done || a.Forfeit {
			return nil, fmt.Errorf("the audit by %s is closed", e.By)
		}
		c := &l.Order.Conditions
		a.Done, a.Pass, a.Digest = true, e.Pass, e.Digest
		if a.Segments, err = l.audited(u, e.Output, e.Top); err != nil {
			return nil, err
		}
		if e.Pass {
			l.Audits.Passed++
			l.askForcedDraw(u, now)
			return []Effect{{Emit, e.By, uint64(e.Unit), "audit passed"}}, nil
		}
		l.Audits.Failed++
		u.HeldUntil = now + c.UnitTimeout
		l.askForcedDraw(u, now)
		return []Effect{{Emit, e.By, uint64(e.Unit), "audit failed"}}, nil
	}
	return nil, fmt.Errorf("%s is not drawn to audit unit %d", e.By, e.Unit)
}

// audited returns the segments that an auditor answers for: those that its VRF
// picks, and as many with the largest updates as the order wants.
func (l *Lease) audited(u *Unit, output []byte, top []int) ([]int, error) {
	all := proof.Segments(output, l.Order.Problem.Segments(), u.Audited)
	if len(top) != l.Order.Conditions.TopSegments {
		return nil, fmt.Errorf("%d segments with the largest updates, the order wants %d", len(top), l.Order.Conditions.TopSegments)
	}
	for _, s := range top {
		if s < 0 || s >= l.Order.Problem.Segments() || slices.Contains(all, s) {
			return nil, fmt.Errorf("segment %d does not exist, or is audited already", s)
		}
		all = append(all, s)
	}
	return all, nil
}
