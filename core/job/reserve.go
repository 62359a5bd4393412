package job

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// Reason says for what an account answers with its stake.
type Reason uint8

// The reasons.
const (
	ForWork    Reason = iota + 1 // units that it computes or has computed
	ForLead                      // merges, and that it leads on
	ForVerdict                   // what it says of segments that it was drawn to audit
	ForData                      // units whose data it was drawn to keep
	ForFiles                     // the order's files, which it was drawn to keep
)

// String returns the reason's name.
func (r Reason) String() string {
	return [...]string{"nothing", "work", "lead", "verdict", "data", "files"}[min(r, 6)%6]
}

// Exposure is what a lease has reserved of an account's stake for one reason.
type Exposure struct {
	Account string
	Reason  Reason
	Amount  uint64 // utally
}

// Exposures is the ledger of all that a lease has reserved, by account and reason, none empty.
// No stake is reserved, released or slashed but through it.
type Exposures []Exposure

func (x Exposures) find(account string, reason Reason) (at int, found bool) {
	return slices.BinarySearchFunc(x, Exposure{Account: account, Reason: reason}, compareExposures)
}

func compareExposures(a, b Exposure) int {
	return cmp.Or(strings.Compare(a.Account, b.Account), cmp.Compare(a.Reason, b.Reason))
}

// Held returns what is reserved of an account for a reason.
func (x Exposures) Held(account string, reason Reason) uint64 {
	if at, found := x.find(account, reason); found {
		return x[at].Amount
	}
	return 0
}

// hold reserves more of an account's stake.
func (x *Exposures) hold(account string, reason Reason, amount uint64) ([]Effect, error) {
	if amount == 0 {
		return nil, nil
	}
	at, found := x.find(account, reason)
	if !found {
		*x = slices.Insert(*x, at, Exposure{Account: account, Reason: reason})
	}
	e := &(*x)[at]
	total, err := money.Sum(e.Amount, amount)
	if err != nil {
		return nil, fmt.Errorf("reserve stake of %s: %w", account, err)
	}
	e.Amount = total
	return []Effect{{Reserve, account, amount, reason.String()}}, nil
}

// take removes an amount, at most what is there, and returns it.
func (x *Exposures) take(account string, reason Reason, amount uint64) uint64 {
	at, found := x.find(account, reason)
	if !found {
		return 0
	}
	e := &(*x)[at]
	amount = min(amount, e.Amount)
	if e.Amount -= amount; e.Amount == 0 {
		*x = slices.Delete(*x, at, at+1)
	}
	return amount
}

// release lets go of an amount.
func (x *Exposures) release(account string, reason Reason, amount uint64) []Effect {
	if amount = x.take(account, reason, amount); amount == 0 {
		return nil
	}
	return []Effect{{Release, account, amount, reason.String()}}
}

// releaseAll lets go of everything.
func (x *Exposures) releaseAll() (effects []Effect) {
	for _, e := range *x {
		effects = append(effects, Effect{Release, e.Account, e.Amount, e.Reason.String()})
	}
	*x = nil
	return effects
}

// slash takes an amount of what is reserved, and awards it in shares; the lease records both.
func (l *Lease) slash(account string, reason Reason, amount uint64, shares []Share) []Effect {
	if amount = l.Reserve.take(account, reason, amount); amount == 0 {
		return nil
	}
	effects := []Effect{{Kind: Slash, Account: account, Amount: amount}}
	l.Ledger.Slashed += amount
	for _, s := range shares {
		if s.Amount > 0 {
			l.Ledger.SlashPaid = addShare(l.Ledger.SlashPaid, s)
			effects = append(effects, Effect{Kind: Award, Account: s.Account, Amount: s.Amount})
		}
	}
	return effects
}

// bondFor returns what is reserved for each thing that an auditor or a custodian answers for.
func (l *Lease) bondFor(reason Reason) uint64 {
	switch reason {
	case ForVerdict:
		return l.verdictBond()
	case ForData:
		return l.keepBond()
	}
	fee, _ := l.lateFee() // a part of a unit's pay fits
	return fee
}

// letGo releases what is reserved for one thing.
func (l *Lease) letGo(account string, reason Reason) []Effect {
	return l.Reserve.release(account, reason, l.bondFor(reason))
}

// forfeit takes what is reserved for one thing: a share for who has shown it to be wrong, the rest
// insures.
func (l *Lease) forfeit(account string, reason Reason, by string) ([]Effect, error) {
	bond := l.bondFor(reason)
	shares, err := l.divide(bond, by, nil)
	if err != nil {
		return nil, err
	}
	return l.slash(account, reason, bond, shares), nil
}

// checkBonds returns an error unless what is reserved for one thing can be counted.
func (l *Lease) checkBonds() error {
	worth, err := money.Sum(l.Quote.Unit, l.Quote.Keep)
	if err == nil {
		_, err = money.Times(worth, int(max(l.Params.KeepFactor, l.Params.VerdictFactor)))
	}
	if err != nil {
		return fmt.Errorf("a bond is too large to count: %w", err)
	}
	return nil
}

// Reserved returns what the lease has reserved of every account.
func (l *Lease) Reserved() (out []Share) {
	for _, e := range l.Reserve {
		out = addShare(out, Share{e.Account, e.Amount})
	}
	return out
}

// checkReserve: what is reserved is what stands behind the work, the verdicts and the words that
// can be disputed, and behind nothing else.
func (l *Lease) checkReserve() error {
	if !slices.IsSortedFunc(l.Reserve, compareExposures) {
		return fmt.Errorf("exposures are out of order")
	}
	want, err := l.Exposed()
	if err != nil {
		return err
	}
	for _, e := range l.Reserve {
		at, found := want.find(e.Account, e.Reason)
		switch {
		case !found || e.Amount == 0:
			return fmt.Errorf("%d utally of %s are reserved for %v, and nothing stands on them", e.Amount, e.Account, e.Reason)
		case e.Reason == ForLead && e.Amount > want[at].Amount, e.Reason != ForLead && e.Amount != want[at].Amount: // leads are fined
			return fmt.Errorf("%d utally of %s are reserved for %v, want %d", e.Amount, e.Account, e.Reason, want[at].Amount)
		}
		want = slices.Delete(want, at, at+1)
	}
	if len(want) > 0 && want[0].Reason != ForLead {
		return fmt.Errorf("nothing of %s is reserved for %v, want %d utally", want[0].Account, want[0].Reason, want[0].Amount)
	}
	return nil
}

// Exposed returns what must be reserved, as the rest of the lease has it; of leads at most.
func (l *Lease) Exposed() (want Exposures, err error) {
	add := func(account string, reason Reason, amount uint64, more error) {
		if _, e := want.hold(account, reason, amount); err == nil {
			err = cmp.Or(more, e)
		}
	}
	if l.Phase == Settled {
		return nil, nil
	}
	audits := func(all []Audit) {
		for _, a := range all {
			if a.Bonded {
				add(a.Auditor, ForVerdict, l.verdictBond(), nil)
			}
		}
	}
	for i := range l.Units {
		u := &l.Units[i]
		if u.Status != Open {
			bond, err := l.unitBond(i, u)
			for _, w := range markOf(u).workers {
				add(w.provider, ForWork, bond, err)
			}
		}
		audits(u.Audits)
		for _, a := range u.Attested {
			if !a.Failed {
				add(a.Custodian, ForData, l.keepBond(), nil)
			}
		}
	}
	for _, f := range l.Forced() {
		bond, err := l.unitBond(f.Index, &f.Unit)
		add(f.Unit.Provider, ForWork, bond, err)
		audits(f.Unit.Audits)
	}
	for _, v := range l.Verdicts() {
		audits([]Audit{*v.Audit})
	}
	for _, c := range l.Disputes {
		add(c.Defender, ForWork, c.Bond, nil)
	}
	for _, k := range l.Files.Custodians {
		add(k.Account, ForFiles, l.bondFor(ForFiles), nil)
	}
	bond, failed := l.leadBond()
	for _, d := range l.Leads[:l.LeadIndex+1] {
		if !d.Gone {
			add(d.Account, ForLead, bond, failed)
		}
	}
	return want, err
}

func (x *Exposures) code(w *canon.Codec, name func(*canon.Codec, *string)) {
	canon.Seq(w, (*[]Exposure)(x), maxExposures, 3, func(w *canon.Codec, e *Exposure) {
		name(w, &e.Account)
		w.U8((*uint8)(&e.Reason))
		w.U64(&e.Amount)
	})
}

// maxExposures is as many as there may be: providers have one, validators up to four.
const maxExposures = MaxParties + 4*(MaxParties+1)
