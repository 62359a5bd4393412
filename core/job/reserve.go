package job

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// One ledger holds all stake that a lease has reserved: see docs/adr/0037-one-reserve.md. A
// verdict and a custodian's word have each a bond of their own. The units of one provider stand on
// one reserve together, and so do the merges of one lead. A convict gets none of it back; part may stay behind its other claims.

// Reason says for what an account answers with its stake.
type Reason uint8

// The reasons.
const (
	ForWork    Reason = iota + 1 // units that it computes or has computed
	ForLead                      // merges, and that it leads on
	ForVerdict                   // what it says of segments that it was drawn to audit
	ForData                      // units whose data it was drawn to keep
	ForFiles                     // the order's files, which it was drawn to keep
	ForSale                      // that it serves what it has sold to the order
)

// String returns the reason's name.
func (r Reason) String() string {
	return [...]string{"nothing", "work", "lead", "verdict", "data", "files", "sale"}[min(r, 7)%7]
}

// shared reports whether all that an account does for this reason stands on one reserve.
func (r Reason) shared() bool { return r == ForWork || r == ForLead }

// reason says for what the defender answers.
func (c *Dispute) reason() Reason {
	switch c.Target.kind {
	case AboutMerge:
		return ForLead
	case AboutVerdict:
		return ForVerdict
	}
	return ForWork
}

// Exposure is what a lease has reserved of an account's stake for one reason.
type Exposure struct {
	Account string
	Reason  Reason
	Amount  uint64 // utally

	// Of work and of leads.
	Claims int    // units or merges that stand, or are in dispute
	First  int    // no claim is of an earlier round
	Gains  uint64 // the pay of these units over the odds of detection, added up
	Guilty bool   // convicted: what is left stands behind the other claims, and is lost at the end
}

// add counts one claim more.
func (e *Exposure) add(round int, gain uint64) (err error) {
	if e.Claims == 0 || round < e.First {
		e.First = round
	}
	e.Claims++
	e.Gains, err = money.Sum(e.Gains, gain)
	return err
}

// spent reports whether nothing is left to lose.
func (e *Exposure) spent() bool { return e.Guilty && e.Amount == 0 }

// Exposures is the ledger of all that a lease has reserved, by account and reason. No stake is
// reserved, released or slashed but through it. Who is in it stays, with nothing once all is released:
// so it says who has had a part in the lease (Participants).
type Exposures []Exposure

func compareExposures(a, b Exposure) int {
	return cmp.Or(strings.Compare(a.Account, b.Account), cmp.Compare(a.Reason, b.Reason))
}

// of returns an account's exposure for a reason, nil if there is none.
func (x Exposures) of(account string, reason Reason) *Exposure {
	at, found := slices.BinarySearchFunc(x, Exposure{Account: account, Reason: reason}, compareExposures)
	if !found {
		return nil
	}
	return &x[at]
}

// open returns an account's exposure for a reason, which may be new.
func (x *Exposures) open(account string, reason Reason) *Exposure {
	e := Exposure{Account: account, Reason: reason}
	at, found := slices.BinarySearchFunc(*x, e, compareExposures)
	if !found {
		*x = slices.Insert(*x, at, e)
	}
	return &(*x)[at]
}

// Held returns what is reserved of an account for a reason.
func (x Exposures) Held(account string, reason Reason) uint64 {
	if e := x.of(account, reason); e != nil {
		return e.Amount
	}
	return 0
}

// hold reserves more of an account's stake.
func (x *Exposures) hold(account string, reason Reason, amount uint64) ([]Effect, error) {
	if amount == 0 {
		return nil, nil
	}
	total, err := money.Sum(x.Held(account, reason), amount)
	if err != nil {
		return nil, fmt.Errorf("reserve stake of %s: %w", account, err)
	}
	x.open(account, reason).Amount = total
	return []Effect{{Reserve, account, amount, reason.String()}}, nil
}

// take removes an amount, at most what is there, and returns it.
func (x *Exposures) take(account string, reason Reason, amount uint64) uint64 {
	e := x.of(account, reason)
	if e == nil {
		return 0
	}
	amount = min(amount, e.Amount)
	e.Amount -= amount
	return amount
}

// release lets go of an amount.
func (x *Exposures) release(account string, reason Reason, amount uint64) []Effect {
	if amount = x.take(account, reason, amount); amount == 0 {
		return nil
	}
	return []Effect{{Release, account, amount, reason.String()}}
}

// answer lets a provider's reserve stand behind one unit more.
func (l *Lease) answer(provider string, round int, gain uint64) ([]Effect, error) {
	e, need, err := l.burdened(provider, round, gain)
	if err != nil {
		return nil, err
	}
	*l.Reserve.open(provider, ForWork) = e
	return l.Reserve.hold(provider, ForWork, need.Amount-min(e.Amount, need.Amount))
}

// burdened returns the exposure of a provider with one unit more, and what must be reserved then.
func (l *Lease) burdened(provider string, round int, gain uint64) (e Exposure, need Bond, err error) {
	e = Exposure{Account: provider, Reason: ForWork}
	if has := l.Reserve.of(provider, ForWork); has != nil {
		e = *has
	}
	if err = e.add(round, gain); err == nil {
		need, err = l.need(&e)
	}
	return e, need, err
}

// need returns what must be reserved behind the work of a provider.
func (l *Lease) need(e *Exposure) (Bond, error) {
	if e.Claims == 0 {
		return Bond{}, nil
	}
	return l.Quote.reserve(&l.Order.Problem, &l.Params, e)
}

// drop ends a claim, and lets go of what nothing stands on any more. A convict gets nothing back,
// and a lead when the lease ends.
func (l *Lease) drop(account string, reason Reason, gain uint64) ([]Effect, error) {
	e := l.Reserve.of(account, reason)
	if e == nil || e.Claims == 0 {
		return nil, nil
	}
	e.Gains -= min(gain, e.Gains)
	if e.Claims--; e.Claims == 0 {
		e.First = 0
	}
	if e.Guilty || reason == ForLead {
		return nil, nil
	}
	need, err := l.need(e)
	return l.Reserve.release(account, reason, e.Amount-min(need.Amount, e.Amount)), err
}

// gain returns the pay of a unit over the odds that its audits find one forged segment.
func (l *Lease) gain(audited int) (uint64, error) {
	gain, _, err := l.Quote.gain(&l.Order.Problem, &l.Order.Conditions, audited)
	return gain, err
}

// kept returns what of a convict's reserve must stay behind its other claims, so that these can be
// refuted later: it would pay all honest work that they can make void, and the reward, and half of
// the least bond would be left, so that nobody who stands on all sides has everything back.
func (l *Lease) kept(e *Exposure) (uint64, error) {
	part, whole := l.Order.Problem.voided(e.First, e.Claims)
	void, err := money.Scale(l.Quote.Honest, part, whole)
	if err == nil {
		void, err = money.Scale(void, bps, bps-l.Params.RewardBps)
	}
	if err == nil {
		void, err = money.Sum(void, l.Params.MinBond/2)
	}
	return void, err
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

// fine takes the penalty of who does not do what it has taken on. What a convict has left
// stands behind its other claims.
func (l *Lease) fine(account string, reason Reason) ([]Effect, error) {
	e := l.Reserve.of(account, reason)
	if e == nil || e.Guilty {
		return nil, nil
	}
	fee, err := l.lateFee()
	fee = min(fee, e.Amount)
	return l.slash(account, reason, fee, []Share{{Insurance, fee}}), err
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

// closeReserve takes what convicts have left, and releases the rest.
func (l *Lease) closeReserve() (effects []Effect) {
	for i, e := range l.Reserve {
		if e.Guilty {
			effects = append(effects, l.slash(e.Account, e.Reason, e.Amount, []Share{{Insurance, e.Amount}})...)
		} else {
			effects = append(effects, l.Reserve.release(e.Account, e.Reason, e.Amount)...)
		}
		l.Reserve[i] = Exposure{Account: e.Account, Reason: e.Reason}
	}
	return effects
}

// checkBonds returns an error unless what is reserved for one thing can be counted.
func (l *Lease) checkBonds() error {
	worth, err := money.Sum(l.Quote.Unit, l.Quote.Keep)
	if err == nil {
		_, err = money.Times(worth, int(max(l.Params.KeepFactor, l.Params.VerdictFactor)))
	}
	if err == nil {
		_, err = l.kept(&Exposure{Claims: l.Order.Problem.Units()})
	}
	if err != nil {
		return fmt.Errorf("a bond is too large to count: %w", err)
	}
	return nil
}

// Reserved returns what the lease has reserved of every account.
func (l *Lease) Reserved() (out []Share) {
	for _, e := range l.Reserve {
		if e.Amount > 0 {
			out = addShare(out, Share{e.Account, e.Amount})
		}
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
		at, found := slices.BinarySearchFunc(want, e, compareExposures)
		if !found {
			if e.Guilty || e.Reason == ForSale && l.Phase < Settled || e == (Exposure{Account: e.Account, Reason: e.Reason}) {
				continue // it had something once, or has sold something
			}
			return fmt.Errorf("%d utally of %s are reserved for %v, and nothing stands on them", e.Amount, e.Account, e.Reason)
		}
		if err := l.checkExposure(&e, &want[at]); err != nil {
			return fmt.Errorf("of %s for %v: %w", e.Account, e.Reason, err)
		}
		want = slices.Delete(want, at, at+1)
	}
	for _, e := range want {
		if e.Reason != ForLead { // of those in line, some never led
			return fmt.Errorf("nothing of %s is reserved for %v, want %d utally", e.Account, e.Reason, e.Amount)
		}
	}
	return nil
}

// checkExposure compares an exposure with what it should be. Who was fined has less, by no more
// than the fines; a convict has what was left to it.
func (l *Lease) checkExposure(e, want *Exposure) error {
	if e.spent() {
		return nil
	}
	if e.Claims != want.Claims || e.Gains != want.Gains || e.First > want.First {
		return fmt.Errorf("%d claims from round %d on with gains of %d are counted, there are %d from round %d on with %d", e.Claims, e.First, e.Gains, want.Claims, want.First, want.Gains)
	}
	most := want.Amount
	if e.Reason == ForWork {
		need, err := l.need(e)
		if err != nil {
			return err
		}
		most = need.Amount
	}
	var fines uint64
	for _, f := range l.Faults {
		if f.Provider == e.Account {
			each := l.bondFor(ForFiles)
			if n := l.Order.Conditions.Replicas; n > 0 { // with the pay of all others, who computed a unit in vain
				each += uint64(n-1) * l.Quote.Unit
			}
			fines = uint64(f.Late) * each
		}
	}
	switch {
	case e.Guilty:
	case e.Amount > most, e.Reason != ForLead && e.Amount+fines < most:
		return fmt.Errorf("%d utally are reserved, want %d, less fines of %d", e.Amount, most, fines)
	}
	return nil
}

// Exposed returns what must be reserved, as the rest of the lease has it; of leads at most.
func (l *Lease) Exposed() (want Exposures, err error) {
	if l.Phase == Settled {
		return nil, nil
	}
	single := func(account string, reason Reason) {
		if _, e := want.hold(account, reason, l.bondFor(reason)); err == nil {
			err = e
		}
	}
	work := func(provider string, unit int, gain uint64, failed error) {
		if e := want.open(provider, ForWork).add(l.roundOf(UnitTarget(unit)), gain); err == nil {
			err = cmp.Or(failed, e)
		}
	}
	audits := func(all []Audit) {
		for _, a := range all {
			if a.Bonded {
				single(a.Auditor, ForVerdict)
			}
		}
	}
	for i := range l.Units {
		u := &l.Units[i]
		if u.Status != Open {
			gain, failed := l.gain(u.Audited)
			for _, w := range markOf(u).workers {
				work(w.provider, i, gain, failed)
			}
		}
		audits(u.Audits)
		for _, a := range u.Attested {
			if !a.Failed {
				single(a.Custodian, ForData)
			}
		}
	}
	for _, f := range l.Forced() {
		gain, failed := l.gain(f.Unit.Audited)
		work(f.Unit.Provider, f.Index, gain, failed)
		audits(f.Unit.Audits)
	}
	for _, v := range l.Verdicts() {
		audits([]Audit{*v.Audit})
	}
	for i := range l.Disputes {
		if c := &l.Disputes[i]; c.Void && c.reason() == ForWork && l.firstOf(c) == i {
			work(c.Defender, c.Target.index, c.Gain, nil)
		}
	}
	for _, k := range l.Files.Custodians {
		single(k.Account, ForFiles)
	}
	for i := range want {
		if e := &want[i]; e.Reason == ForWork {
			need, failed := l.need(e)
			e.Amount, err = need.Amount, cmp.Or(err, failed)
		}
	}
	bond, failed := l.leadBond()
	for _, d := range l.Leads[:l.LeadIndex+1] {
		e := want.open(d.Account, ForLead)
		e.Amount = bond
		for r, m := range l.Merges {
			if m.By == d.Account {
				err = cmp.Or(err, e.add(r, 0))
			}
		}
	}
	return want, cmp.Or(err, failed)
}

func (x *Exposures) code(w *canon.Codec, name func(*canon.Codec, *string)) {
	canon.Seq(w, (*[]Exposure)(x), maxExposures, 3, func(w *canon.Codec, e *Exposure) {
		name(w, &e.Account)
		w.U8((*uint8)(&e.Reason))
		w.U64(&e.Amount)
		if e.Reason.shared() {
			w.Int(&e.Claims, maxClaims)
			w.Int(&e.First, MaxUnits)
			w.U64(&e.Gains)
			w.Bool(&e.Guilty)
		}
	})
}

const (
	maxExposures = 2*MaxParties + 4*(MaxParties+1) // providers have up to two, validators up to four
	maxClaims    = MaxUnits * (maxAttempt + 1)     // each attempt of each unit
)
