package wire

import (
	"fmt"

	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// LeastStake returns the largest minimum of some roles, in utally: one stake stands behind all of them.
func LeastStake(p *providerv1.Params, roles []providerv1.Role) (least uint64) {
	for _, r := range roles {
		least = max(least, map[providerv1.Role]uint64{
			providerv1.ROLE_PROVIDER: p.MinProviderStake, providerv1.ROLE_VALIDATOR: p.MinValidatorStake, providerv1.ROLE_CHALLENGER: p.MinChallengerStake,
		}[r])
	}
	return least
}

// Unable says what keeps new work from a peer at a protocol time in ms, and what its owner can do about it. It is empty if
// nothing does. That the owner is excluded, only the chain knows until the peer is jailed for it.
func Unable(p *providerv1.Peer, rules *providerv1.Params, now int64) string {
	least := LeastStake(rules, p.Roles)
	switch {
	case p.JailedUntil == Forever:
		return "a fraud was proven of it or its owner: it gets nothing new any more. tally tx provider withdraw takes out what is left of its stake"
	case p.Stake < least:
		return fmt.Sprintf("its stake of %d utally is below the least of %d: tally tx provider deposit adds to it", p.Stake, least)
	case p.JailedUntil > now:
		return "it did not answer, or passed what was wrong, and gets nothing new before " + Moment(p.JailedUntil)
	case p.Unanswered > 0:
		return "it owes an answer in a dispute: a running tally provide gives it"
	}
	return ""
}
