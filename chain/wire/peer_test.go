package wire_test

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/chain/wire"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

func TestUnableNamesTheGravestReason(t *testing.T) {
	const least, now = 50, 1_000
	rules := &providerv1.Params{MinProviderStake: least, MinValidatorStake: 2 * least}
	validator := []providerv1.Role{providerv1.ROLE_PROVIDER, providerv1.ROLE_VALIDATOR}
	for _, c := range []struct {
		peer providerv1.Peer
		want string // in the reason; empty: there is none
	}{
		{providerv1.Peer{Stake: least, JailedUntil: now}, ""},
		{providerv1.Peer{Stake: least - 1}, "tally tx provider deposit"},
		{providerv1.Peer{Stake: least, JailedUntil: now + 1}, "before 1970-01-01T00:00:01Z"},
		{providerv1.Peer{Stake: 2*least - 1, Roles: validator}, "below the least of 100"},
		{providerv1.Peer{Stake: least, Unanswered: 1}, "owes an answer"},
		{providerv1.Peer{Stake: least - 1, JailedUntil: wire.Forever}, "a fraud was proven"}, // a deposit would not help
	} {
		if c.peer.Roles == nil {
			c.peer.Roles = validator[:1]
		}
		why := wire.Unable(&c.peer, rules, now)
		if (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("%+v: %q, want %q", c.peer, why, c.want)
		}
	}
}
