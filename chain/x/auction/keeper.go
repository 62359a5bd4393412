// Package auction sells the capacity of providers to batch orders, in clearings that the chain checks and carries out.
//
// Providers put lots of a tier on sale, each with the least price of a unit. Orders that ask for auctions demand units of a
// tier, all or none. When it is time a clearing opens with what is bid then, and nothing of that changes until it is over. Until
// it closes anybody may post certificates (core/auction), which are checked at once. Then what wins is sold, and who has lost
// is one clearing older. Who has sold binds a bond, and has some time to say that it takes the order on. With the last word the
// lease begins. Who is silent loses the bond, and the order waits for the next clearing.
//
// What wins follows from the bids and one measure. So the measure alone is kept, and each block makes the outcome anew.
//
// Rules for single units take sealed bids. Until the clearing closes, who takes part commits to a price and deposits something.
// Then all reveal. The chance in the rule follows from the beacon's value of a later block.
//
// Invariants: every open order that asks for auctions has one demand, and no other has; what is sold is taken off; a
// clearing is stored as long as it is under way; each sale has reserved its bonds of the stakes of its sellers. The module's
// account holds the deposits of sealed bids that are not revealed, and nothing else: prices are in the escrow of x/market.
//
// Call [NewKeeper] and [NewModule].
//
// Source: docs/spec/auction.md; Distribute.AI, §4.
package auction

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	errorsmod "cosmossdk.io/errors"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

// Name is the module's name.
const Name = "auction"

// ask is a key of the index of lots: the cheapest of a tier come first.
type ask = collections.Triple[string, uint64, sdk.AccAddress]

// bidKey is the key of sealed bids: the id of an order, empty for an ask, and who bids.
type bidKey = collections.Pair[[]byte, sdk.AccAddress]

// Keeper holds what is bid, and the clearing under way.
type Keeper struct {
	bank     Bank
	burner   Burner
	registry Registry
	leases   Leases
	beacon   Beacon

	rules      module.Rules[auctionv1.Params]
	capacities collections.Map[sdk.AccAddress, auctionv1.Capacity]
	asks       collections.KeySet[ask]
	ends       collections.KeySet[collections.Pair[int64, sdk.AccAddress]] // of capacities that end
	said       collections.Map[sdk.AccAddress, uint64]                     // how often a provider has said what it sells; no part of an export
	demands    collections.Map[uint64, auctionv1.Demand]                   // by the order's number

	clearing collections.Item[auctionv1.Clearing] // large: it is read where progress says so
	progress collections.Item[auctionv1.Progress]
	cleared  collections.Map[uint64, auctionv1.Cleared]
	next     collections.Sequence     // number of the next clearing
	after    collections.Item[int64]  // protocol time before which none begins
	cursor   collections.Item[uint64] // number of the order from which the next one takes demands
	seals    collections.Map[bidKey, auctionv1.Seal]

	due   collections.KeySet[collections.Pair[int64, uint64]]          // of sales, when they end
	sales collections.KeySet[collections.Pair[sdk.AccAddress, uint64]] // by who has sold, to the order of which number
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService, n Needs) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		bank: n.Bank, burner: n.Burner, registry: n.Registry, leases: n.Leases, beacon: n.Beacon,

		rules:      module.RulesOf(sb, 0, 1, codec.CollValue[auctionv1.Params](cdc), func(_, p auctionv1.Params) error { return CheckParams(p) }),
		capacities: collections.NewMap(sb, collections.NewPrefix(2), "capacities", sdk.AccAddressKey, codec.CollValue[auctionv1.Capacity](cdc)),
		asks: collections.NewKeySet(sb, collections.NewPrefix(3), "asks",
			collections.TripleKeyCodec(collections.StringKey, collections.Uint64Key, sdk.AccAddressKey)),
		ends:     collections.NewKeySet(sb, collections.NewPrefix(4), "capacity_ends", collections.PairKeyCodec(collections.Int64Key, sdk.AccAddressKey)),
		demands:  collections.NewMap(sb, collections.NewPrefix(5), "demands", collections.Uint64Key, codec.CollValue[auctionv1.Demand](cdc)),
		clearing: collections.NewItem(sb, collections.NewPrefix(6), "clearing", codec.CollValue[auctionv1.Clearing](cdc)),
		progress: collections.NewItem(sb, collections.NewPrefix(7), "progress", codec.CollValue[auctionv1.Progress](cdc)),
		cleared:  collections.NewMap(sb, collections.NewPrefix(8), "cleared", collections.Uint64Key, codec.CollValue[auctionv1.Cleared](cdc)),
		next:     collections.NewSequence(sb, collections.NewPrefix(9), "next_clearing"),
		after:    collections.NewItem(sb, collections.NewPrefix(10), "clearing_after", collections.Int64Value),
		cursor:   collections.NewItem(sb, collections.NewPrefix(11), "clearing_cursor", collections.Uint64Value),
		seals: collections.NewMap(sb, collections.NewPrefix(12), "seals", collections.PairKeyCodec(collections.BytesKey, sdk.AccAddressKey),
			codec.CollValue[auctionv1.Seal](cdc)),

		due:   collections.NewKeySet(sb, collections.NewPrefix(13), "sales_end", collections.PairKeyCodec(collections.Int64Key, collections.Uint64Key)),
		sales: collections.NewKeySet(sb, collections.NewPrefix(14), "sales", collections.PairKeyCodec(sdk.AccAddressKey, collections.Uint64Key)),
		said:  collections.NewMap(sb, collections.NewPrefix(15), "capacities_said", sdk.AccAddressKey, collections.Uint64Value),
	}
	module.Seal(sb)
	return k
}

// orNone makes of an entry that is not there one of nothing.
func orNone[T any](x T, err error) (T, error) {
	if errors.Is(err, collections.ErrNotFound) {
		var none T
		return none, nil
	}
	return x, err
}

// underWay returns how far the clearing is that is under way, if any is.
func (k *Keeper) underWay(ctx context.Context) (p auctionv1.Progress, under bool, err error) {
	p, err = orNone(k.progress.Get(ctx))
	return p, p.Number != 0, err
}

// mayChange returns an error if something is in the clearing under way.
func (k *Keeper) mayChange(ctx context.Context, what string, clearing uint64) error {
	p, under, err := k.underWay(ctx)
	if err != nil || !under || p.Number != clearing {
		return err
	}
	return errorsmod.Wrapf(ErrClearing, "%s is in clearing %d: try again once it is over, %s", what, p.Number, about(ctx, max(p.ClosesAt, p.RevealsUntil)))
}

// about says for people when a protocol time comes.
func about(ctx context.Context, at int64) string {
	left := at - module.Now(ctx)
	if left <= 0 {
		return "within seconds"
	}
	return fmt.Sprintf("in about %d s, at %s", (left+999)/1000, wire.Moment(at))
}

// MayLeave returns an error while an order is in the clearing under way, or its sellers are waited for.
func (k *Keeper) MayLeave(ctx context.Context, number uint64) error {
	d, err := orNone(k.demands.Get(ctx, number))
	if err != nil {
		return err
	}
	if d.Sale != nil {
		return errorsmod.Wrapf(ErrClearing, "clearing %d has sold capacity to the order: its lease begins once its sellers have taken it on; if they have not, try again %s", d.Sale.Clearing, about(ctx, d.Sale.Until))
	}
	return k.mayChange(ctx, "the order", d.Clearing)
}

// Leave removes the demand of an order that is no longer open. It returns how many sales to it failed because a seller was
// absent.
func (k *Keeper) Leave(ctx context.Context, number uint64) (absent uint32, err error) {
	d, err := orNone(k.demands.Get(ctx, number))
	if err != nil {
		return 0, err
	}
	if d.Sale != nil {
		sale, came, err := fulfilment{k}.part(ctx, &d)
		if err := errors.Join(err, fulfilment{k}.putBack(ctx, sale.Tier, came)); err != nil {
			return 0, err
		}
	}
	return d.Absent, k.demands.Remove(ctx, number)
}
