package drilling

import errorsmod "cosmossdk.io/errors"

// The errors of the module. Codes are part of the protocol: never reuse one.
var (
	ErrProject   = errorsmod.Register(Name, 2, "unusable project")
	ErrNoProject = errorsmod.Register(Name, 3, "no such project: it was never registered, or has ended and its tasks are forgotten")
	ErrStatus    = errorsmod.Register(Name, 4, "the project does not stand so")
	ErrTask      = errorsmod.Register(Name, 5, "the project does not take the order as a task")
	ErrPartner   = errorsmod.Register(Name, 6, "project belongs to another account: its partner must sign, or the authority")
)
