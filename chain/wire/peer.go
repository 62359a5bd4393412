package wire

import (
	"fmt"

	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Unable says what keeps new work from a peer at a protocol time in ms, and what its owner can do about it; nothing if nothing
// that the peer tells does. least is the stake in utally that its roles take.
func Unable(p *providerv1.Peer, least uint64, now int64) string {
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
