package policy

import errorsmod "cosmossdk.io/errors"

// The errors of this module. Codes are part of the protocol: never reuse one.
var (
	ErrProposal = errorsmod.Register(Name, 2, "a proposal that cannot be voted on")
	ErrMessage  = errorsmod.Register(Name, 3, "a message that no vote can execute")
	ErrVote     = errorsmod.Register(Name, 4, "a vote that does not count")
	ErrDeposit  = errorsmod.Register(Name, 5, "the deposit is too small")
	ErrFull     = errorsmod.Register(Name, 6, "as many proposals are open as may be")
	ErrNotFound = errorsmod.Register(Name, 7, "no such proposal")
)
