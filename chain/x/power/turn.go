package power

import (
	"context"
	"fmt"

	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmttypes "github.com/cometbft/cometbft/types"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
)

// maxTurns bounds what finding a turn costs: turns that are played, times validators.
const maxTurns = 1 << 20

// Account returns the account of the validator with a consensus address.
func (k *Keeper) Account(ctx context.Context, consensus []byte) (sdk.AccAddress, error) {
	account, _, err := k.Seat(ctx, consensus)
	return account, err
}

// Seat returns the account of the validator with a consensus address, and its votes.
func (k *Keeper) Seat(ctx context.Context, consensus []byte) (sdk.AccAddress, uint64, error) {
	v, err := k.validators.Get(ctx, consensus)
	if err != nil {
		return nil, 0, fmt.Errorf("%X is not the address of a validator: %w", consensus, err)
	}
	account, err := address.Parse(v.Account)
	return account, uint64(v.Power), err // above 0, by genesis
}

// Has reports whether an account is that of a validator.
func (k *Keeper) Has(ctx context.Context, account sdk.AccAddress) (found bool, err error) {
	err = k.validators.Walk(ctx, nil, func(_ []byte, v powerv1.Validator) (bool, error) {
		found = v.Account == account.String()
		return found, nil
	})
	return found, err
}

// Turns returns who proposes in n turns from one on, counted from 0. Each block is a turn after the
// one before, and so is each round of a block: CometBFT's own rotation of the set says so. It
// repeats itself after as many turns as there are votes, divided by what all powers have in
// common. There is none if those before are too many to play.
func (k *Keeper) Turns(ctx context.Context, from int64, n int) (out []sdk.AccAddress, err error) {
	var all []*cmttypes.Validator
	accounts := map[string]string{}
	var total, common int64
	err = k.validators.Walk(ctx, nil, func(at []byte, v powerv1.Validator) (bool, error) {
		all = append(all, cmttypes.NewValidator(cmted25519.PubKey(v.ConsensusKey), v.Power))
		accounts[string(at)] = v.Account
		total, common = total+v.Power, gcd(common, v.Power)
		return false, nil
	})
	if err != nil || len(all) == 0 || from < 0 {
		return nil, err
	}
	if from %= total / common; from > maxTurns/int64(len(all)) {
		return nil, nil
	}
	set := cmttypes.NewValidatorSet(all)
	for step := int32(from); len(out) < n; step = 1 {
		if step > 0 {
			set.IncrementProposerPriority(step)
		}
		account, err := address.Parse(accounts[string(set.GetProposer().Address)])
		if err != nil {
			return nil, err
		}
		out = append(out, account)
	}
	return out, nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
