package work

import errorsmod "cosmossdk.io/errors"

// The errors of the module. Codes are part of the protocol: never reuse one; 8 was.
var (
	ErrNoLease   = errorsmod.Register(Name, 2, "there is no such lease")
	ErrRefused   = errorsmod.Register(Name, 3, "the lease does not allow it")
	ErrSigner    = errorsmod.Register(Name, 4, "another account must sign")
	ErrMalformed = errorsmod.Register(Name, 5, "unusable message")
	ErrProof     = errorsmod.Register(Name, 6, "vrf proof does not hold")
	ErrPruned    = errorsmod.Register(Name, 9, "the order was settled, and its lease is pruned")
	ErrInactive  = errorsmod.Register(Name, 7, "peer gets no new work: it is jailed or excluded, owes an answer in a dispute, or its stake is below the minimum")
)
