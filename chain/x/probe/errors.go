package probe

import errorsmod "cosmossdk.io/errors"

// Errors of the module.
var ErrProvider = errorsmod.Register(Name, 2, "no provider")
