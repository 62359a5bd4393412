package market

import (
	"context"
	"errors"
	"fmt"
	"math"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/book"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

// PostOffer posts or replaces a validator's offer. What it keeps of its time follows from core/book.
func (k *Keeper) PostOffer(ctx context.Context, o marketv1.Offer) error {
	account, err := address.Parse(o.Validator)
	if err != nil {
		return err
	}
	now := module.Now(ctx)
	if o.Ends != 0 && o.Ends <= now {
		return errorsmod.Wrapf(ErrOffer, "it ends at %s, and it is %s: name a later end, or none", wire.Moment(o.Ends), wire.Moment(now))
	}
	o.Height, o.Since = sdk.UnwrapSDKContext(ctx).BlockHeight(), now
	switch before, err := k.offers.Get(ctx, account); {
	case errors.Is(err, collections.ErrNotFound):
	case err != nil:
		return err
	default:
		if !ended(&before, now) {
			p := book.Place{FeeBps: before.FeeBps, MaxLeases: before.MaxLeases, Since: before.Since}
			o.Since = p.Replaced(o.FeeBps, o.MaxLeases, now).Since
		}
		if err := k.removeOffer(ctx, account, &before); err != nil {
			return err
		}
	}
	if err := k.setOffer(ctx, account, o); err != nil {
		return err
	}
	return module.Emit(ctx, &marketv1.EventOffer{Offer: o})
}

// WithdrawOffer takes a validator's offer back.
func (k *Keeper) WithdrawOffer(ctx context.Context, validator sdk.AccAddress) error {
	o, err := k.offers.Get(ctx, validator)
	if errors.Is(err, collections.ErrNotFound) {
		return errorsmod.Wrap(ErrNoOffer, validator.String())
	}
	if err == nil {
		err = k.removeOffer(ctx, validator, &o)
	}
	if err != nil {
		return err
	}
	return module.Emit(ctx, &marketv1.EventOfferWithdrawn{Validator: validator.String()})
}

// ended reports whether an offer's end has come.
func ended(o *marketv1.Offer, now int64) bool { return o.Ends != 0 && o.Ends <= now }

// setOffer stores an offer that its account has none beside, with its index.
func (k *Keeper) setOffer(ctx context.Context, account sdk.AccAddress, o marketv1.Offer) error {
	if o.Ends != 0 {
		if err := k.ends.Set(ctx, collections.Join(o.Ends, account)); err != nil {
			return err
		}
	}
	return k.offers.Set(ctx, account, o)
}

func (k *Keeper) removeOffer(ctx context.Context, account sdk.AccAddress, o *marketv1.Offer) error {
	if o.Ends != 0 {
		if err := k.ends.Remove(ctx, collections.Join(o.Ends, account)); err != nil {
			return err
		}
	}
	return k.offers.Remove(ctx, account)
}

// endOffers removes offers whose end has come, the longest past first. None of these has been matched
// since, however many there are.
func (k *Keeper) endOffers(ctx context.Context) error {
	due, err := module.First(ctx, k.ends, collections.NewPrefixUntilPairRange[int64, sdk.AccAddress](module.Now(ctx)), maxEnded)
	if err != nil {
		return err
	}
	for _, d := range due {
		if err := errors.Join(k.ends.Remove(ctx, d), k.offers.Remove(ctx, d.K2())); err != nil {
			return err
		}
		if err := module.Emit(ctx, &marketv1.EventOfferWithdrawn{Validator: d.K2().String(), Ended: true}); err != nil {
			return err
		}
	}
	return nil
}

// checkEnds: the index names each offer that ends, and nothing else.
func (k *Keeper) checkEnds(ctx context.Context) error {
	ends := 0
	err := k.offers.Walk(ctx, nil, func(account sdk.AccAddress, o marketv1.Offer) (bool, error) {
		if o.Ends == 0 {
			return false, nil
		}
		ends++
		in, err := k.ends.Has(ctx, collections.Join(o.Ends, account))
		if err == nil && !in {
			err = fmt.Errorf("the offer of %s ends at %d, and is not indexed so", o.Validator, o.Ends)
		}
		return err != nil, err
	})
	all, also := module.First(ctx, k.ends, nil, math.MaxInt)
	if also == nil && len(all) != ends {
		also = fmt.Errorf("%d offers end, and %d are indexed", ends, len(all))
	}
	return errors.Join(err, also)
}
