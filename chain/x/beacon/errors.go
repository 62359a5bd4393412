package beacon

import errorsmod "cosmossdk.io/errors"

// The errors of the module. Codes are part of the protocol: never reuse one.
var (
	ErrProof     = errorsmod.Register(Name, 2, "not the proof of this block's proposer over the last value and this height")
	ErrKey       = errorsmod.Register(Name, 3, "unusable public key")
	ErrValidator = errorsmod.Register(Name, 4, "account is no validator: only validators prove values")
)
