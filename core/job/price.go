package job

import (
	"errors"
	"fmt"
	"math/bits"
)

// ErrOverflow is returned when an amount does not fit in 64 bits.
var ErrOverflow = errors.New("amount is too large")

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

// scale returns ⌈a·b/c⌉ without intermediate overflow.
func scale(a, b, c uint64) (uint64, error) {
	hi, lo := bits.Mul64(a, b)
	lo, carry := bits.Add64(lo, c-1, 0)
	hi += carry
	if hi >= c {
		return 0, ErrOverflow
	}
	q, _ := bits.Div64(hi, lo, c)
	return q, nil
}

// sum adds amounts.
func sum(xs ...uint64) (uint64, error) {
	var total, carry uint64
	for _, x := range xs {
		if total, carry = bits.Add64(total, x, 0); carry != 0 {
			return 0, ErrOverflow
		}
	}
	return total, nil
}

// times multiplies an amount by a count.
func times(x uint64, n int) (uint64, error) {
	hi, lo := bits.Mul64(x, uint64(n))
	if hi != 0 {
		return 0, ErrOverflow
	}
	return lo, nil
}

// Pay returns what flops and bytes cost at these rates.
func (r Rates) Pay(flops, bytes uint64) (uint64, error) {
	a, err := scale(r.GFLOP, flops, gigaFLOP)
	if err != nil {
		return 0, err
	}
	b, err := scale(r.GB, bytes, gigaByte)
	if err != nil {
		return 0, err
	}
	return sum(a, b)
}

// Tariff holds the shares that the chain's parameters fix, in basis points.
type Tariff struct {
	KeeperBps uint64 // of a unit's pay, to its keepers together
	BurnBps   uint64 // of everything paid out, burnt
}

// Quote is what an order can cost at most with one offer, and of what parts.
type Quote struct {
	Unit   uint64 // pay of one unit at the dearest provider's rates
	Audit  uint64 // wage of one auditor for one unit
	Keep   uint64 // wage of one keeper for one unit
	Fee    uint64 // the validator's, for the whole order
	Burn   uint64
	Price  uint64 // everything
	Honest uint64 // pay, wages and fee without the burn
}

// NewQuote prices an order at the given rates and fee.
func NewQuote(p *Problem, c *Conditions, dearest Rates, feeBps uint64, t Tariff) (q Quote, err error) {
	if q.Unit, err = dearest.Pay(p.UnitFLOPs(), p.StepBytes*uint64(p.Steps)); err != nil {
		return q, err
	}
	if q.Unit == 0 {
		return q, fmt.Errorf("these rates price a unit at nothing, so no bond would stand behind it")
	}
	// An auditor's work is at most AuditSegments·Interval steps of the same unit.
	if q.Audit, err = scale(q.Unit, uint64(c.AuditSegments*p.Interval), uint64(p.Steps)); err != nil {
		return q, err
	}
	if q.Keep, err = scale(q.Unit, t.KeeperBps, bps*uint64(c.Keepers)); err != nil {
		return q, err
	}
	work, err := times(q.Unit, p.Units())
	if err != nil {
		return q, err
	}
	audits, err := times(q.Audit, c.Auditors*p.Units())
	if err != nil {
		return q, err
	}
	keeps, err := times(q.Keep, c.Keepers*p.Units())
	if err != nil {
		return q, err
	}
	if q.Fee, err = scale(work, feeBps, bps); err != nil {
		return q, err
	}
	if q.Honest, err = sum(work, audits, keeps, q.Fee); err != nil {
		return q, err
	}
	if q.Burn, err = scale(q.Honest, t.BurnBps, bps); err != nil {
		return q, err
	}
	q.Price, err = sum(q.Honest, q.Burn)
	return q, err
}

// Bond returns what stands behind a unit or a merge of round r: BondFactor times
// the honest work that its fraud could void, and at least the gain from cheating
// over the probability that an audit meets it.
func (q *Quote) Bond(p *Problem, c *Conditions, rules *Params, r int) (uint64, error) {
	void, err := scale(q.Honest, uint64(p.Rounds-r), uint64(p.Rounds))
	if err != nil {
		return 0, err
	}
	void, err = scale(void, rules.BondFactor, 1)
	if err != nil {
		return 0, err
	}
	if audited := c.Auditors * c.AuditSegments; audited > 0 {
		gain, err := scale(q.Unit, uint64(p.Segments()), uint64(min(audited, p.Segments())))
		return max(void, gain), err
	}
	return void, nil
}
