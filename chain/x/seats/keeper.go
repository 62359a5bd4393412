// Package seats says who runs consensus: members with a bond, each with as many votes as its computing power gives
// it seats.
//
// An account joins with a consensus key. Its own power counts for it, and that of whoever delegates to it. In each
// epoch a draw gives seats, and the set of CometBFT moves towards it.
//
// Call [NewKeeper], give it the beacon by [Keeper.Follow], then [NewModule]. x/power tells [Keeper.Moved] of every change.
// [Keeper.Account] names the account of a CometBFT validator, and [Keeper.Turns] the next proposers. x/reserve pays by
// [Keeper.Seat] and [Keeper.Share].
//
// Invariants: the set is never empty, and a step changes at most a quarter of its votes. What counts in an epoch was
// there two epochs before. The module's account holds bonds, what is unbonding, and rewards that nobody has claimed
// yet, and nothing else. What a block does is bounded, and an idle block writes nothing unless a draw is under way.
//
// Source: docs/spec/seats.md.
package seats

import (
	"context"
	"errors"
	"fmt"

	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cosmos/gogoproto/proto"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	errorsmod "cosmossdk.io/errors"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/money"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// Name is the module's name, and that of the account that holds bonds and unclaimed rewards.
const Name = "seats"

// Keeper holds the members, their power, and the set.
type Keeper struct {
	rules   module.Rules[seatsv1.Params]
	members collections.Map[sdk.AccAddress, seatsv1.Member]
	byKey   collections.Map[[]byte, []byte] // consensus address → account
	weights
	rotation
	drawing   collections.Item[seatsv1.Draw]
	drawn     collections.Item[uint64] // the last epoch that had a draw
	presence  collections.Item[seatsv1.Presence]
	totals    collections.Item[seatsv1.Totals]
	unbonding module.Unbonding
	shares    shares

	Needs
	beacon    Beacon
	insurance string // account that slashes go to
}

// NewKeeper returns a keeper over the given store. Slashes go to an account of that name.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService, n Needs, insurance string) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		Needs: n, insurance: insurance,
		rules: module.RulesOf(sb, 0, 1, codec.CollValue[seatsv1.Params](cdc), mayReplace),
		members: collections.NewMap(sb, collections.NewPrefix(2), "members", sdk.AccAddressKey,
			codec.CollValue[seatsv1.Member](cdc)),
		byKey: collections.NewMap(sb, collections.NewPrefix(3), "by_key", collections.BytesKey, collections.BytesValue),
		weights: weights{
			delegations: collections.NewMap(sb, collections.NewPrefix(4), "delegations", sdk.AccAddressKey, codec.CollValue[seatsv1.Delegation](cdc)),
			sums:        collections.NewMap(sb, collections.NewPrefix(5), "sums", sdk.AccAddressKey, codec.CollValue[seatsv1.Sum](cdc)),
		},
		rotation: rotation{collections.NewMap(sb, collections.NewPrefix(6), "sets", collections.Int64Key, codec.CollValue[seatsv1.Set](cdc))},
		drawing:  collections.NewItem(sb, collections.NewPrefix(7), "drawing", codec.CollValue[seatsv1.Draw](cdc)),
		drawn:    collections.NewItem(sb, collections.NewPrefix(8), "drawn", collections.Uint64Value),
		presence: collections.NewItem(sb, collections.NewPrefix(9), "presence", codec.CollValue[seatsv1.Presence](cdc)),
		totals:   collections.NewItem(sb, collections.NewPrefix(10), "totals", codec.CollValue[seatsv1.Totals](cdc)),
		unbonding: module.UnbondingOf(sb, 11, 12, n.Bank, Name, module.UnbondingEvents{
			Paid: func(account string, amount uint64) proto.Message {
				return &seatsv1.EventUnbonded{Account: account, Amount: amount}
			},
			Stuck: func(account, reason string) proto.Message {
				return &seatsv1.EventStuck{Account: account, Reason: reason}
			},
		}),
		shares: shares{
			incomes: collections.NewMap(sb, collections.NewPrefix(13), "incomes", sdk.AccAddressKey, codec.CollValue[seatsv1.CumulativeReward](cdc)),
			of:      collections.NewMap(sb, collections.NewPrefix(14), "shares", sdk.AccAddressKey, codec.CollValue[seatsv1.Rewards](cdc)),
		},
	}
	k.unbonding.May = func(ctx context.Context, account sdk.AccAddress) error { return mayWithdraw(ctx, k, account) }
	module.Seal(sb)
	return k
}

// Follow names the beacon, which needs this keeper itself.
func (k *Keeper) Follow(b Beacon) { k.beacon = b }

// Get returns the member of an account, or ErrMember.
func (k *Keeper) Get(ctx context.Context, account sdk.AccAddress) (seatsv1.Member, error) {
	m, err := k.members.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) {
		return m, errorsmod.Wrapf(ErrMember, "%s takes no part in consensus: tally tx seats join enters it", account)
	}
	return m, err
}

// Has reports whether an account is a member that may have seats, or still has some.
func (k *Keeper) Has(ctx context.Context, account sdk.AccAddress) (bool, error) {
	m, err := k.members.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) {
		return false, nil
	}
	return takesPart(&m) || m.Votes > 0, err
}

// takesPart reports whether a member may have seats.
func takesPart(m *seatsv1.Member) bool {
	return m.Status == seatsv1.STATUS_ACTIVE || m.Status == seatsv1.STATUS_JAILED
}

// Account returns the account of the validator with a consensus address.
func (k *Keeper) Account(ctx context.Context, consensus []byte) (sdk.AccAddress, error) {
	account, err := k.byKey.Get(ctx, consensus)
	if err != nil {
		return nil, fmt.Errorf("%X is not the address of a validator: %w", consensus, err)
	}
	return account, nil
}

// parts is how many parts a set's votes are counted in: sets that follow one another may have votes of another scale.
const parts = 1 << 20

// Seat returns the account of the validator with a consensus address, and its part of the newest set's votes, in 2⁻²⁰.
func (k *Keeper) Seat(ctx context.Context, consensus []byte) (sdk.AccAddress, uint64, error) {
	account, err := k.Account(ctx, consensus)
	if err != nil {
		return nil, 0, err
	}
	set, err := k.current(ctx)
	if err != nil {
		return nil, 0, err
	}
	own, all := uint64(0), uint64(0)
	for _, s := range set.Seats {
		if all += s.Votes; s.Member == account.String() {
			own = s.Votes
		}
	}
	part, err := money.ScaleDown(own, parts, max(all, 1))
	return account, part, err
}

// epoch returns that of the block.
func (k *Keeper) epoch(ctx context.Context) (uint64, error) {
	c, err := k.beacon.Calendar(ctx)
	return c.At(sdk.UnwrapSDKContext(ctx).BlockHeight()), err
}

// put stores a member.
func (k *Keeper) put(ctx context.Context, m seatsv1.Member) error {
	account, err := address.Parse(m.Account)
	if err != nil {
		return err
	}
	return k.members.Set(ctx, account, m)
}

// count changes the totals.
func (k *Keeper) count(ctx context.Context, change func(*seatsv1.Totals)) error {
	t, err := k.totals.Get(ctx)
	if err != nil {
		return err
	}
	change(&t)
	return k.totals.Set(ctx, t)
}

// consensusAddress returns the address that CometBFT derives from a key.
func consensusAddress(key []byte) []byte { return cmted25519.PubKey(key).Address() }

// tell emits how a member stands.
func tell(ctx context.Context, m *seatsv1.Member) error {
	return module.Emit(ctx, &seatsv1.EventMember{Account: m.Account, Status: m.Status, Bond: m.Bond, FromEpoch: m.FromEpoch})
}
