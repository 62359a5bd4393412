package dispute

import (
	"context"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/core/dispute"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// lock locks a bond of an account: free stake first and then its balance, as far as
// they suffice, else the balance alone.
func (k *Keeper) lock(ctx context.Context, account string, bond uint64) (disputev1.Purse, error) {
	a, err := address.Parse(account)
	if err != nil {
		return 0, err
	}
	can, err := k.stakes.Affords(ctx, a, bond)
	if err != nil {
		return 0, err
	}
	if can {
		return disputev1.PURSE_STAKE, k.stakes.Reserve(ctx, a, bond)
	}
	if err := k.bank.SendCoinsFromAccountToModule(ctx, a, Name, coin.Of(bond)); err != nil {
		return 0, errorsmod.Wrapf(err, "a bond of %d utally, for which the free stake of %s and what its balance can spare do not suffice", bond, account)
	}
	return disputev1.PURSE_BALANCE, nil
}

// bonded is a bond behind a side of a game.
type bonded struct {
	account string
	side    dispute.Side
	purse   disputev1.Purse
}

// bonds returns the bonds behind a game.
func bonds(p disputev1.Parties) (out []bonded) {
	for _, b := range []bonded{
		{p.Challenger, dispute.Challenger, p.ChallengerPurse},
		{p.ChallengerSubstitute, dispute.Challenger, p.ChallengerSubstitutePurse},
		{p.DefenderSubstitute, dispute.Defender, p.DefenderSubstitutePurse},
	} {
		if b.account != "" {
			out = append(out, b)
		}
	}
	return out
}

// locked returns what the module's account holds for a game, in utally.
func locked(p disputev1.Parties) (sum uint64) {
	for _, b := range bonds(p) {
		if b.purse == disputev1.PURSE_BALANCE {
			sum += p.Bond
		}
	}
	return sum
}

// giveBack returns a bond.
func (k *Keeper) giveBack(ctx context.Context, b bonded, bond uint64) error {
	account, err := address.Parse(b.account)
	if err != nil {
		return err
	}
	switch b.purse {
	case disputev1.PURSE_STAKE:
		return k.stakes.Release(ctx, account, bond)
	case disputev1.PURSE_VERDICT:
		return nil // it is the lease's
	}
	return k.bank.SendCoinsFromModuleToAccount(ctx, Name, account, coin.Of(bond))
}

// forfeit takes a bond: so much for somebody, the rest for the insurance fund.
func (k *Keeper) forfeit(ctx context.Context, b bonded, bond uint64, to string, amount uint64) error {
	account, err := address.Parse(b.account)
	if err != nil {
		return err
	}
	switch b.purse {
	case disputev1.PURSE_STAKE:
		var won []providerv1.Payout
		if amount > 0 {
			won = []providerv1.Payout{{Account: to, Amount: amount}}
		}
		return k.stakes.Slash(ctx, account, bond, 0, won)
	case disputev1.PURSE_VERDICT:
		return nil // the lease has taken it
	}
	if amount > 0 {
		winner, err := address.Parse(to)
		if err != nil {
			return err
		}
		if err := k.bank.SendCoinsFromModuleToAccount(ctx, Name, winner, coin.Of(amount)); err != nil {
			return errorsmod.Wrapf(err, "pay a bond to %s", to)
		}
	}
	return k.bank.SendCoinsFromModuleToModule(ctx, Name, provider.Insurance, coin.Of(bond-amount))
}

// release pays the bonds of a game that is over: those of the losing side as
// dispute.Forfeit says, all others back.
func (k *Keeper) release(ctx context.Context, p disputev1.Parties, loser dispute.Side) error {
	for _, b := range bonds(p) {
		var err error
		if b.side == loser {
			amount, _ := dispute.Forfeit(p.Bond)
			err = k.forfeit(ctx, b, p.Bond, player(p, dispute.Defender+dispute.Challenger-loser), amount)
		} else {
			err = k.giveBack(ctx, b, p.Bond)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Reserved returns, by account, the stake that bonds of games reserve, in utally.
func (k *Keeper) Reserved(ctx context.Context) (map[string]uint64, error) {
	sum := map[string]uint64{}
	err := k.queue.Walk(ctx, nil, func(at place) (bool, error) {
		p, err := k.parties.Get(ctx, at.K3())
		if err != nil {
			return true, err
		}
		for _, b := range bonds(p) {
			if b.purse == disputev1.PURSE_STAKE {
				sum[b.account] += p.Bond
			}
		}
		return false, nil
	})
	return sum, err
}
