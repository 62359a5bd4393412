package states

import (
	"slices"

	"github.com/tally-network/tally/core/job"
)

// Policy says what of a unit's checkpoints stays here once the unit is accepted.
// Custodians must be able to answer for all of them until the lease ends; others may
// save room, for what is gone can be had from custodians or computed again.
type Policy string

// The policies.
const (
	KeepAll   Policy = "keep"      // every checkpoint
	Thin      Policy = "thin"      // every fourth, and the last
	Derive    Policy = "derive"    // the last
	fragments Policy = "fragments" // none: of custodians that keep fragments of them
)

// Policies lists them for people.
var Policies = []Policy{KeepAll, Thin, Derive}

// keeps reports whether checkpoint i, of those from 0 to last, stays.
func (p Policy) keeps(i, last int) bool {
	switch p {
	case Thin:
		return i%4 == 0 || i == last
	case Derive:
		return i == 0 || i == last
	case fragments:
		return i == 0
	}
	return true
}

// policy returns what of a unit's checkpoints stays here. All do until the unit is
// accepted. Where they are kept in fragments, a custodian keeps none once it has nothing
// left to audit and has made its own fragment, or can make none any more.
func (h *Holder) policy(l *job.Lease, unit int) Policy {
	u := &l.Units[unit]
	if l.Order.Fragments().Cuts() {
		me := h.Me
		auditing := slices.ContainsFunc(u.Audits, func(a job.Audit) bool { return a.Auditor == me && !a.Done && !a.Forfeit })
		custodian := slices.ContainsFunc(u.Attested, func(a job.Attestation) bool { return a.Custodian == me && !a.Failed })
		done := u.Keeps(me) || custodian && u.Status == job.Accepted && !l.MayAttest(unit, me)
		if done && !auditing {
			return fragments
		}
		if done || custodian {
			return KeepAll
		}
	}
	if u.Status == job.Accepted {
		return h.Accepted
	}
	return KeepAll
}
