// Package probe keeps the measurements of providers' speed that are under way.
//
// A provider opens a probe by MsgOpen. The value of a later block gives it a seed, and its time begins. x/work calls
// [Keeper.Settled] of each lease that settles. If its order is the probe of that seed, and the provider's own, the speed
// that it has shown goes to the registry.
//
// Call [NewKeeper] and [NewModule].
//
// Invariants: an account has one probe at most. Only probes without a seed wait. Each gets its seed from a block after the
// one in which it was opened. Nobody's order but a provider's own says how fast it is.
//
// Source: core/probe, docs/spec/market.md.
package probe

import (
	"context"
	"errors"
	"slices"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/probe"
	probev1 "github.com/tally-network/tally/gen/tally/probe/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Name is the module's name.
const Name = "probe"

// Registry knows providers and how fast they are.
type Registry interface {
	Get(ctx context.Context, account sdk.AccAddress) (providerv1.Peer, error)
	// Probed records the FLOP/s that a provider's probe has shown, in place of all that was measured before. By 0 it forgets that.
	Probed(ctx context.Context, account sdk.AccAddress, speed uint64) error
}

// Beacon gives what draws follow from, and says whether this block gave it.
type Beacon interface {
	Value(ctx context.Context) (value canon.Hash, fresh bool, err error)
}

// Keeper keeps probes.
type Keeper struct {
	probes   collections.Map[sdk.AccAddress, probev1.Probe]
	waiting  collections.KeySet[sdk.AccAddress]     // those without a seed
	standing collections.Map[sdk.AccAddress, int64] // until when the speed that an account has shown stands
	ends     collections.KeySet[collections.Pair[int64, sdk.AccAddress]]
	registry Registry
	beacon   Beacon
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService, registry Registry, beacon Beacon) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		registry: registry, beacon: beacon,
		probes:   collections.NewMap(sb, collections.NewPrefix(0), "probes", sdk.AccAddressKey, codec.CollValue[probev1.Probe](cdc)),
		waiting:  collections.NewKeySet(sb, collections.NewPrefix(1), "waiting", sdk.AccAddressKey),
		standing: collections.NewMap(sb, collections.NewPrefix(2), "standing", sdk.AccAddressKey, collections.Int64Value),
		ends:     collections.NewKeySet(sb, collections.NewPrefix(3), "ends", collections.PairKeyCodec(collections.Int64Key, sdk.AccAddressKey)),
	}
	module.Seal(sb)
	return k
}

// Waits reports whether a probe waits for the value of a block.
func (k *Keeper) Waits(ctx context.Context) (bool, error) {
	some, err := module.First(ctx, k.waiting, nil, 1)
	return len(some) > 0, err
}

// draw gives seeds to all probes that were opened before this block, if it has a value.
func (k *Keeper) draw(ctx context.Context) error {
	value, fresh, err := k.beacon.Value(ctx)
	if err != nil || !fresh {
		return err
	}
	var due []probev1.Probe // few: to open each took gas of a block since the last value
	err = k.waiting.Walk(ctx, nil, func(account sdk.AccAddress) (bool, error) {
		p, err := k.probes.Get(ctx, account)
		if err == nil && p.Opened < sdk.UnwrapSDKContext(ctx).BlockHeight() {
			due = append(due, p)
		}
		return false, err
	})
	for i := range due {
		if err == nil {
			err = k.begin(ctx, &due[i], value)
		}
	}
	return err
}

// begin gives a probe its seed.
func (k *Keeper) begin(ctx context.Context, p *probev1.Probe, value canon.Hash) error {
	account, err := address.Parse(p.Account)
	if err != nil {
		return err
	}
	seed := probe.Seed(value, p.Account)
	p.Seed, p.DrawnMs = seed[:], module.Now(ctx)
	return errors.Join(k.probes.Set(ctx, account, *p), k.waiting.Remove(ctx, account),
		module.Emit(ctx, &probev1.EventDrawn{Account: p.Account, Seed: p.Seed}))
}

// Settled tells of a lease that has settled. If its order was its consumer's probe, and at least half of its runs count,
// the probe is over. It then shows the consumer's speed, unless the lease barred the consumer.
func (k *Keeper) Settled(ctx context.Context, l *job.Lease) error {
	if !probe.IsProbe(&l.Order.Problem) {
		return nil
	}
	account, err := address.Parse(l.Order.Consumer)
	if err != nil {
		return err
	}
	p, err := k.probes.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) || err == nil && len(p.Seed) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	flops, last := probe.Computed(l, p.Account)
	if half := uint64(min(l.Order.Problem.Records, probe.MostRuns)) * probe.RunFLOPs / 2; flops == 0 || flops < half || !probe.ForSeed(&l.Order, canon.Hash(p.Seed)) {
		return nil
	}
	if slices.Contains(l.Barred, p.Account) { // who was convicted has no speed of what is left
		return k.probes.Remove(ctx, account)
	}
	took := uint64(max(last-p.DrawnMs, 0))
	e := &probev1.EventShown{Account: p.Account, Order: l.Order.ID().String(), Flops: flops, Ms: took, Speed: probe.Speed(flops, took)}
	return errors.Join(k.registry.Probed(ctx, account, e.Speed), k.probes.Remove(ctx, account), k.stand(ctx, account, module.Now(ctx)+probe.StandsMs), module.Emit(ctx, e))
}

// stand lets the speed of an account stand until a time, in place of one that it has shown before.
func (k *Keeper) stand(ctx context.Context, account sdk.AccAddress, until int64) error {
	err := k.end(ctx, account)
	return errors.Join(err, k.standing.Set(ctx, account, until), k.ends.Set(ctx, collections.Join(until, account)))
}

// end lets no speed of an account stand any more.
func (k *Keeper) end(ctx context.Context, account sdk.AccAddress) error {
	until, err := k.standing.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) {
		return nil
	}
	return errors.Join(err, k.standing.Remove(ctx, account), k.ends.Remove(ctx, collections.Join(until, account)))
}

// mostEnds bounds the speeds that a block forgets; others wait for the next.
const mostEnds = 64

// forget takes speeds back that have stood their time: a machine may have been sold, or was never there.
func (k *Keeper) forget(ctx context.Context) error {
	now := module.Now(ctx)
	due, err := module.First(ctx, k.ends, nil, mostEnds)
	for _, at := range due {
		if err == nil && at.K1() <= now {
			err = errors.Join(k.end(ctx, at.K2()), k.registry.Probed(ctx, at.K2(), 0))
		}
	}
	return err
}
