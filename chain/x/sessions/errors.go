package sessions

import errorsmod "cosmossdk.io/errors"

// The errors of the module. Codes are part of the protocol: never reuse one.
var (
	ErrTerms     = errorsmod.Register(Name, 2, "unusable terms")
	ErrNoSession = errorsmod.Register(Name, 3, "no such session: it was never opened, or is over and forgotten")
	ErrStatement = errorsmod.Register(Name, 4, "unusable statement")
	ErrEvent     = errorsmod.Register(Name, 5, "that cannot happen to the session")
	ErrStake     = errorsmod.Register(Name, 6, "free stake of the provider does not suffice")
	ErrProvider  = errorsmod.Register(Name, 7, "no provider that may get work")
	ErrListing   = errorsmod.Register(Name, 8, "unusable listings")
)
