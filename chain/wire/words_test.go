package wire_test

import (
	"testing"

	"github.com/tally-network/tally/chain/wire"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{wire.NameOf(marketv1.STATUS_OPEN), "open"},
		{wire.NameOf(providerv1.ROLE_VALIDATOR), "validator"},
		{wire.NameOf(marketv1.Status(99)), "99"},
		{wire.NameOf(policyv1.STATUS_NO_QUORUM), "no_quorum"},
		{wire.Moment(1_500), "1970-01-01T00:00:01Z"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
