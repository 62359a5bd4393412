package dispute

import errorsmod "cosmossdk.io/errors"

// The errors of the module. Codes are part of the protocol: never reuse one.
var (
	ErrNoDispute  = errorsmod.Register(Name, 2, "there is no such dispute")
	ErrOpening    = errorsmod.Register(Name, 3, "unusable opening")
	ErrMove       = errorsmod.Register(Name, 4, "move does not fit the game")
	ErrTurn       = errorsmod.Register(Name, 5, "it is the other side's turn")
	ErrLate       = errorsmod.Register(Name, 6, "the clock has run out")
	ErrOver       = errorsmod.Register(Name, 7, "the dispute is over")
	ErrStranger   = errorsmod.Register(Name, 8, "signer is neither defender nor challenger")
	ErrSubstitute = errorsmod.Register(Name, 9, "this seat cannot be taken")
	ErrWait       = errorsmod.Register(Name, 10, "the dispute waits until others about the same defender's work are over")
)
