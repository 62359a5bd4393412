package auction

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/canon"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

// bidder returns the account of who bids, and where its sealed bid is kept.
func bidder(who, order string) (account sdk.AccAddress, key bidKey, err error) {
	if account, err = address.Parse(who); err != nil {
		return nil, key, err
	}
	var id []byte
	if order != "" {
		h, err := canon.ParseHash(order)
		if err != nil {
			return nil, key, errorsmod.Wrapf(ErrSeal, "order %.80q: %s", order, err)
		}
		id = h[:]
	}
	return account, collections.Join(id, account), nil
}

// suits returns an error unless an order of so many units can take part by the rules.
func suits(p *auctionv1.Params, units uint64) error {
	if wire.SealedBids(p) && units > p.LotUnits {
		return errorsmod.Wrapf(ErrDemand, "the order demands %d units: by rule %s one provider computes all of it, and at most %d are sold: divide it", units, p.Rule, p.LotUnits)
	}
	return nil
}

// cannotBid reports whether no clearing takes an order now: its sellers are waited for, or its last lease could not begin.
func cannotBid(ctx context.Context, d *auctionv1.Demand) bool {
	return d.Sale != nil || d.After > module.Now(ctx)
}

// Seal takes a sealed bid: for an order its consumer's, for a lot on sale its provider's. Who does not reveal it loses the deposit.
func (s msgServer) Seal(ctx context.Context, m *auctionv1.MsgSeal) (*auctionv1.MsgSealResponse, error) {
	account, key, err := bidder(m.Bidder, m.Order)
	if err != nil {
		return nil, err
	}
	if len(m.Commitment) != len(canon.Hash{}) || (m.Order == "") == (m.Tier == "") {
		return nil, errorsmod.Wrapf(ErrSeal, "a commitment of %d bytes for order %.80q and tier %.40q: want %d bytes, and one of both", len(m.Commitment), m.Order, m.Tier, len(canon.Hash{}))
	}
	p, under, err := s.underWay(ctx)
	switch {
	case err != nil:
		return nil, err
	case !under || p.Number != m.Clearing || p.RevealsUntil == 0 || module.Now(ctx) >= p.ClosesAt:
		return nil, errorsmod.Wrapf(ErrClearing, "clearing %d takes no sealed bids now: tally query auction seal %s shows when one does", m.Clearing, m.Bidder)
	}
	if is, err := s.seals.Has(ctx, key); err != nil {
		return nil, err
	} else if is {
		return nil, errorsmod.Wrap(ErrSeal, "it is sealed already, and stands: reveal it once others cannot bid any more")
	}
	c, err := s.clearing.Get(ctx)
	if err != nil {
		return nil, err
	}
	x := auctionv1.Seal{Bidder: m.Bidder, Order: m.Order, Tier: m.Tier, Commitment: m.Commitment, Deposit: c.Params.Deposit}
	if m.Order == "" {
		p.SealedLots++
		err = s.sealLot(ctx, &c, &p, account, m.Tier)
	} else {
		p.SealedDemands++
		x.Number, err = s.sealDemand(ctx, &c, &p, m)
	}
	if err != nil {
		return nil, err
	}
	if err := s.bank.SendCoinsFromAccountToModule(ctx, account, Name, coin.Of(c.Params.Deposit)); err != nil {
		return nil, errorsmod.Wrapf(err, "the deposit of a sealed bid is %d utally", c.Params.Deposit)
	}
	return &auctionv1.MsgSealResponse{}, errors.Join(
		s.seals.Set(ctx, key, x), s.progress.Set(ctx, p),
		module.Emit(ctx, &auctionv1.EventSealed{Clearing: p.Number, Bidder: m.Bidder, Order: m.Order, Tier: m.Tier}),
	)
}

// sealLot lets what a provider sells of a tier take part, all of which then stands.
func (s msgServer) sealLot(ctx context.Context, c *auctionv1.Clearing, p *auctionv1.Progress, account sdk.AccAddress, tier string) error {
	x, err := orNone(s.capacities.Get(ctx, account))
	if err != nil {
		return err
	}
	i := lotOf(&x, tier)
	switch {
	case i < 0:
		return errorsmod.Wrapf(ErrSeal, "%s sells nothing of tier %.40q: tally tx auction sell puts some on sale", account, tier)
	case x.Lots[i].Units < c.Params.LotUnits:
		return errorsmod.Wrapf(ErrSeal, "%d units are on sale: by rule %s it takes %d, since who sells computes whichever order it gets", x.Lots[i].Units, c.Params.Rule, c.Params.LotUnits)
	case p.SealedLots > c.Params.MaxLots:
		return errorsmod.Wrapf(ErrSeal, "clearing %d has %d lots, and takes no more: bid in the next one", c.Number, c.Params.MaxLots)
	}
	if _, err := kindOf(c, tier); err != nil {
		return err
	}
	if err := s.checkSeller(ctx, account, x.Lots[i:i+1]); err != nil {
		return err
	}
	return s.edit(ctx, x.Provider, func(x *auctionv1.Capacity) { x.Clearing = c.Number })
}

// sealDemand lets an order take part, which then stands, and returns its number.
func (s msgServer) sealDemand(ctx context.Context, c *auctionv1.Clearing, p *auctionv1.Progress, m *auctionv1.MsgSeal) (number uint64, err error) {
	id, err := canon.ParseHash(m.Order)
	if err != nil {
		return 0, err
	}
	number, consumer, err := s.market.Posted(ctx, id)
	if err != nil {
		return 0, err
	}
	d, err := orNone(s.demands.Get(ctx, number))
	if err != nil {
		return 0, err
	}
	referees, err := s.market.Referees(ctx)
	if err != nil {
		return 0, err
	}
	ends := p.RevealsUntil + wire.WaitAfter(&c.Params)
	switch {
	case m.Bidder != consumer:
		return 0, errorsmod.Wrapf(ErrSeal, "the order is of %s, who alone bids for it", consumer)
	case d.Number == 0:
		return 0, errorsmod.Wrap(ErrSeal, "the order does not wait for auctions: it is no order of auctions, or not open any more")
	case d.Units > c.Params.LotUnits:
		return 0, errorsmod.Wrapf(ErrSeal, "the order demands %d units, and by rule %s at most %d are sold: cancel it, and divide it", d.Units, c.Params.Rule, c.Params.LotUnits)
	case int(d.Referees) > referees:
		return 0, errorsmod.Wrapf(ErrSeal, "the order wants %d validators beside its lead, and there are %d: cancel it, and ask for fewer", d.Referees, referees)
	case cannotBid(ctx, &d):
		return 0, errorsmod.Wrapf(ErrSeal, "its sellers are waited for, or its last lease could not begin: it takes part again %s", about(ctx, d.After))
	case d.ExpiresAt <= ends:
		return 0, errorsmod.Wrapf(ErrSeal, "the order waits until %s, and the clearing may take until %s: post it anew, and let it wait longer", wire.Moment(d.ExpiresAt), wire.Moment(ends))
	}
	if p.SealedDemands > c.Params.MaxDemands {
		if err := (commitReveal{s.Keeper}).displace(ctx, p, d.Budget); err != nil {
			return 0, err
		}
	}
	if d.Tier != "" {
		if _, err := kindOf(c, d.Tier); err != nil {
			return 0, err
		}
	}
	d.Clearing = c.Number
	return number, s.demands.Set(ctx, number, d)
}

// HasSealed reports whether somebody has a sealed bid, and loses its deposit unless it is revealed now.
func (k *Keeper) HasSealed(ctx context.Context, m *auctionv1.MsgReveal) bool {
	_, key, err := bidder(m.Bidder, m.Order)
	if err != nil {
		return false
	}
	p, _, err := k.underWay(ctx)
	if err != nil || p.RevealsUntil == 0 || p.RevealedAt != 0 || module.Now(ctx) < p.ClosesAt {
		return false
	}
	x, err := k.seals.Get(ctx, key)
	return err == nil && x.Price == 0
}

// Reveal opens a sealed bid, which then stands. An order's deposit goes back at once, for it cannot leave. Who sells could still take
// its stake out, and so withhold what it has revealed: its deposit goes back once the clearing is over.
func (s msgServer) Reveal(ctx context.Context, m *auctionv1.MsgReveal) (*auctionv1.MsgRevealResponse, error) {
	account, key, err := bidder(m.Bidder, m.Order)
	if err != nil {
		return nil, err
	}
	p, under, err := s.underWay(ctx)
	switch now := module.Now(ctx); {
	case err != nil:
		return nil, err
	case !under || p.Number != m.Clearing || p.RevealsUntil == 0 || p.RevealedAt != 0 || now >= p.RevealsUntil:
		return nil, errorsmod.Wrapf(ErrClearing, "clearing %d takes no reveals now: tally query auction seal %s shows how far the one under way is; what is not revealed in time has lost its deposit", m.Clearing, m.Bidder)
	case now < p.ClosesAt:
		return nil, errorsmod.Wrapf(ErrClearing, "others may still bid: reveal %s", about(ctx, p.ClosesAt))
	}
	x, err := orNone(s.seals.Get(ctx, key))
	if err != nil {
		return nil, err
	}
	salt, bad := canon.HashOf(m.Salt)
	b := wire.Bid{Chain: sdk.UnwrapSDKContext(ctx).ChainID(), Clearing: p.Number, Bidder: account, Price: m.Price, Salt: salt}
	copy(b.Order[:], key.K1())
	switch h := b.Commitment(); {
	case x.Bidder == "":
		return nil, errorsmod.Wrapf(ErrSeal, "%s has sealed no such bid in clearing %d", m.Bidder, p.Number)
	case x.Price != 0:
		return nil, errorsmod.Wrapf(ErrSeal, "it is revealed already: %d utally", x.Price)
	case bad != nil || m.Price < 1 || m.Price > auction.MaxAsk:
		return nil, errorsmod.Wrapf(ErrSeal, "a price of %d utally with a salt of %d bytes: want 1 to %d, and %d", m.Price, len(m.Salt), uint64(auction.MaxAsk), len(salt))
	case string(h[:]) != string(x.Commitment):
		return nil, errorsmod.Wrapf(ErrSeal, "a price of %d utally with this salt is not what was sealed: reveal what the home has of it", m.Price)
	}
	x.Price = m.Price
	p.Revealed++
	if m.Order != "" {
		if err := (commitReveal{s.Keeper}).refund(ctx, &x); err != nil {
			return nil, err
		}
		x.Deposit = 0
	}
	return &auctionv1.MsgRevealResponse{}, errors.Join(
		s.seals.Set(ctx, key, x), s.progress.Set(ctx, p),
		module.Emit(ctx, &auctionv1.EventRevealed{Clearing: p.Number, Bidder: m.Bidder, Order: m.Order, Price: m.Price}),
	)
}
