package job

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/proof"
)

const (
	gigaFLOP = 1_000_000_000
	gigaByte = 1_000_000_000
	bps      = 10_000
)

// Rates are what somebody asks for work.
type Rates struct {
	GFLOP uint64 // utally for 10⁹ floating-point operations
	GB    uint64 // utally for 10⁹ bytes moved
}

// Dearest returns the higher of each rate.
func (r Rates) Dearest(s Rates) Rates { return Rates{max(r.GFLOP, s.GFLOP), max(r.GB, s.GB)} }

// Pay returns what flops and bytes cost at these rates.
func (r Rates) Pay(flops, bytes uint64) (uint64, error) {
	a, err := money.Scale(r.GFLOP, flops, gigaFLOP)
	if err != nil {
		return 0, err
	}
	b, err := money.Scale(r.GB, bytes, gigaByte)
	if err != nil {
		return 0, err
	}
	return money.Sum(a, b)
}

// Tariff holds the shares and prices that the chain's parameters fix: in basis points, and in utally.
type Tariff struct {
	CustodianBps  uint64 // of a unit's pay, to its custodians together
	BurnBps       uint64 // of everything paid out, burnt
	TaxBps        uint64 // of everything paid out, to the jackpot pool; more where forced attempts are due more
	KeepGB        uint64 // utally for 10⁹ bytes and hour, to each custodian
	BurnUT        uint64 // utally burnt for each ut that is credited; 0: credit costs nothing
	ForcedBps     uint64 // of the attempts, presented wrong by duty; 0: none
	JackpotFactor uint64 // what the first challenger of a forced receipt gets, or its provider if nobody challenges it, as a multiple of a unit's pay
	AllLose       bool   // nobody is credited for a unit of drilling whose replicas have differed, whoever was right
}

// Quote is what an order can cost at most with one offer, and of what parts.
type Quote struct {
	Unit   uint64 // pay of one unit at the dearest provider's rates
	Audit  uint64 // wage of one auditor for one unit
	Keep   uint64 // wage of one custodian for one unit
	Fee    uint64 // the validator's, for the whole order
	Burn   uint64
	Tax    uint64 // to the jackpot pool, at most
	Price  uint64 // everything
	Honest uint64 // pay, wages and fee without burn and tax
}

// NewQuote prices an order at the given rates and fee.
func NewQuote(p *Problem, c *Conditions, dearest Rates, feeBps uint64, t Tariff) (q Quote, err error) {
	if q.Unit, err = dearest.Pay(p.UnitFLOPs(), p.StepBytes*uint64(p.Steps)); err != nil {
		return q, err
	}
	if q.Unit == 0 {
		return q, fmt.Errorf("these rates price a unit at nothing, so no bond would stand behind it")
	}
	// An auditor's work is at most so many segments of the same unit.
	if q.Audit, err = money.Scale(q.Unit, uint64(min((c.AuditSegments+c.TopSegments)*p.Interval, p.Steps)), uint64(p.Steps)); err != nil {
		return q, err
	}
	if q.Keep, err = money.Scale(q.Unit, t.CustodianBps, bps*uint64(c.Custodians)); err != nil {
		return q, err
	}
	kept, err := keepWage(p, c, t.KeepGB)
	if err == nil {
		q.Keep, err = money.Sum(q.Keep, kept)
	}
	if err != nil {
		return q, err
	}
	work, err := money.Times(q.Unit, p.Units()*c.Copies())
	if err != nil {
		return q, err
	}
	audits, err := money.Times(q.Audit, c.Auditors*p.Units())
	if err != nil {
		return q, err
	}
	keeps, err := money.Times(q.Keep, c.Custodians*p.Units())
	if err != nil {
		return q, err
	}
	files, err := q.fileWage(p, c, t)
	if err == nil {
		files, err = money.Times(files, c.Custodians)
	}
	if err == nil {
		keeps, err = money.Sum(keeps, files)
	}
	if err != nil {
		return q, err
	}
	if q.Fee, err = money.Scale(work, feeBps, bps); err != nil {
		return q, err
	}
	if q.Honest, err = money.Sum(work, audits, keeps, q.Fee); err != nil {
		return q, err
	}
	flops, err := p.flops(c)
	if err != nil {
		return q, err
	}
	if q.Burn, err = t.burn(c, q.Honest, flops); err != nil {
		return q, err
	}
	if q.Tax, err = t.mostTax(&q, p, c); err != nil {
		return q, err
	}
	q.Price, err = money.Sum(q.Honest, q.Burn, q.Tax)
	return q, err
}

// mostTax returns the most that a lease is taxed: enough for as many forced attempts as it locks money for.
func (t *Tariff) mostTax(q *Quote, p *Problem, c *Conditions) (uint64, error) {
	tax, err := money.Scale(q.Honest, t.TaxBps, bps)
	if err != nil {
		return 0, err
	}
	n, err := t.forcedAtMost(p, c)
	if err != nil || n == 0 {
		return tax, err
	}
	pay, err1 := money.Scale(q.Unit, 1+t.JackpotFactor, 1)
	audits, err2 := money.Times(q.Audit, c.Auditors)
	keeps, err3 := money.Times(q.Keep, c.Custodians)
	if err := errors.Join(err1, err2, err3); err != nil {
		return 0, err
	}
	each, err := money.Sum(pay, audits, keeps)
	if err != nil {
		return 0, err
	}
	forced, err := money.Times(each, n)
	return max(tax, forced), err
}

// taxed returns what goes to the pool of a lease that has paid so much, and owes so much for its forced attempts: its
// share, or that where it is more, as far as money was locked. No other lease pays any of it, so nobody gains by
// forced attempts in a lease of its own.
func (q *Quote) taxed(t *Tariff, paid uint64, due []Share) (uint64, error) {
	tax, err := money.Scale(paid, t.TaxBps, bps)
	if err != nil {
		return 0, err
	}
	var forced uint64
	for _, s := range due {
		if forced, err = money.Sum(forced, s.Amount); err != nil {
			return 0, err
		}
	}
	return max(tax, min(forced, q.Tax)), nil
}

// forcedAtMost returns how many forced attempts an order locks money for: one more than twice what
// is expected, and no more than its units. If more are drawn, all are cut in one proportion.
func (t *Tariff) forcedAtMost(p *Problem, c *Conditions) (int, error) {
	if t.ForcedBps == 0 || t.ForcedBps >= bps || c.Replicas > 0 {
		return 0, nil
	}
	units := uint64(p.Units())
	n, err := money.Scale(2*units, t.ForcedBps, bps-t.ForcedBps)
	if err != nil {
		return 0, err
	}
	return int(min(units, 1+n)), nil
}

// flops returns the floating-point operations of all units, by whoever computes them.
func (p *Problem) flops(c *Conditions) (uint64, error) {
	return money.Times(p.UnitFLOPs(), p.Units()*c.Copies())
}

// Bond is what must stand behind the work of a provider, or the merges of a lead: enough for the
// worst that their fraud can do.
type Bond struct {
	Amount uint64 // the greatest of the two and Params.MinBond
	Void   uint64 // the honest work that all of it together can void, times Params.BondFactor
	Gain   uint64 // the pay of its units over the odds that an audit meets one forged segment
	Odds   uint64 // these odds of a unit, in parts of proof.Certain; 0 without audits, or of several units
}

// Bond returns what must stand behind a first unit, of round r, of which each auditor draws so
// many segments.
func (q *Quote) Bond(p *Problem, c *Conditions, rules *Params, r, audited int) (b Bond, err error) {
	gain, odds, err := q.gain(p, c, audited)
	if err != nil {
		return b, err
	}
	b, err = q.reserve(p, rules, &Exposure{Claims: 1, First: r, Gains: gain})
	b.Odds = odds
	return b, err
}

// gain returns the pay of a unit over the odds that its audits find one forged segment; 0 without
// audits.
func (q *Quote) gain(p *Problem, c *Conditions, audited int) (gain, odds uint64, err error) {
	if odds = proof.Detected(p.Segments(), 1, audited, c.Auditors); odds > 0 {
		gain, err = money.Scale(q.Unit, proof.Certain, odds)
	}
	return gain, odds, err
}

// reserve returns what must stand behind the claims of one account.
func (q *Quote) reserve(p *Problem, rules *Params, e *Exposure) (b Bond, err error) {
	part, whole := p.voided(e.First, e.Claims)
	if b.Void, err = money.Scale(q.Honest, part, whole); err != nil {
		return b, err
	}
	b.Gain = e.Gains
	b.Void, err = money.Scale(b.Void, rules.BondFactor, 1)
	b.Amount = max(b.Void, b.Gain, rules.MinBond)
	return b, err
}

// Covered returns an error that shows the inequality unless what is held already and free utally
// of stake cover the bond.
func (b Bond) Covered(who string, held, free uint64) error {
	if b.Amount <= held || b.Amount-held <= free {
		return nil
	}
	parts := []string{fmt.Sprintf("bond factor × honest work = %d", b.Void)}
	switch {
	case b.Odds > 0:
		parts = append(parts, fmt.Sprintf("gain of %d at odds of detection of %d.%07d %%", b.Gain, b.Odds/1e7, b.Odds%1e7))
	case b.Gain > 0:
		parts = append(parts, fmt.Sprintf("gains of %d over the odds of detection", b.Gain))
	}
	if b.Amount > max(b.Void, b.Gain) {
		parts = append(parts, "the least bond")
	}
	return fmt.Errorf("the bond of %s must cover the worst case: max(%s) = %d utally, less %d that are reserved > %d utally of free stake",
		who, strings.Join(parts, ", "), b.Amount, held, free)
}
