package market

import (
	"context"
	"errors"
	"fmt"
	"math"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"cosmossdk.io/collections"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

// DefaultGenesis is an empty book.
func DefaultGenesis() *marketv1.GenesisState { return &marketv1.GenesisState{Next: 1, NextTrade: 1} }

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *marketv1.GenesisState) error {
	seen := map[string]bool{}
	for _, o := range g.Offers {
		if _, err := address.Parse(o.Validator); err != nil {
			return fmt.Errorf("market genesis: offer: %w", err)
		}
		if err := checkOffer(o); err != nil {
			return fmt.Errorf("market genesis: offer of %s: %w", o.Validator, err)
		}
		if seen[o.Validator] {
			return fmt.Errorf("market genesis: two offers of %s", o.Validator)
		}
		seen[o.Validator] = true
	}
	var total uint64
	for i, x := range g.Orders {
		id, o, err := readOrder(x)
		if err != nil {
			return fmt.Errorf("market genesis: order %d: %w", i, err)
		}
		p := x.Posting
		if seen[id.String()] || i > 0 && p.Number <= g.Orders[i-1].Posting.Number || p.Number >= g.Next {
			return fmt.Errorf("market genesis: order %s: want each once, by number, below %d", id, g.Next)
		}
		seen[id.String()] = true
		if err := checkPosting(&o, p); err != nil {
			return fmt.Errorf("market genesis: order %s: %w", id, err)
		}
		if p.Escrow > coin.MaxSupply-total {
			return fmt.Errorf("market genesis: more than %d utally in escrow", coin.MaxSupply)
		}
		total += p.Escrow
	}
	if err := checkTrades(g.Trades, max(g.NextTrade, 1)); err != nil {
		return fmt.Errorf("market genesis: %w", err)
	}
	return nil
}

func readOrder(x marketv1.GenesisOrder) (id canon.Hash, o job.Order, err error) {
	if err = canon.Unmarshal(x.Order, &o); err != nil {
		return id, o, err
	}
	if err = o.Check(); err != nil {
		return id, o, err
	}
	_, err = address.Parse(o.Consumer)
	return o.ID(), o, err
}

// checkPosting: an open order has its maximum price and its deposit in escrow, an ended
// one nothing.
func checkPosting(o *job.Order, p marketv1.Posting) error {
	most := o.Conditions.MaxPrice
	if p.Auction != o.Conditions.Auction {
		return fmt.Errorf("its posting says auction: %v, the order %v", p.Auction, o.Conditions.Auction)
	}
	if max(most, p.Deposit) > coin.MaxSupply {
		return fmt.Errorf("a maximum price of %d utally and a deposit of %d: more than there is", most, p.Deposit)
	}
	switch p.Status {
	case marketv1.STATUS_OPEN:
		if p.Escrow != most+p.Deposit {
			return fmt.Errorf("open with %d of %d utally in escrow", p.Escrow, most+p.Deposit)
		}
	case marketv1.STATUS_LEASED:
		if p.Escrow > p.Price+p.Deposit || p.Price > most {
			return fmt.Errorf("leased with %d utally in escrow of a price of %d and a deposit of %d", p.Escrow, p.Price, p.Deposit)
		}
	case marketv1.STATUS_SETTLED, marketv1.STATUS_CANCELLED, marketv1.STATUS_EXPIRED:
		if p.Escrow != 0 {
			return fmt.Errorf("%s with %d utally in escrow", p.Status, p.Escrow)
		}
	default:
		return fmt.Errorf("status %d does not exist", p.Status)
	}
	return nil
}

// InitGenesis stores a state. The bank's genesis holds the escrow already.
func (k *Keeper) InitGenesis(ctx context.Context, g *marketv1.GenesisState) error {
	for _, o := range g.Offers {
		account, err := address.Parse(o.Validator)
		if err != nil {
			return err
		}
		if err := k.setOffer(ctx, account, o); err != nil {
			return err
		}
	}
	for _, x := range g.Orders {
		id, o, err := readOrder(x)
		if err != nil {
			return err
		}
		if err := k.enter(ctx, id, &o, x.Posting); err != nil {
			return err
		}
	}
	if err := k.next.Set(ctx, g.Next); err != nil {
		return err
	}
	if err := k.trades.set(ctx, g.Trades, max(g.NextTrade, 1)); err != nil {
		return err
	}
	return k.Invariant(ctx)
}

// ExportGenesis is the inverse of InitGenesis. A new chain begins at height 1,
// so what was posted counts as posted before.
func (k *Keeper) ExportGenesis(ctx context.Context) (*marketv1.GenesisState, error) {
	g := &marketv1.GenesisState{}
	err := k.offers.Walk(ctx, nil, func(_ sdk.AccAddress, o marketv1.Offer) (bool, error) {
		o.Height = 0
		g.Offers = append(g.Offers, o)
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	err = k.numbers.Walk(ctx, nil, func(_ uint64, id []byte) (bool, error) {
		order, err := k.orders.Get(ctx, id)
		if err != nil {
			return true, err
		}
		p, err := k.postings.Get(ctx, id)
		p.Height = 0
		g.Orders = append(g.Orders, marketv1.GenesisOrder{Order: order, Posting: p})
		return false, err
	})
	if err != nil {
		return nil, err
	}
	if g.Trades, err = k.trades.all(ctx); err != nil {
		return nil, err
	}
	if g.NextTrade, err = k.trades.next.Peek(ctx); err != nil {
		return nil, err
	}
	g.Next, err = k.next.Peek(ctx)
	return g, err
}

// Invariant: the escrows add up to the module's balance, each is what its
// order's status calls for, and the indexes name each order exactly once.
func (k *Keeper) Invariant(ctx context.Context) error {
	var total uint64
	entries, refunded := 0, 0
	err := k.numbers.Walk(ctx, nil, func(n uint64, b []byte) (bool, error) {
		id, err := canon.HashOf(b)
		if err != nil {
			return true, err
		}
		o, p, err := k.Order(ctx, id)
		if err != nil {
			return true, err
		}
		if err := checkPosting(&o, p); err != nil {
			return true, fmt.Errorf("order %s: %w", id, err)
		}
		total += p.Escrow
		if leaseless(p.Status) {
			refunded++
		}
		in, err := k.byStatus.Has(ctx, collections.Join(int32(p.Status), n))
		if err == nil && (!in || p.Number != n || o.ID() != id) {
			err = fmt.Errorf("order %s is %s, number %d, and indexed otherwise", id, p.Status, p.Number)
		}
		entries++
		return err != nil, err
	})
	if err != nil {
		return err
	}
	if held := k.bank.GetBalance(ctx, authtypes.NewModuleAddress(Name), coin.Denom).Amount.Uint64(); held != total {
		return fmt.Errorf("escrows add up to %d utally, but the account holds %d", total, held)
	}
	all, err := module.First(ctx, k.byStatus, nil, math.MaxInt)
	if err == nil && len(all) != entries {
		err = fmt.Errorf("%d orders, but %d are indexed", entries, len(all))
	}
	ended, also := module.First(ctx, k.refunded, nil, math.MaxInt)
	if also == nil && len(ended) != refunded {
		also = fmt.Errorf("%d orders ended without a lease, %d of them will be forgotten", refunded, len(ended))
	}
	err = errors.Join(err, also)
	return errors.Join(err, k.checkTurns(ctx), k.checkEnds(ctx), k.trades.check(ctx))
}

// checkTurns: every open order has one turn or waits for auctions, and nothing else has a turn.
func (k *Keeper) checkTurns(ctx context.Context) error {
	open, err := module.First(ctx, k.byStatus, opens(), math.MaxInt)
	if err != nil {
		return err
	}
	waiting := 0
	for _, n := range open {
		switch auctioned, err := k.auctioned(ctx, n.K2()); {
		case err != nil:
			return err
		case auctioned:
			waiting++
			continue
		}
		t, err := k.turns.get(ctx, n.K2())
		if err != nil {
			return fmt.Errorf("turn of open order %d: %w", n.K2(), err)
		}
		if in, err := k.turns.queue.Has(ctx, collections.Join3(t.Tried, t.At, n.K2())); err != nil || !in {
			return errors.Join(err, fmt.Errorf("open order %d is tried at %d, and indexed otherwise", n.K2(), t.At))
		}
	}
	queue, err := module.First(ctx, k.turns.queue, nil, math.MaxInt)
	if err == nil && len(queue)+waiting != len(open) {
		err = fmt.Errorf("%d orders are open, %d wait for a turn and %d for auctions", len(open), len(queue), waiting)
	}
	return err
}
