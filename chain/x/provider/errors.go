package provider

import errorsmod "cosmossdk.io/errors"

// The errors of the module. Codes are part of the protocol: never reuse one.
var (
	ErrNotRegistered = errorsmod.Register(Name, 2, "account is no peer: register it first")
	ErrRegistered    = errorsmod.Register(Name, 3, "account is a peer already: update its listing, or use another account")
	ErrKeyTaken      = errorsmod.Register(Name, 4, "peer key belongs to another account: generate a new one")
	ErrKey           = errorsmod.Register(Name, 5, "unusable public key")
	ErrSignature     = errorsmod.Register(Name, 6, "signature is not the peer key's over this chain id and account: sign again")
	ErrListing       = errorsmod.Register(Name, 7, "unusable listing")
	ErrMinStake      = errorsmod.Register(Name, 8, "stake is below the minimum of the role: deposit more")
	ErrAmount        = errorsmod.Register(Name, 9, "amount is zero: name a positive one")
	ErrFreeStake     = errorsmod.Register(Name, 10, "free stake does not suffice: wait until work closes, or deposit more")
	ErrReserved      = errorsmod.Register(Name, 11, "reserved stake does not suffice")
	ErrOpenWork      = errorsmod.Register(Name, 12, "work is open: give up roles, or change the validator, when it is done")
	ErrExcluded      = errorsmod.Register(Name, 14, "a fraud was proven: neither this account nor what it owns gets work any more")
	ErrPayout        = errorsmod.Register(Name, 13, "payouts exceed the slashed stake")
)
