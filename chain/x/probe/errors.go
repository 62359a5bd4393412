package probe

import errorsmod "cosmossdk.io/errors"

// ErrProvider says that an account is registered for other roles alone.
var ErrProvider = errorsmod.Register(Name, 2, "no provider")
