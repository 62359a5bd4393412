// Package provider is the registry of peers and the stake ledger.
//
// A peer is an account with roles (provider, validator, challenger), an ed25519
// key that it uses on the network, and a stake behind all that it does. The stake
// lies in the module's account; a part of it may be reserved for open work by
// other modules. Only the rest can be withdrawn, and it returns after the time of unbonding. Slashed stake goes to the
// recipients that the caller names. What remains is forfeit: the end of the block moves it to the
// insurance account in one send, for a block may slash hundreds.
//
// What follows from an offence it carries out by [Keeper.Jail], [Keeper.Exclude], [Keeper.Falter] and [Keeper.Mend].
//
// Invariants: nobody leaves an excluded owner. Stakes, what is unbonding and what is forfeit add up to the balance of the module's account; no
// reserved part exceeds its stake; a peer key belongs to one account.
//
// Call [NewKeeper] and [NewModule]. Other modules call [Keeper.Reserve], [Keeper.Release] and
// [Keeper.Slash].
//
// Sources: docs/adr/0006-slashes-are-not-burnt.md for who receives a slash; 0048-sentences.md for who gets no new work.
package provider

import (
	"context"
	"errors"
	"slices"

	"github.com/cosmos/gogoproto/proto"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	errorsmod "cosmossdk.io/errors"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/match"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

const (
	// Name is the module's name and that of the account that holds the stakes.
	Name = "provider"
	// Insurance is the account that receives the rest of slashed stakes.
	Insurance = job.Insurance
)

// Keeper holds the registry and the stake ledger.
type Keeper struct {
	bank  Bank
	rules module.Rules[providerv1.Params]
	peers collections.Map[sdk.AccAddress, providerv1.Peer]
	keys  collections.Map[[]byte, []byte] // peer key → account
	// members lists accounts by group: every peer in the group of each of its roles,
	// and a provider in that of its validator.
	members collections.KeySet[collections.Pair[string, sdk.AccAddress]]
	candidates
	fund
	Unbonding module.Unbonding
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService, bank Bank) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		bank:  bank,
		rules: module.RulesOf(sb, 0, 4, codec.CollValue[providerv1.Params](cdc), mayReplace),
		peers: collections.NewMap(sb, collections.NewPrefix(1), "peers",
			sdk.AccAddressKey, codec.CollValue[providerv1.Peer](cdc)),
		keys: collections.NewMap(sb, collections.NewPrefix(2), "keys",
			collections.BytesKey, collections.BytesValue),
		members: collections.NewKeySet(sb, collections.NewPrefix(3), "members",
			collections.PairKeyCodec(collections.StringKey, sdk.AccAddressKey)),
		fund: fund{bank, collections.NewItem(sb, collections.NewPrefix(8), "forfeit", collections.Uint64Value)},
		Unbonding: module.UnbondingOf(sb, 9, 10, bank, Name, module.UnbondingEvents{
			Paid: func(account string, amount uint64) proto.Message {
				return &providerv1.EventUnbonded{Account: account, Amount: amount}
			},
			Stuck: func(account, reason string) proto.Message {
				return &providerv1.EventStuck{Account: account, Reason: reason}
			},
		}),
		candidates: candidates{
			all: collections.NewMap(sb, collections.NewPrefix(5), "candidates",
				collections.PairKeyCodec(collections.StringKey, sdk.AccAddressKey), codec.CollValue[providerv1.Candidate](cdc)),
			improved: collections.NewKeySet(sb, collections.NewPrefix(6), "improved", sdk.AccAddressKey),
			judges: collections.NewKeySet(sb, collections.NewPrefix(7), "judges",
				collections.PairKeyCodec(collections.Uint64Key, sdk.AccAddressKey)),
			excluded: collections.NewKeySet(sb, collections.NewPrefix(11), "excluded", sdk.AccAddressKey),
		},
	}
	module.Seal(sb)
	return k
}

// Params returns the rules of the registry.
func (k *Keeper) Params(ctx context.Context) (providerv1.Params, error) { return k.rules.Get(ctx) }

// Get returns the peer of an account, or ErrNotRegistered.
func (k *Keeper) Get(ctx context.Context, account sdk.AccAddress) (providerv1.Peer, error) {
	p, err := k.peers.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) {
		return p, errorsmod.Wrap(ErrNotRegistered, account.String())
	}
	return p, err
}

// ByPeerKey returns the peer that a network identity belongs to, or
// ErrNotRegistered.
func (k *Keeper) ByPeerKey(ctx context.Context, key []byte) (providerv1.Peer, error) {
	account, err := k.keys.Get(ctx, key)
	if errors.Is(err, collections.ErrNotFound) {
		return providerv1.Peer{}, errorsmod.Wrapf(ErrNotRegistered, "peer key %X", key)
	}
	if err != nil {
		return providerv1.Peer{}, err
	}
	return k.Get(ctx, account)
}

// WithRole returns the peers of a role, in account order.
func (k *Keeper) WithRole(ctx context.Context, role providerv1.Role) ([]providerv1.Peer, error) {
	return k.group(ctx, role.String())
}

func (k *Keeper) group(ctx context.Context, name string) ([]providerv1.Peer, error) {
	var peers []providerv1.Peer
	err := k.members.Walk(ctx, collections.NewPrefixedPairRange[string, sdk.AccAddress](name),
		func(m collections.Pair[string, sdk.AccAddress]) (bool, error) {
			p, err := k.Get(ctx, m.K2())
			peers = append(peers, p)
			return false, err
		})
	return peers, err
}

// Active reports whether a peer may get new work: its stake is at least the
// minimum of each of its roles, it is not jailed at the block's time, nor is its owner excluded, and it owes no answer
// in a dispute.
func (k *Keeper) Active(ctx context.Context, p providerv1.Peer) (bool, error) {
	params, err := k.Params(ctx)
	if err != nil {
		return false, err
	}
	gone, err := k.isExcluded(ctx, p.Owner)
	return hasStake(params, p) && unhindered(ctx, p.JailedUntil, p.Unanswered) && !gone, err
}

// Slashable reports whether an account is a peer with the least stake of its roles, or with
// bonds: of it something can be taken.
func (k *Keeper) Slashable(ctx context.Context, account sdk.AccAddress) bool {
	p, err := k.Get(ctx, account)
	if err != nil {
		return false
	}
	params, err := k.Params(ctx)
	return err == nil && (p.Reserved > 0 || hasStake(params, p))
}

// Register enters a peer, whose stake must still be deposited. The caller has
// checked the signature of the peer key.
func (k *Keeper) Register(ctx context.Context, p providerv1.Peer) error {
	account, err := address.Parse(p.Account)
	if err != nil {
		return err
	}
	switch taken, err := k.peers.Has(ctx, account); {
	case err != nil:
		return err
	case taken:
		return errorsmod.Wrap(ErrRegistered, p.Account)
	}
	switch taken, err := k.keys.Has(ctx, p.PeerKey); {
	case err != nil:
		return err
	case taken:
		return errorsmod.Wrapf(ErrKeyTaken, "%X", p.PeerKey)
	}
	if err := k.checkValidator(ctx, p); err != nil {
		return err
	}
	if err := k.mayWork(ctx, p.Account); err != nil {
		return err
	}
	return k.enter(ctx, account, p)
}

// enter stores a peer that is not in the registry, with its indexes.
func (k *Keeper) enter(ctx context.Context, account sdk.AccAddress, p providerv1.Peer) error {
	if err := k.keys.Set(ctx, p.PeerKey, account); err != nil {
		return err
	}
	for _, g := range groups(p) {
		if err := k.members.Set(ctx, collections.Join(g, account)); err != nil {
			return err
		}
	}
	return k.storePeer(ctx, account, providerv1.Peer{}, p)
}

// groups names the groups that a peer is a member of.
func groups(p providerv1.Peer) (out []string) {
	for _, r := range p.Roles {
		out = append(out, r.String())
	}
	if is(p, providerv1.ROLE_PROVIDER) {
		out = append(out, p.Listing.Validator)
	}
	return out
}

// is reports whether a peer has a role.
func is(p providerv1.Peer, r providerv1.Role) bool { return slices.Contains(p.Roles, r) }

// Update replaces a peer's listing and roles. While work is open a peer gives up no role, and a
// provider stays with its validator.
func (k *Keeper) Update(ctx context.Context, account sdk.AccAddress, l providerv1.Listing, roles []providerv1.Role) error {
	p, err := k.Get(ctx, account)
	if err != nil {
		return err
	}
	if err := CheckListing(roles, l); err != nil {
		return err
	}
	before := p
	p.Listing, p.Roles = l, roles
	left, entered := without(groups(before), groups(p)), without(groups(p), groups(before))
	if len(left) > 0 && p.Reserved > 0 {
		return errorsmod.Wrapf(ErrOpenWork, "%d utally are reserved", p.Reserved)
	}
	params, err := k.Params(ctx)
	if err != nil {
		return err
	}
	if least := wire.LeastStake(&params, roles); least > wire.LeastStake(&params, before.Roles) && p.Stake < least {
		return errorsmod.Wrapf(ErrMinStake, "%d utally of stake, %d needed for these roles: deposit more first", p.Stake, least)
	}
	if err := k.enlist(ctx, account, p, left, entered); err != nil {
		return err
	}
	if err := k.storePeer(ctx, account, before, p); err != nil {
		return err
	}
	return module.Emit(ctx, &providerv1.EventUpdated{Account: p.Account, Listing: l, Roles: roles})
}

// enlist takes a peer out of some groups and enters it in others.
func (k *Keeper) enlist(ctx context.Context, account sdk.AccAddress, p providerv1.Peer, left, entered []string) error {
	if slices.Contains(entered, p.Listing.Validator) {
		if err := k.checkValidator(ctx, p); err != nil {
			return err
		}
	}
	var err error
	for _, g := range left {
		err = errors.Join(err, k.members.Remove(ctx, collections.Join(g, account)))
	}
	for _, g := range entered {
		err = errors.Join(err, k.members.Set(ctx, collections.Join(g, account)))
	}
	return err
}

// without returns those groups that are not among others.
func without(groups, others []string) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return slices.Contains(others, g) })
}

// DeclareOwner stores who owns a peer: itself, or another account. Leases that have begun keep the
// owner that they began with. Nobody leaves an owner that is excluded.
func (k *Keeper) DeclareOwner(ctx context.Context, account, owner sdk.AccAddress) error {
	had, err := k.Get(ctx, account)
	if err != nil {
		return err
	}
	for _, of := range []string{had.Owner, owner.String()} {
		if err := k.mayWork(ctx, of); err != nil {
			return err
		}
	}
	name := owner.String()
	if owner.Equals(account) {
		name = ""
	}
	changed, err := edit(ctx, k, account, func(p *providerv1.Peer) bool {
		had := p.Owner
		p.Owner = name
		return had != name
	})
	if err != nil || !changed {
		return err
	}
	return module.Emit(ctx, &providerv1.EventOwner{Account: account.String(), Owner: owner.String()})
}

// checkValidator: the validator that a peer names, if any, is registered. It may be the peer itself.
func (k *Keeper) checkValidator(ctx context.Context, p providerv1.Peer) error {
	under := p.Listing.Validator
	if under == "" || under == p.Account && is(p, providerv1.ROLE_VALIDATOR) {
		return nil
	}
	account, err := address.Parse(under)
	if err != nil {
		return errorsmod.Wrap(ErrListing, err.Error())
	}
	v, err := k.Get(ctx, account)
	if err != nil {
		return err
	}
	if !is(v, providerv1.ROLE_VALIDATOR) || under == p.Account {
		return errorsmod.Wrapf(ErrListing, "%s is no validator: name one to work under", under)
	}
	return nil
}

// Vouch adds valid units to a peer's record.
func (k *Keeper) Vouch(ctx context.Context, account sdk.AccAddress, units uint64) error {
	_, err := edit(ctx, k, account, func(p *providerv1.Peer) bool {
		p.Record += units
		return true
	})
	return err
}

// Time adds to a peer's pace: work that was verified, in FLOP, then the time in which it had that work, in ms.
func (k *Keeper) Time(ctx context.Context, account sdk.AccAddress, flops, ms uint64) error {
	_, err := edit(ctx, k, account, func(p *providerv1.Peer) bool {
		pace := match.Pace{Work: p.Pace.Work, Time: p.Pace.TimeMs}
		pace.AddWork(flops)
		pace.AddTime(ms)
		p.Pace.Work, p.Pace.TimeMs = pace.Work, pace.Time
		return true
	})
	return err
}

// Probed records the FLOP/s that a peer's probe has shown, in place of all that was measured before. By 0 it forgets what the probe has
// shown, and keeps what the peer has worked since.
func (k *Keeper) Probed(ctx context.Context, account sdk.AccAddress, speed uint64) error {
	_, err := edit(ctx, k, account, func(p *providerv1.Peer) bool {
		if speed > 0 {
			p.Pace = providerv1.Pace{}
		}
		p.Pace.Probed = speed
		return true
	})
	return err
}

// Discredit makes a peer's record and its pace begin anew.
func (k *Keeper) Discredit(ctx context.Context, account sdk.AccAddress) error {
	_, err := edit(ctx, k, account, func(p *providerv1.Peer) bool {
		had := p.Record > 0 || p.Pace != providerv1.Pace{}
		p.Record, p.Pace = 0, providerv1.Pace{}
		return had
	})
	return err
}

// Suspend keeps new work from a peer that has missed an answer in a dispute,
// until Resume.
func (k *Keeper) Suspend(ctx context.Context, account sdk.AccAddress) error {
	_, err := edit(ctx, k, account, func(p *providerv1.Peer) bool {
		p.Unanswered++
		return true
	})
	return err
}

// Resume takes one suspension back: the peer has answered, or the dispute is over.
func (k *Keeper) Resume(ctx context.Context, account sdk.AccAddress) error {
	_, err := edit(ctx, k, account, func(p *providerv1.Peer) bool {
		had := p.Unanswered
		p.Unanswered -= min(had, 1)
		return had > 0
	})
	return err
}

// edit changes a peer, and stores it if that has changed something.
func edit(ctx context.Context, k *Keeper, account sdk.AccAddress, do func(*providerv1.Peer) (changed bool)) (changed bool, err error) {
	p, err := k.Get(ctx, account)
	if err != nil {
		return false, err
	}
	before := p
	if !do(&p) {
		return false, nil
	}
	return true, k.storePeer(ctx, account, before, p)
}

func hasStake(params providerv1.Params, p providerv1.Peer) bool {
	return p.Stake >= wire.LeastStake(&params, p.Roles)
}
