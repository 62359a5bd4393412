package reserve

import errorsmod "cosmossdk.io/errors"

// The errors of this module. Codes are part of the protocol: never reuse one.
var ErrNothing = errorsmod.Register(Name, 2, "there is nothing to claim")
