package market

import errorsmod "cosmossdk.io/errors"

// The errors of the module. Codes are part of the protocol: never reuse one.
var (
	ErrOffer     = errorsmod.Register(Name, 2, "unusable offer")
	ErrNoOffer   = errorsmod.Register(Name, 3, "account has no offer")
	ErrOrder     = errorsmod.Register(Name, 4, "unusable order")
	ErrNoOrder   = errorsmod.Register(Name, 5, "the book has no such order")
	ErrPosted    = errorsmod.Register(Name, 6, "order is in the book already: give it another nonce")
	ErrConsumer  = errorsmod.Register(Name, 7, "order belongs to another account: its consumer must sign")
	ErrNotOpen   = errorsmod.Register(Name, 8, "order is not open any more")
	ErrEscrow    = errorsmod.Register(Name, 9, "escrow does not suffice")
	ErrNotLeased = errorsmod.Register(Name, 10, "order is not leased")
	ErrContact   = errorsmod.Register(Name, 11, "the contact's peer key has not signed that it speaks for the consumer")
)
