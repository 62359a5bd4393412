package provide

import (
	"errors"
	"testing"

	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/p2p"
)

// Whoever reached a provider had it fetch and decode leases. Nothing is asked of the chain
// now for a stranger: this provider could not, for it has no connection.
func TestStrangersOffersAreRefusedUnread(t *testing.T) {
	p := &provider{env: role.New(role.Parts{Chain: &client.Client{}})}
	if _, err := p.offered(t.Context(), "stranger", role.UnitOffer{}); !errors.Is(err, p2p.ErrRefused) {
		t.Fatalf("a stranger's offer: %v", err)
	}
}
