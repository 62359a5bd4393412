package market

import (
	"context"
	"errors"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/book"
	"github.com/tally-network/tally/core/canon"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

// turn says when an open order is tried next. It is tried earlier when an offer or a cluster has improved: what else
// changes the answer is the passing of time, and the rules.
type turn struct {
	Tried bool   // with every offer, at least once
	At    int64  // protocol time in ms
	Delay int64  // ms after which it was to be tried, the last time
	From  string // the account with which its first look at all offers began; empty if it has not
}

// Code walks the fields.
func (t *turn) Code(w *canon.Codec) {
	w.Bool(&t.Tried)
	w.I64(&t.At)
	w.I64(&t.Delay)
	w.String(&t.From, maxAccount)
}

// maxAccount bounds the bytes of an account.
const maxAccount = 64

// turns are the open orders, by when they are tried next: those that wait for their first
// try apart from the others, which do not delay them.
type turns struct {
	of    collections.Map[uint64, []byte]
	queue collections.KeySet[collections.Triple[bool, int64, uint64]] // tried, at, number
}

func (t turns) get(ctx context.Context, number uint64) (out turn, err error) {
	b, err := t.of.Get(ctx, number)
	if err != nil {
		return out, err
	}
	return out, canon.Unmarshal(b, &out)
}

// set enters an order, or changes its turn.
func (t turns) set(ctx context.Context, number uint64, next turn) error {
	if has, err := t.of.Has(ctx, number); err != nil {
		return err
	} else if has {
		if err := t.remove(ctx, number); err != nil {
			return err
		}
	}
	b, err := canon.Encoded(&next)
	if err != nil {
		return err
	}
	if err := t.of.Set(ctx, number, b); err != nil {
		return err
	}
	return t.queue.Set(ctx, collections.Join3(next.Tried, next.At, number))
}

func (t turns) remove(ctx context.Context, number uint64) error {
	was, err := t.get(ctx, number)
	if err != nil {
		return err
	}
	if err := t.queue.Remove(ctx, collections.Join3(was.Tried, was.At, number)); err != nil {
		return err
	}
	return t.of.Remove(ctx, number)
}

// failed lets an order that no offer met wait for its next turn. A block that looked at a part
// of the offers, from one account on until before another, leaves it in its place until all
// have been looked at.
func (t turns) failed(ctx context.Context, number uint64, seen window) error {
	x, err := t.get(ctx, number)
	if err != nil {
		return err
	}
	switch {
	case seen.whole || x.From != "" && seen.has(x.From):
		x.Delay = book.Wait(x.Delay)
		x.Tried, x.At, x.From = true, module.Now(ctx)+x.Delay, ""
	case x.From == "":
		x.From = string(seen.from)
	default:
		return nil
	}
	return t.set(ctx, number, x)
}

// window is the part of the offers that a block looks at, in the order of accounts, the first
// after the last.
type window struct {
	from, until sdk.AccAddress
	whole       bool
}

// has reports whether an account lies in the window.
func (w window) has(account string) bool {
	from, until := string(w.from), string(w.until)
	if from < until {
		return from <= account && account < until
	}
	return from <= account || account < until
}

// due returns the orders that a block tries: those that wait for their first try and those that
// are tried again, each the longest due first, by turns. A block may have done enough before it has
// tried them all, so blocks begin with one and the other.
func (m matcher) due(ctx context.Context) (out []canon.Hash, err error) {
	lists := [2][]canon.Hash{}
	for i, tried := range []bool{false, true} {
		within, looked := collections.NewPrefixedTripleRange[bool, int64, uint64](tried), 0
		err := m.turns.queue.Walk(ctx, within, func(at collections.Triple[bool, int64, uint64]) (bool, error) {
			if looked++; looked > maxLooks || at.K2() > module.Now(ctx) {
				return true, nil
			}
			id, ready, err := m.ready(ctx, at.K3())
			if ready {
				lists[i] = append(lists[i], id)
			}
			return len(lists[i]) == book.MaxTries, err
		})
		if err != nil {
			return nil, err
		}
	}
	for i := sdk.UnwrapSDKContext(ctx).BlockHeight() % 2; len(out) < book.MaxTries && len(lists[0])+len(lists[1]) > 0; i = 1 - i {
		if l := lists[i]; len(l) > 0 {
			out, lists[i] = append(out, l[0]), l[1:]
		}
	}
	return out, nil
}

// ready reports whether an open order can be matched now: its time has not run out.
func (m matcher) ready(ctx context.Context, number uint64) (id canon.Hash, ok bool, err error) {
	if id, err = m.byNumber(ctx, number); err != nil {
		return id, false, err
	}
	p, err := m.postings.Get(ctx, id[:])
	return id, err == nil && p.ExpiresAt > module.Now(ctx), err
}

// waiting returns some of the open orders that have been tried: all of them, or those whose turn it
// is by a number that moves with the height.
func (m matcher) waiting(ctx context.Context, most int) (out []canon.Hash, err error) {
	first, err := module.First(ctx, m.byStatus, opens(), 1)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	last, err := module.First(ctx, m.byStatus, opens().Descending(), 1)
	if err != nil {
		return nil, err
	}
	low, span := first[0].K2(), last[0].K2()-first[0].K2()+1
	from := low
	if span > uint64(most) {
		from += uint64(sdk.UnwrapSDKContext(ctx).BlockHeight()) * uint64(most) % span
	}
	late, err := module.First(ctx, m.byStatus, opens().StartInclusive(from), most)
	if err != nil {
		return nil, err
	}
	early, err := module.First(ctx, m.byStatus, opens().EndExclusive(from), most-len(late))
	if err != nil {
		return nil, err
	}
	for _, n := range append(early, late...) {
		t, err := m.turns.get(ctx, n.K2())
		if errors.Is(err, collections.ErrNotFound) { // it waits for an auction
			continue
		}
		if err != nil {
			return nil, err
		}
		id, ready, err := m.ready(ctx, n.K2())
		if err != nil {
			return nil, err
		}
		if ready && t.Tried && t.At-t.Delay != module.Now(ctx) { // it was not tried in this block
			out = append(out, id)
		}
	}
	return out, nil
}

// opens is the range of the open orders.
func opens() *collections.PairRange[int32, uint64] {
	return collections.NewPrefixedPairRange[int32, uint64](int32(marketv1.STATUS_OPEN))
}
