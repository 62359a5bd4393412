package job

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// earnings returns what the people behind a unit's current attempt have earned:
// its provider once the receipt counts, each auditor that answered truly, as far
// as is known, each custodian whose word counts. Who reported a mismatch was right if the unit
// is refuted; who reported none may still have been wrong, which others must show.
func (l *Lease) earnings(i int, refuted bool) ([]Share, error) {
	u := &l.Units[i]
	if u.Status < Counted {
		return nil, nil
	}
	shares, err := l.workPay(u)
	if err != nil {
		return nil, err
	}
	for _, a := range u.Audits {
		if a.Done && !a.Wrong && (a.Pass || refuted) {
			wage, err := l.auditWage(u)
			if err != nil {
				return nil, err
			}
			shares = append(shares, Share{a.Auditor, wage})
		}
	}
	for j := range u.Attested {
		if k := &u.Attested[j]; l.counts(u, k) {
			shares = append(shares, Share{k.Custodian, l.Quote.Keep})
		}
	}
	return shares, nil
}

// workPay returns what those who have computed a unit ask for it.
func (l *Lease) workPay(u *Unit) (shares []Share, err error) {
	for _, w := range markOf(u).workers {
		pay, err := l.pay(w.provider)
		if err != nil {
			return nil, err
		}
		shares = append(shares, Share{w.provider, pay})
	}
	return shares, nil
}

// pay returns what a provider asks for a unit.
func (l *Lease) pay(provider string) (uint64, error) {
	p := &l.Order.Problem
	party := find(l.Providers, provider)
	if party == nil {
		return 0, fmt.Errorf("a unit was computed by a stranger, %s", provider)
	}
	return party.Pay(p.UnitFLOPs(), p.StepBytes*uint64(p.Steps))
}

// auditWage returns what each auditor of a unit earns: its share of the full wage
// for the segments that it had to re-execute.
func (l *Lease) auditWage(u *Unit) (uint64, error) {
	c := &l.Order.Conditions
	return money.Scale(l.Quote.Audit, uint64(u.Audited+c.TopSegments), uint64(c.AuditSegments+c.TopSegments))
}

// settle pays out. Verified work earns its pay, whether the order was completed or stopped early; the
// validator that leads at the end earns the fee on it; a part is burnt, a part goes to the jackpot pool, the rest
// goes back to the consumer. Forced attempts are paid out of that pool, no more than this lease is taxed.
func (l *Lease) settle() ([]Effect, error) {
	shares, deposit, err := l.wages()
	if err != nil {
		return nil, err
	}
	var paid, forfeit uint64
	for _, s := range shares {
		if paid, err = money.Sum(paid, s.Amount); err != nil {
			return nil, err
		}
	}
	for _, s := range deposit {
		forfeit += s.Amount // no more than the deposit
		shares = addShare(shares, s)
	}
	var rest uint64 // of a deposit that is forfeit, burnt
	if l.Ledger.Refuter != "" {
		rest = l.Deposit - forfeit
	}
	var effects []Effect
	for _, s := range shares {
		effects = append(effects, Effect{Kind: Pay, Account: s.Account, Amount: s.Amount})
	}
	workers := creditable(l)
	flops, err := money.Times(l.Order.Problem.UnitFLOPs(), len(workers))
	if err != nil {
		return nil, err
	}
	burn, err := l.Params.burn(&l.Order.Conditions, paid, flops)
	if err != nil {
		return nil, err
	}
	due, judged, err := l.forcedDue()
	if err != nil {
		return nil, err
	}
	tax, err := l.Quote.taxed(&l.Params.Tariff, paid, due)
	if err != nil {
		return nil, err
	}
	spent, err := money.Sum(paid, burn, tax)
	if err != nil || spent > l.Quote.Price {
		return nil, fmt.Errorf("the work earned %d, burns %d and is taxed %d of a price of %d utally", paid, burn, tax, l.Quote.Price)
	}
	refund := l.Ledger.Escrow - spent - forfeit - rest
	burn += rest
	l.Ledger.Escrow, l.Ledger.Paid, l.Ledger.Burnt, l.Ledger.Tax, l.Ledger.Refund = 0, shares, burn, tax, refund
	effects = append(effects, Effect{Kind: Burn, Amount: burn}, Effect{Kind: Tax, Amount: tax}, Effect{Kind: Refund, Account: l.Order.Consumer, Amount: refund})
	if lead := l.Lead(); lead != "" {
		effects = append(effects, Effect{Kind: Led, Account: lead, Amount: paid})
	}
	credits, err := l.credits(workers)
	if err != nil {
		return nil, err
	}
	effects = slices.Concat(effects, credits, judged)
	if l.Ledger.Prizes, err = within(due, tax); err != nil {
		return nil, err
	}
	for _, s := range l.Ledger.Prizes {
		effects = append(effects, Effect{Kind: Prize, Account: s.Account, Amount: s.Amount})
	}
	effects = append(effects, l.releaseAll()...)
	if l.Ledger.Insured = l.insured(spent); l.Ledger.Insured > 0 {
		effects = append(effects, Effect{Kind: Insure, Account: l.Order.Consumer, Amount: l.Ledger.Insured})
	}
	effects = gather(effects)
	l.Phase, l.Sweep = Settled, 0
	return append(effects, Effect{Emit, l.Order.Consumer, refund, "settled"}), nil
}

// insured returns what the insurance fund pays the consumer of a lease that stopped early, not by its own wish, who has paid
// for a part of a result: what that cost, but at most half of what the slashes of this very lease left to
// the fund. The other half stays there, so that who plays both sides never has back what it lost.
func (l *Lease) insured(spent uint64) uint64 {
	if l.Reason == "" || l.Reason == StopReason || l.Ledger.Refuter != "" {
		return 0
	}
	for _, s := range l.Ledger.SlashPaid {
		if s.Account == Insurance {
			return min(spent, s.Amount/2)
		}
	}
	return 0
}

// wages returns what every account has earned by accepted units and by the order's
// files, and what is paid out of the deposit.
func (l *Lease) wages() (shares, deposit []Share, err error) {
	var work uint64 // what providers earn, on which the fee is reckoned
	for i := range l.Units {
		if l.Units[i].Status != Accepted {
			continue
		}
		earned, err := l.earnings(i, false)
		if err != nil {
			return nil, nil, err
		}
		for j := range markOf(&l.Units[i]).workers { // they come first
			if work, err = money.Sum(work, earned[j].Amount); err != nil {
				return nil, nil, err
			}
		}
		for _, s := range earned {
			shares = addShare(shares, s)
		}
	}
	fee, err := money.Scale(work, l.FeeBps, bps)
	if err != nil {
		return nil, nil, err
	}
	if lead := l.Lead(); lead != "" {
		shares = addShare(shares, Share{lead, fee})
	}
	kept, deposit, err := l.fileWages(work > 0)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range kept {
		shares = addShare(shares, s)
	}
	if who := l.Ledger.Refuter; who != "" {
		reward, err := money.ScaleDown(l.Deposit, l.Params.RewardBps, bps)
		if err != nil {
			return nil, nil, err
		}
		deposit = append(deposit, Share{who, reward})
	}
	none := func(s Share) bool { return s.Amount == 0 }
	return slices.DeleteFunc(shares, none), slices.DeleteFunc(deposit, none), nil
}

// releaseAll frees every bond; no dispute is open any more.
func (l *Lease) releaseAll() []Effect {
	for i := range l.Units {
		u := &l.Units[i]
		for j := range u.Audits {
			u.Audits[j].Bonded = false
		}
		u.Attend = 0
	}
	clear(l.Past)
	effects := l.dropQuestions(OfFiles, func(*Question) bool { return true })
	return append(effects, l.closeReserve()...)
}

// gather puts effects of one kind on one account together, so that many units cost the
// chain what their parties do. None of the rest may depend on the order of these.
func gather(effects []Effect) (out []Effect) {
	type key struct {
		kind    Kind
		account string
		note    string
	}
	at := map[key]int{}
	for _, e := range effects {
		switch e.Kind {
		case Release, Credit, Vouch, Work, Busy:
			k := key{e.Kind, e.Account, e.Note}
			if i, seen := at[k]; seen {
				total, err := money.Sum(out[i].Amount, e.Amount)
				if err == nil {
					out[i].Amount = total
					continue
				}
			}
			at[k] = len(out)
		}
		out = append(out, e)
	}
	return out
}

// Settlement is what the chain keeps of an ended lease under proof, and what a
// proof bundle is anchored to.
type Settlement struct {
	Order   canon.Hash
	Start   canon.Hash
	Final   canon.Hash
	Record  canon.Hash // of the lease as it ended, with its units and merges
	Price   uint64
	Deposit uint64 // locked beside the price
	Ledger  Ledger
}

// Record returns the canonical encoding of an ended lease, which its settlement binds.
func (l *Lease) Record() []byte { return canon.Marshal(l) }

// Settlement returns the settlement of an ended lease.
func (l *Lease) Settlement() Settlement {
	return Settlement{
		Order: l.Order.ID(), Start: l.Order.Problem.Start, Final: l.FinalRoot(),
		Record: canon.Sum(canon.DomainRecord, l.Record()), Price: l.Quote.Price, Deposit: l.Deposit, Ledger: l.Ledger,
	}
}
