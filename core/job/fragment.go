package job

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/erasure"
	"github.com/tally-network/tally/core/proof"
)

// Fragment is what a custodian keeps of a unit whose checkpoints are cut among its custodians.
// Whoever has the checkpoints knows the root of each fragment.
type Fragment struct {
	Number int        // of the code
	Root   canon.Hash // over the roots of this fragment of each checkpoint after the first
	Data   File       // names these fragments
}

// checkFragment returns an error unless p can be what a custodian keeps of a unit: a fragment
// that nobody else keeps, if the checkpoints are cut, so that a quorum of custodians
// always has that many.
func (l *Lease) checkFragment(u *Unit, p *Fragment) error {
	code := l.Order.Fragments()
	switch {
	case !code.Cuts() && p != nil:
		return fmt.Errorf("each custodian of this lease keeps all: an attestation names no fragment")
	case !code.Cuts():
		return nil
	case p == nil || p.Number < 0 || p.Number >= code.Fragments:
		return fmt.Errorf("the checkpoints are cut into %d fragments: an attestation names one of them", code.Fragments)
	case l.fragments(u)[p.Number]:
		return fmt.Errorf("fragment %d is kept already", p.Number)
	}
	return p.Data.check()
}

// fragments returns which fragments custodians keep whose word counts for a unit.
func (l *Lease) fragments(u *Unit) (kept [erasure.MaxFragments]bool) {
	for i := range u.Attested {
		if a := &u.Attested[i]; a.Fragment != nil && l.counts(u, a) {
			kept[a.Fragment.Number] = true
		}
	}
	return kept
}

// FreeFragment returns the number of the fragment of a unit that a custodian should keep: that
// of its own place among the custodians, or the first that nobody keeps; false if all are
// kept.
func (l *Lease) FreeFragment(unit int, custodian string) (number int, ok bool) {
	kept, n := l.fragments(&l.Units[unit]), l.Order.Fragments().Fragments
	own := slices.IndexFunc(l.Units[unit].Attested, func(a Attestation) bool { return a.Custodian == custodian })
	if own >= 0 && own < n && !kept[own] {
		return own, true
	}
	number = slices.Index(kept[:n], false)
	return number, number >= 0
}

// open reports whether somebody may begin to keep a unit: until it is accepted, and a
// fragment of it until the lease closes, so that there is time to ask for it.
func (l *Lease) open(u *Unit) bool {
	switch u.Status {
	case Received, Counted:
		return true
	case Accepted:
		return l.Phase < Closing && l.Order.Fragments().Cuts()
	}
	return false
}

// MayAttest reports whether a validator was drawn to keep a unit and may attest to it.
func (l *Lease) MayAttest(unit int, custodian string) bool {
	u := &l.Units[unit]
	if a := u.custodian(custodian); !l.open(u) && !u.attestable(&l.Order.Conditions) || a == nil || a.Done || !l.trusts(custodian) {
		return false
	}
	_, free := l.FreeFragment(unit, custodian)
	return free || !l.Order.Fragments().Cuts()
}

// Expose shows that what a custodian keeps as its fragment of a unit's checkpoints is none.
// It is convicted like one that does not answer.
type Expose struct {
	By, Custodian string
	Unit, Attempt int
	Wrong         proof.WrongFragment
}

func (e Expose) apply(l *Lease, now int64) ([]Effect, error) {
	u, err := l.current(e.Unit, e.Attempt, Received, Counted, Accepted)
	if err != nil {
		return nil, err
	}
	a := u.attestation(e.Custodian)
	switch {
	case l.Phase == Closing && now >= l.Windows.End:
		return nil, fmt.Errorf("the lease's window closed at protocol time %d ms: nobody can be exposed any more", l.Windows.End)
	case a == nil || a.Fragment == nil:
		return nil, fmt.Errorf("no attestation of %s to a fragment of unit %d stands", e.Custodian, e.Unit)
	case e.By == e.Custodian:
		return nil, fmt.Errorf("%s cannot expose itself", e.By)
	}
	if err := e.Wrong.Check(l.Order.Fragments(), a.Fragment.Number, a.Fragment.Root, u.Receipt.Checkpoints); err != nil {
		return nil, err
	}
	return l.failCustodian(e.Custodian, e.Unit, e.By, Fraud, now)
}

func (p *Fragment) code(w *canon.Codec) {
	w.Int(&p.Number, erasure.MaxFragments-1)
	w.Hash(&p.Root)
	p.Data.Code(w)
}
