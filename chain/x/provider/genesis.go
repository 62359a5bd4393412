package provider

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/match"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

const tera = 1_000_000_000_000

// DefaultGenesis is an empty registry with a minimum stake of 100 tally for
// providers and challengers, and of 1000 for validators, held for a day once it is withdrawn. Tiers are DCI's.
func DefaultGenesis() *providerv1.GenesisState {
	return &providerv1.GenesisState{Params: providerv1.Params{
		MinProviderStake:   100_000_000,
		MinValidatorStake:  1_000_000_000,
		MinChallengerStake: 100_000_000,
		UnbondingMs:        24 * 3600 * 1000,
		LeadFactor:         10,
		Tiers:              wire.TiersToProto(match.Tiers{{Label: "A", Speed: 20 * tera}, {Label: "B", Speed: 5 * tera}, {Label: "C"}}),
	}}
}

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *providerv1.GenesisState) error {
	if err := errors.Join(CheckParams(g.Params), module.CheckAuthority(g.Authority)); err != nil {
		return fmt.Errorf("provider genesis: %w", err)
	}
	roles, keys, total := map[string][]providerv1.Role{}, map[string]bool{}, uint64(0)
	for _, p := range g.Peers {
		if err := CheckPeer(p); err != nil {
			return fmt.Errorf("provider genesis: peer %s: %w", p.Account, err)
		}
		if roles[p.Account] != nil || keys[string(p.PeerKey)] {
			return fmt.Errorf("provider genesis: peer %s: account and peer_key must be unique", p.Account)
		}
		if p.Reserved > p.Stake || p.Stake > coin.MaxSupply-total {
			return fmt.Errorf("provider genesis: peer %s: stake %d with %d reserved", p.Account, p.Stake, p.Reserved)
		}
		total += p.Stake
		roles[p.Account], keys[string(p.PeerKey)] = p.Roles, true
	}
	held := map[string]bool{}
	for _, u := range g.Unbonding {
		_, err := address.Parse(u.Account)
		if at := fmt.Sprint(u.Account, u.Until); err == nil && (held[at] || u.Until < 0 || u.Amount == 0 || u.Amount > coin.MaxSupply-total) {
			err = fmt.Errorf("%d utally until %d", u.Amount, u.Until)
		} else {
			held[at] = true
		}
		if err != nil {
			return fmt.Errorf("provider genesis: withdrawal of %s: %w", u.Account, err)
		}
		total += u.Amount
	}
	for _, owner := range g.Excluded {
		if _, err := address.Parse(owner); err != nil {
			return fmt.Errorf("provider genesis: excluded owner: %w", err)
		}
	}
	for _, p := range g.Peers {
		if v := p.Listing.Validator; v != "" && roles[v] == nil {
			return fmt.Errorf("provider genesis: peer %s works under %s, which is no peer", p.Account, v)
		}
	}
	return nil
}

// InitGenesis stores a state. The bank's genesis holds the stakes already.
func (k *Keeper) InitGenesis(ctx context.Context, g *providerv1.GenesisState) error {
	if err := k.rules.Init(ctx, g.Params, g.Authority); err != nil {
		return err
	}
	for _, p := range g.Peers {
		account, err := address.Parse(p.Account)
		if err != nil {
			return err
		}
		if err := k.enter(ctx, account, p); err != nil {
			return err
		}
	}
	for _, u := range g.Unbonding {
		account, err := address.Parse(u.Account)
		if err == nil {
			err = k.Unbonding.Hold(ctx, account, u.Until, u.Amount)
		}
		if err != nil {
			return err
		}
	}
	for _, owner := range g.Excluded {
		account, err := address.Parse(owner)
		if err == nil {
			err = k.excluded.Set(ctx, account)
		}
		if err != nil {
			return err
		}
	}
	return k.Invariant(ctx)
}

// ExportGenesis is the inverse of InitGenesis, in account order.
func (k *Keeper) ExportGenesis(ctx context.Context) (*providerv1.GenesisState, error) {
	params, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	g := &providerv1.GenesisState{Params: params}
	if g.Authority, err = k.rules.Authority(ctx); err != nil {
		return nil, err
	}
	err = k.peers.Walk(ctx, nil, func(_ sdk.AccAddress, p providerv1.Peer) (bool, error) {
		g.Peers = append(g.Peers, p)
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	err = k.excluded.Walk(ctx, nil, func(owner sdk.AccAddress) (bool, error) {
		g.Excluded = append(g.Excluded, owner.String())
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	held, err := k.Unbonding.All(ctx)
	for _, x := range held {
		g.Unbonding = append(g.Unbonding, providerv1.Unbonding{Account: x.Key.K2().String(), Until: x.Key.K1(), Amount: x.Value})
	}
	return g, err
}

// Invariant: the stakes, what is unbonding and what is forfeit add up to the module's balance, no reserved part
// exceeds its stake, and the indexes name each peer exactly once.
func (k *Keeper) Invariant(ctx context.Context) error {
	t, err := k.totals(ctx)
	if err != nil {
		return err
	}
	owed, err := k.owed(ctx)
	if err != nil {
		return err
	}
	unbonding, err := k.Unbonding.Check(ctx)
	if err != nil {
		return err
	}
	if held := k.balance(ctx, Name); held != t.Stake+owed+unbonding {
		return fmt.Errorf("stakes add up to %d utally, %d are forfeit, %d are unbonding, and the account holds %d", t.Stake, owed, unbonding, held)
	}
	entries := 0
	err = k.peers.Walk(ctx, nil, func(account sdk.AccAddress, p providerv1.Peer) (bool, error) {
		if p.Reserved > p.Stake {
			return true, fmt.Errorf("peer %s has %d utally reserved of a stake of %d", p.Account, p.Reserved, p.Stake)
		}
		own, err := k.ByPeerKey(ctx, p.PeerKey)
		if err == nil && own.Account != p.Account {
			err = fmt.Errorf("peer key of %s belongs to %s", p.Account, own.Account)
		}
		for _, g := range groups(p) {
			in, e := k.members.Has(ctx, collections.Join(g, account))
			if e == nil && !in {
				e = fmt.Errorf("peer %s is not in group %s", p.Account, g)
			}
			err = errors.Join(err, e)
			entries++
		}
		return err != nil, err
	})
	if err != nil {
		return err
	}
	err = k.members.Walk(ctx, nil, func(m collections.Pair[string, sdk.AccAddress]) (bool, error) {
		if entries--; entries < 0 {
			return true, fmt.Errorf("group %s has a member too many", m.K1())
		}
		return false, nil
	})
	return errors.Join(err, k.checkCandidates(ctx))
}
