package wire

import (
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Statement is what a peer key signs (ed25519) to be bound to an account and a
// role on one chain; without a role it is the contact of the account's orders.
func Statement(chainID string, account sdk.AccAddress, role providerv1.Role) []byte {
	h := canon.Sum(canon.DomainPeer, canon.Encode(func(e *canon.Encoder) {
		e.String(chainID)
		e.Blob(account)
		e.Uint(uint64(role))
	}))
	return h[:]
}
