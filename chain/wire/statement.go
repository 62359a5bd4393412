package wire

import (
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
)

// Statement is what a peer key signs (ed25519) to be bound to an account on one chain: as its peer, or
// as the contact of its orders.
func Statement(chainID string, account sdk.AccAddress) []byte {
	h := canon.Sum(canon.DomainPeer, canon.Encode(func(e *canon.Encoder) {
		e.String(chainID)
		e.Blob(account)
	}))
	return h[:]
}

// ProofOfPossession is what a consensus key signs (ed25519) to be the key of an account on one chain.
func ProofOfPossession(chainID string, account sdk.AccAddress) []byte {
	h := canon.Sum(canon.DomainPossession, canon.Encode(func(e *canon.Encoder) {
		e.String(chainID)
		e.Blob(account)
	}))
	return h[:]
}

// SeatInput is what a member of consensus evaluates its VRF on, for the draw of an epoch that has a value.
func SeatInput(value []byte, epoch uint64) []byte {
	return canon.Encode(func(e *canon.Encoder) {
		e.String("seats")
		e.Blob(value)
		e.Uint(epoch)
	})
}
