package consume

import (
	"context"
	"fmt"

	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/role"
)

// Earlier returns the consumer's newest order that asks for the same as o and how it
// stands, or nil. One that ended without all of its result counts as none. The same order
// gives the same bits: whoever posts it again pays for them twice.
func Earlier(ctx context.Context, k *role.Kit, o *job.Order) (canon.Hash, *Progress, error) {
	all, err := Orders(ctx, k, o.Consumer, maxFound)
	if err != nil {
		return canon.Hash{}, nil, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		booked, err := market.OrderFromProto(&all[i].Order)
		if err != nil {
			return canon.Hash{}, nil, fmt.Errorf("order %s: %w", all[i].Id, err)
		}
		if s := all[i].Posting.Status; s == marketv1.STATUS_EXPIRED || s == marketv1.STATUS_CANCELLED || !sameWish(&booked, o) {
			continue
		}
		id := booked.ID()
		p, err := Look(ctx, k, id)
		if err != nil {
			return id, nil, err
		}
		if p.Lease == nil && p.Ended() || p.Lease != nil && p.Lease.Reason != "" {
			continue
		}
		return id, &p, nil
	}
	return canon.Hash{}, nil, nil
}

// sameWish reports whether two orders of a consumer ask for the same on the same terms.
func sameWish(a, b *job.Order) bool {
	other := *b
	other.Nonce, other.Contact = a.Nonce, a.Contact
	return a.ID() == other.ID()
}
