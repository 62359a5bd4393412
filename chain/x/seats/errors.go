package seats

import errorsmod "cosmossdk.io/errors"

// The errors of this module. Codes are part of the protocol: never reuse one.
var (
	ErrMember     = errorsmod.Register(Name, 2, "no such member")
	ErrStatus     = errorsmod.Register(Name, 3, "the status of the member does not allow it")
	ErrKey        = errorsmod.Register(Name, 4, "unusable consensus key")
	ErrBond       = errorsmod.Register(Name, 5, "unusable bond")
	ErrDelegation = errorsmod.Register(Name, 7, "the last delegation still stands")
	ErrDraw       = errorsmod.Register(Name, 6, "no draw takes this proof")
)
