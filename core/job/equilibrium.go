package job

import "fmt"

// Equilibrium returns an error that shows, with its numbers, the first inequality
// that the rules break of those by which each of these people does best by being
// honest. Amounts are in parts of the pay of a unit. An audit of a of n segments
// earns a/n. Who has not computed them cannot have the digest, so every forced
// attempt finds it out: who answers unseen loses if forced · verdict bond ≥ a/n.
// Who waits for another's word, and is silent if that is a mismatch, loses if
// forced · verdict bond · (1 − a/n) ≥ a/n: with 2, up to two thirds of the segments.
// Where a segment is one step the digest binds only its end, which is a secret with
// odds a/n: there 2 keeps who copies from gaining up to a half of the segments.
// A challenger that has not looked cannot gain (Lease.jackpot), whatever the rules
// are. Source: the conditions of Truebit's verifier's dilemma, for auditors that are
// drawn and have a bond.
func (p *Params) Equilibrium() error {
	if p.ForcedBps == 0 || p.ForcedBps >= bps {
		return fmt.Errorf("forced_bps is %d, must be between 1 and %d: forced errors keep auditors awake", p.ForcedBps, bps-1)
	}
	rest := bps - p.ForcedBps
	for _, c := range []struct {
		holds bool
		why   string
	}{
		{p.ForcedBps*p.VerdictFactor >= 2*bps, fmt.Sprintf(
			"passing what one has not looked at, or what another has passed, would pay: forced_bps · verdict_factor = %d · %d = %d < 20000",
			p.ForcedBps, p.VerdictFactor, p.ForcedBps*p.VerdictFactor)},
		{p.TaxBps*rest >= p.ForcedBps*(1+p.JackpotFactor)*bps, fmt.Sprintf(
			"the tax would not pay what is forced: tax_bps · (10000 − forced_bps) = %d · %d < forced_bps · (1 + jackpot_factor) · 10000 = %d · %d · 10000",
			p.TaxBps, rest, p.ForcedBps, 1+p.JackpotFactor)},
		{p.LateBps >= p.ForcedBps*p.JackpotFactor, fmt.Sprintf(
			"being late to have another forced draw would pay: late_bps = %d < forced_bps · jackpot_factor = %d · %d", p.LateBps, p.ForcedBps, p.JackpotFactor)},
		{2*p.RewardBps < bps, fmt.Sprintf("challenging oneself would pay: 2 · reward_bps = 2 · %d ≥ 10000", p.RewardBps)},
		{p.KeepFactor*(bps-p.RewardBps) > bps+p.CustodianBps, fmt.Sprintf(
			"keeping nothing would pay who computes and keeps a unit, and asks itself: keep_factor · (10000 − reward_bps) = %d · %d ≤ 10000 + custodian_bps = %d",
			p.KeepFactor, bps-p.RewardBps, bps+p.CustodianBps)},
	} {
		if !c.holds {
			return fmt.Errorf("%s", c.why)
		}
	}
	return nil
}

// Suits returns an error that shows the inequality if an order leaves others too little
// time (Timely), or its auditors would gain by waiting for each other's word: each must leave so much of a unit unseen that a
// forced attempt would often escape the first, and find out who copied it.
func (p *Params) Suits(o *Order) error {
	if err := p.Timely(o); err != nil {
		return err
	}
	c, n := &o.Conditions, o.Problem.Segments()
	if p.ForcedBps == 0 || c.Auditors < 2 {
		return nil
	}
	a := min(c.AuditSegments+c.TopSegments, n)
	gain := a
	if o.Problem.Interval == 1 { // only the end of the segment that was presented wrong is a secret
		gain = n
	}
	if risk := p.ForcedBps * p.VerdictFactor; risk*uint64(n-a) < bps*uint64(gain) {
		return fmt.Errorf("%d auditors who each audit %d of a unit's %d segments would copy each other: forced_bps · verdict_factor · (%d − %d) = %d < %d · 10000; want fewer segments, or one auditor",
			c.Auditors, a, n, n, a, risk*uint64(n-a), gain)
	}
	return nil
}

// WithoutForced returns the rules without forced errors, and what pays for them:
// for networks whose every auditor is known, and for tests that count each coin.
func (p Params) WithoutForced() Params {
	p.ForcedBps, p.TaxBps, p.JackpotFactor = 0, 0, 0
	return p
}

// Quick returns the rules for networks whose machines are known and quick, and whose
// orders may set times as short as they like.
func (p Params) Quick() Params {
	p.Speed, p.Link, p.Allowance = maxQuantity, maxQuantity, 0
	return p
}
