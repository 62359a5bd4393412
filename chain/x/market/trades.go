package market

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"cosmossdk.io/collections"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

// MaxTrades is how many of the last trades are kept, in some 200 bytes each. Prices of a day are seen in
// them where there are twenty an hour.
const MaxTrades = 512

// trades are the last orders that met offers, in a ring.
type trades struct {
	of   collections.Map[uint64, marketv1.Trade]
	next collections.Sequence
}

// Record enters a trade: what an order was leased for, to whom, with how many providers, and whether it was one's own.
func (k *Keeper) Record(ctx context.Context, o *job.Order, lead string, providers int, price uint64, own bool) error {
	t := newTrade(o, lead, providers, price)
	t.Own = own
	return k.trades.add(ctx, t)
}

func newTrade(o *job.Order, lead string, providers int, price uint64) marketv1.Trade {
	p := &o.Problem
	units := uint64(p.Units())
	t := marketv1.Trade{
		Order: o.ID().String(), Kind: p.Kind, Price: price, Flops: times(p.UnitFLOPs(), units), Steps: units * uint64(p.Steps),
		Bytes: times(p.StepBytes*uint64(p.Steps), units), Validator: lead, Providers: uint32(providers), Copies: uint32(o.Conditions.Copies()),
	}
	t.Records = times(t.Steps, uint64(p.Batch))
	if f, ok := p.File("data"); ok && p.Records > 0 {
		t.RecordBytes = f.Size / uint64(p.Records)
	}
	return t
}

// times returns a · b, or the largest number if it is more.
func times(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi != 0 {
		return math.MaxUint64
	}
	return lo
}

// add enters a trade, and forgets the one that is no more among the last.
func (t trades) add(ctx context.Context, x marketv1.Trade) (err error) {
	if x.Number, err = t.next.Next(ctx); err != nil {
		return err
	}
	x.At = module.Now(ctx)
	if x.Number > MaxTrades {
		if err := t.of.Remove(ctx, x.Number-MaxTrades); err != nil {
			return err
		}
	}
	return t.of.Set(ctx, x.Number, x)
}

// checkTrades checks the trades of a genesis: the last ones, without a gap.
func checkTrades(all []marketv1.Trade, next uint64) error {
	if len(all) > MaxTrades || next == 0 || uint64(len(all)) != min(next-1, MaxTrades) {
		return fmt.Errorf("%d trades before number %d: want the last %d", len(all), next, MaxTrades)
	}
	for i, t := range all {
		if t.Number != next-uint64(len(all)-i) || i > 0 && t.At < all[i-1].At {
			return fmt.Errorf("trade %d, number %d at %d: want all by number and time", i, t.Number, t.At)
		}
		if _, err := canon.ParseHash(t.Order); err != nil {
			return fmt.Errorf("trade %d: %w", t.Number, err)
		}
		if _, err := address.Parse(t.Validator); err != nil {
			return fmt.Errorf("trade %d: %w", t.Number, err)
		}
	}
	return nil
}

func (t trades) all(ctx context.Context) (out []marketv1.Trade, err error) {
	err = t.of.Walk(ctx, nil, func(n uint64, x marketv1.Trade) (bool, error) {
		if n != x.Number {
			return true, fmt.Errorf("trade %d is stored as %d", x.Number, n)
		}
		out = append(out, x)
		return false, nil
	})
	return out, err
}

// check: the trades are the last ones, without a gap.
func (t trades) check(ctx context.Context) error {
	all, err := t.all(ctx)
	if err != nil {
		return err
	}
	next, err := t.next.Peek(ctx)
	return errors.Join(err, checkTrades(all, next))
}

// set enters the trades of a genesis.
func (t trades) set(ctx context.Context, all []marketv1.Trade, next uint64) error {
	for _, x := range all {
		if err := t.of.Set(ctx, x.Number, x); err != nil {
			return err
		}
	}
	return t.next.Set(ctx, next)
}
