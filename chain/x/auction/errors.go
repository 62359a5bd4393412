package auction

import errorsmod "cosmossdk.io/errors"

// The errors of the module. Codes are part of the protocol: never reuse one.
var (
	ErrCapacity    = errorsmod.Register(Name, 2, "unusable capacity")
	ErrDemand      = errorsmod.Register(Name, 3, "unusable demand")
	ErrClearing    = errorsmod.Register(Name, 4, "not while the clearing is as it is")
	ErrCertificate = errorsmod.Register(Name, 5, "the certificate is not taken")
	ErrSeal        = errorsmod.Register(Name, 6, "unusable sealed bid")
	ErrSale        = errorsmod.Register(Name, 7, "nothing to take on")
)
