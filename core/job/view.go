package job

import (
	"slices"

	"github.com/tally-network/tally/core/canon"
)

// What roles need to see of a lease beside its fields.

// RoundUnits returns the units of the round under way, none when all are merged.
func (l *Lease) RoundUnits() []Unit {
	if l.Round == len(l.Merges) {
		return nil
	}
	return l.round(l.Round)
}

// Participants returns who has or has had a part in the lease, in account order: its consumer, those in
// line to lead it, whoever has sold it capacity at an auction, and whoever was given something to do, for which it answers with
// stake. It only grows. Who may still be drawn is not among them: that may be everybody.
func (l *Lease) Participants() []string {
	out := []string{l.Order.Consumer}
	for _, d := range l.Leads {
		out = append(out, d.Account)
	}
	if l.Order.Conditions.Auction {
		for _, p := range l.Providers {
			out = append(out, p.Account)
		}
	}
	for _, e := range l.Reserve {
		out = append(out, e.Account)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Eligible returns the providers that may be given units, in account order. One
// unit may be withheld from some of them.
func (l *Lease) Eligible() []string {
	var out []string
	for _, p := range l.Providers {
		if l.MayWork(p.Account) && l.openUnits(p.Account) < l.Params.MaxOpen {
			out = append(out, p.Account)
		}
	}
	return out
}

// MayTakeLead reports whether account may take over the lead at protocol time now, as far
// as the lease knows: of providers that wait it does not know what they have staked.
func (l *Lease) MayTakeLead(account string, now int64) bool {
	i := l.inLine(account)
	return l.led() && i > l.LeadIndex && (l.idle(i, now) || slices.ContainsFunc(l.Queue, func(w Waiting) bool {
		return l.hasWaited(w.Provider, l.turns(i)*l.Params.LeadTimeout, now)
	}))
}

// Disputed reports whether a challenger need not dispute an attempt of the work named by
// t now: it does so already, or another's dispute is open, which may be lost on purpose
// and is to be waited for. In the closing phase there may be no time to wait, and an
// auditor that has reported the work must show it, whatever others do.
func (l *Lease) Disputed(challenger string, t Target, attempt int) bool {
	owes := t.kind == AboutUnit && l.Units[t.index].mismatch(challenger) != nil
	return slices.ContainsFunc(l.DisputesAbout(t, attempt), func(c *Dispute) bool {
		return c.Challenger == challenger || l.Phase != Closing && !owes
	})
}

// TruthDisputed is Disputed of what was shown of a forced attempt, whatever segment of it.
func (l *Lease) TruthDisputed(challenger string, f *Forced) bool {
	for s := range f.Truth {
		if l.Disputed(challenger, TruthTarget(f.Index, s), f.Unit.Attempt) {
			return true
		}
	}
	return false
}

// Attempt returns the attempt of the work named by t that stands.
func (l *Lease) Attempt(t Target) int {
	if t.kind == AboutMerge {
		return l.Merges[t.index].Attempt
	}
	return l.Units[t.index].Attempt
}

// Ends returns the end roots of a round's units by shard, which its merge takes in; zero
// where there is no receipt.
func (l *Lease) Ends(round int) []canon.Hash {
	units := l.round(round)
	out := make([]canon.Hash, len(units))
	for s := range units {
		if r := units[s].Receipt; r != nil {
			out[s] = l.Order.Problem.End(r)
		}
	}
	return out
}
