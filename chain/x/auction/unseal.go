package auction

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

// commitReveal is what blocks do with sealed bids.
type commitReveal struct{ *Keeper }

// open opens a clearing with sealed bids, if it may come to a trade. Who seals one takes part.
func (k commitReveal) open(ctx context.Context, c *auctionv1.Clearing) error {
	if may, err := k.mayTrade(ctx, c); err != nil || !may {
		return err
	}
	var err error
	if c.Number, err = k.next.Next(ctx); err != nil {
		return err
	}
	p := auctionv1.Progress{Number: c.Number, ClosesAt: c.ClosesAt, RevealsUntil: c.ClosesAt + c.Params.RevealMs}
	return errors.Join(k.clearing.Set(ctx, *c), k.progress.Set(ctx, p), module.Emit(ctx, &auctionv1.EventClearing{Number: c.Number, ClosesAt: c.ClosesAt}))
}

// mayTrade reports whether some tier has the orders and the lots without which the rule sells nothing: nobody is to lock a deposit in
// vain. Where there are more than it looks at, it may.
func (k commitReveal) mayTrade(ctx context.Context, c *auctionv1.Clearing) (bool, error) {
	rules, err := wire.ClearingRules(&c.Params)
	if err != nil {
		return false, err
	}
	ends := c.ClosesAt + c.Params.RevealMs + wire.WaitAfter(&c.Params)
	var orders, lots [auction.Kinds]int
	looked, most := 0, int(c.Params.MaxDemands)
	if err := k.demands.Walk(ctx, nil, func(_ uint64, d auctionv1.Demand) (bool, error) {
		if known := d.Tier == "" || slices.Contains(c.Tiers, d.Tier); known && !cannotBid(ctx, &d) && d.Units <= c.Params.LotUnits && d.ExpiresAt > ends {
			orders[wire.KindOf(c, d.Tier)]++
		}
		looked++
		return looked == most, nil
	}); err != nil || looked == most {
		return true, err
	}
	looked, most = 0, int(c.Params.MaxLots)
	if err := k.capacities.Walk(ctx, nil, func(_ sdk.AccAddress, x auctionv1.Capacity) (bool, error) {
		for _, l := range x.Lots {
			if kind := slices.Index(c.Tiers, l.Tier); kind >= 0 && l.Units >= c.Params.LotUnits {
				lots[kind]++
			}
		}
		looked++
		return looked == most, nil
	}); err != nil || looked == most {
		return true, err
	}
	buyers, sellers := rules.Rule.Fewest()
	for kind := range c.Tiers {
		if orders[kind] >= buyers && lots[kind] >= sellers {
			return true, nil
		}
	}
	return false, nil
}

// displace makes room in a clearing that is full for an order that has locked so much: the one that has locked least waits for
// the next one, with its deposit. So who would keep others out has to lock more than they do, in as many orders as there is room for.
func (k commitReveal) displace(ctx context.Context, p *auctionv1.Progress, budget uint64) error {
	var at bidKey
	var out auctionv1.Seal
	var least auctionv1.Demand
	bids := new(collections.Range[bidKey]).StartInclusive(collections.Join([]byte{0}, sdk.AccAddress{})) // asks come before
	err := k.seals.Walk(ctx, bids, func(key bidKey, x auctionv1.Seal) (bool, error) {
		d, err := orNone(k.demands.Get(ctx, x.Number))
		if out.Order == "" || d.Budget < least.Budget {
			at, out, least = key, x, d
		}
		return false, err
	})
	if err != nil {
		return err
	}
	if p.SealedDemands--; least.Budget >= budget {
		return errorsmod.Wrapf(ErrSeal, "clearing %d has %d orders, of which each has locked %d utally or more, and this one %d: bid in the next one", p.Number, p.SealedDemands, least.Budget, budget)
	}
	if least.Number != 0 {
		least.Clearing = 0
		err = k.demands.Set(ctx, least.Number, least)
	}
	return errors.Join(err, k.seals.Remove(ctx, at), k.refund(ctx, &out),
		module.Emit(ctx, &auctionv1.EventObstacle{Clearing: p.Number, Order: out.Order, Reason: "the clearing is full, and another order has locked more: it waits for the next one"}))
}

// kindOf returns the place of a tier in a clearing.
func kindOf(c *auctionv1.Clearing, tier string) (int, error) {
	i := slices.Index(c.Tiers, tier)
	if i < 0 {
		return 0, errorsmod.Wrapf(ErrSeal, "clearing %d is of the tiers %q, and not of %.40q", c.Number, c.Tiers, tier)
	}
	return i, nil
}

// waits reports whether a clearing waits for the value of a block after its reveals.
func (k commitReveal) waits(ctx context.Context) (bool, error) {
	p, _, err := k.underWay(ctx)
	return p.RevealedAt != 0 && !p.Closed, err
}

// unseal goes on with a clearing of sealed bids until it is closed. Reveals end when time is over or all are revealed. The chance
// comes from a later block: its proposer alone knows its value beforehand, and could reveal accordingly.
func (k commitReveal) unseal(ctx context.Context, market Market, p *auctionv1.Progress) error {
	now, height := module.Now(ctx), sdk.UnwrapSDKContext(ctx).BlockHeight()
	switch {
	case p.RevealedAt != 0:
		value, fresh, err := k.beacon.Value(ctx)
		if err != nil || !fresh || height <= p.RevealedAt { // waits makes every block have a value
			return err
		}
		return k.closeSealed(ctx, p, value[:])
	case now < p.ClosesAt || now < p.RevealsUntil && p.Revealed < p.SealedDemands+p.SealedLots:
		return nil
	}
	c, err := k.clearing.Get(ctx)
	if err != nil {
		return err
	}
	room, _, err := market.Leading(ctx, c.Params.FeeBps)
	if err != nil {
		return err
	}
	if err := k.takeSeals(ctx, &c, p, room); err != nil {
		return err
	}
	p.RevealedAt = height
	return errors.Join(k.clearing.Set(ctx, c), k.progress.Set(ctx, *p))
}

// takeSeals takes what was revealed into a clearing, in order, and burns the deposits of what was not, or cannot be sold any more. Of
// asks that take part deposits stay. room is the price of what some validator may lead, in utally.
func (k commitReveal) takeSeals(ctx context.Context, c *auctionv1.Clearing, p *auctionv1.Progress, room uint64) error {
	var over []bidKey
	withheld, burnt := uint32(0), uint64(0)
	err := k.seals.Walk(ctx, nil, func(at bidKey, x auctionv1.Seal) (stop bool, err error) {
		taken := x.Price > 0
		switch {
		case !taken:
		case x.Order != "":
			err = k.takeBid(ctx, c, &x, room)
		default:
			if taken, err = k.takeAsk(ctx, c, at.K2(), &x); !taken {
				p.Revealed-- // for nothing
			}
		}
		if !taken {
			withheld++
			burnt += x.Deposit
		}
		if !taken || x.Order != "" {
			over = append(over, at)
		}
		return false, err
	})
	for _, at := range over {
		err = errors.Join(err, k.seals.Remove(ctx, at))
	}
	if err != nil || withheld == 0 {
		return err
	}
	return k.burn(ctx, p, withheld, burnt)
}

// burn burns the deposits of so many sealed bids.
func (k commitReveal) burn(ctx context.Context, p *auctionv1.Progress, bids uint32, amount uint64) error {
	p.Burnt += amount
	return errors.Join(k.burner.Burn(ctx, Name, amount), module.Emit(ctx, &auctionv1.EventWithheld{Clearing: p.Number, Bids: bids, Burnt: amount}))
}

// forfeit burns the deposit of who has sold by a sealed ask, and then may get no work: its price counted for the others.
func (k commitReveal) forfeit(ctx context.Context, p *auctionv1.Progress, seller sdk.AccAddress) error {
	at := collections.Join([]byte(nil), seller)
	x, err := orNone(k.seals.Get(ctx, at))
	if err != nil || x.Deposit == 0 {
		return err
	}
	return errors.Join(k.seals.Remove(ctx, at), k.burn(ctx, p, 1, x.Deposit))
}

// takeAsk takes a revealed ask into a clearing, unless who sells may get no work any more. The ask of the lot is the least.
func (k commitReveal) takeAsk(ctx context.Context, c *auctionv1.Clearing, account sdk.AccAddress, x *auctionv1.Seal) (taken bool, err error) {
	seller, _, err := k.registry.Seller(ctx, account)
	if err != nil || !k.registry.Free(ctx, seller) {
		return false, err
	}
	have, err := orNone(k.capacities.Get(ctx, account))
	if err != nil {
		return false, err
	}
	i := lotOf(&have, x.Tier)
	if i < 0 || have.Lots[i].Units < c.Params.LotUnits {
		return false, nil
	}
	kind, err := kindOf(c, x.Tier)
	if err != nil {
		return false, err
	}
	lot := auctionv1.SoldLot{Kind: uint32(kind), Units: c.Params.LotUnits, Ask: max(x.Price, have.Lots[i].Ask)}
	c.Sellers = append(c.Sellers, auctionv1.Seller{Provider: x.Bidder, Account: account, Lots: []auctionv1.SoldLot{lot}})
	return true, nil
}

// takeBid takes a revealed bid into a clearing, unless the order has left, or no validator has the room to lead it. What it
// locked when it was posted is the most.
func (k commitReveal) takeBid(ctx context.Context, c *auctionv1.Clearing, x *auctionv1.Seal, room uint64) error {
	d, err := orNone(k.demands.Get(ctx, x.Number))
	if err != nil || d.Number == 0 || d.Budget > room {
		return err
	}
	d.Bid = min(x.Price, (d.Budget-d.Fee)/d.Units)
	c.Demands = append(c.Demands, d)
	return nil
}

// closeSealed closes a clearing whose bids are revealed, with a value that nobody knew then.
func (k commitReveal) closeSealed(ctx context.Context, p *auctionv1.Progress, seed []byte) error {
	c, err := k.clearing.Get(ctx)
	if err != nil {
		return err
	}
	c.Seed = seed
	out, err := wire.OutcomeOf(&c, auction.Standard)
	if err != nil {
		return fmt.Errorf("clearing %d of sealed bids: %w", c.Number, err)
	}
	p.Measure, p.Welfare, p.Trades, p.Closed = wire.MeasureToProto(auction.Standard), out.Welfare, uint32(len(out.Trades)), true
	return errors.Join(k.clearing.Set(ctx, c), k.progress.Set(ctx, *p))
}

// giveBack gives the deposits back that are left, and forgets what is sealed.
func (k commitReveal) giveBack(ctx context.Context) error {
	err := k.seals.Walk(ctx, nil, func(_ bidKey, x auctionv1.Seal) (bool, error) { return false, k.refund(ctx, &x) })
	return errors.Join(err, k.seals.Clear(ctx, nil))
}

// refund gives the deposit of a sealed bid back.
func (k commitReveal) refund(ctx context.Context, x *auctionv1.Seal) error {
	if x.Deposit == 0 {
		return nil
	}
	account, err := address.Parse(x.Bidder)
	if err != nil {
		return err
	}
	return k.bank.SendCoinsFromModuleToAccount(ctx, Name, account, coin.Of(x.Deposit))
}

// checkSeals: deposits are held, each bid is where it belongs, and is counted.
func (k commitReveal) checkSeals(ctx context.Context) error {
	p, _, err := k.underWay(ctx)
	if err != nil {
		return err
	}
	var deposits uint64
	var bids, asks, revealed uint32
	err = k.seals.Walk(ctx, nil, func(at bidKey, x auctionv1.Seal) (bool, error) {
		_, key, err := bidder(x.Bidder, x.Order)
		if err != nil || string(key.K1()) != string(at.K1()) || !key.K2().Equals(at.K2()) || (x.Price == 0 || x.Order == "") != (x.Deposit > 0) {
			return true, errors.Join(err, fmt.Errorf("a sealed bid of %s for order %q, revealed as %d with a deposit of %d, is stored as that of %s for %x", x.Bidder, x.Order, x.Price, x.Deposit, at.K2(), at.K1()))
		}
		deposits += x.Deposit
		if x.Price > 0 {
			revealed++
		}
		if x.Order == "" {
			asks++
		} else {
			bids++
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	if held := k.bank.GetBalance(ctx, authtypes.NewModuleAddress(Name), coin.Denom).Amount.Uint64(); held != deposits {
		return fmt.Errorf("the deposits of sealed bids are %d utally, and %d are held", deposits, held)
	}
	if p.RevealedAt == 0 && (bids != p.SealedDemands || asks != p.SealedLots || revealed != p.Revealed) || p.RevealedAt != 0 && (bids > 0 || revealed != asks) {
		return fmt.Errorf("clearing %d counts %d bids and %d asks, %d of them revealed; stored are %d, %d and %d", p.Number, p.SealedDemands, p.SealedLots, p.Revealed, bids, asks, revealed)
	}
	return nil
}
