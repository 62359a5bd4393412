package sessions

import (
	"context"
	"errors"
	"slices"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
)

// offers are what providers list: all of a provider's in one record, which lapses as a whole.
type offers struct {
	all     collections.Map[sdk.AccAddress, sessionsv1.Offer]
	byModel collections.KeySet[collections.Pair[[]byte, sdk.AccAddress]]
	byName  collections.KeySet[collections.Pair[string, sdk.AccAddress]]
	lapses  collections.KeySet[collections.Pair[int64, sdk.AccAddress]]
}

// List replaces what a provider offers to serve.
func (s msgServer) List(ctx context.Context, m *sessionsv1.MsgList) (*sessionsv1.MsgListResponse, error) {
	account, err := address.Parse(m.Provider)
	if err != nil {
		return nil, err
	}
	if _, err := wire.ListingsFromProto(m.Listings); err != nil {
		return nil, errorsmod.Wrap(ErrListing, err.Error())
	}
	o := sessionsv1.Offer{Provider: m.Provider, Listings: m.Listings}
	if len(m.Listings) > 0 { // who gets no work any more may still withdraw what it lists
		if _, err := s.provider(ctx, account); err != nil {
			return nil, err
		}
		o.UntilMs = module.Now(ctx) + session.ListingLasts
	}
	return &sessionsv1.MsgListResponse{}, errors.Join(s.offers.replace(ctx, account, o), module.Emit(ctx, &sessionsv1.EventOffer{Offer: o}))
}

// provider returns the peer of a provider that may get new work, or ErrProvider.
func (k *Keeper) provider(ctx context.Context, account sdk.AccAddress) (providerv1.Peer, error) {
	p, err := k.Registry.Get(ctx, account)
	if err != nil {
		return p, err
	}
	active, err := k.Registry.Active(ctx, p)
	switch {
	case err != nil:
		return p, err
	case !slices.Contains(p.Roles, providerv1.ROLE_PROVIDER):
		return p, errorsmod.Wrapf(ErrProvider, "%s is registered for other roles alone", p.Account)
	case !active:
		return p, errorsmod.Wrapf(ErrProvider, "%s may get no new work now: tally query provider peer %s shows why", p.Account, p.Account)
	}
	return p, nil
}

// replace stores what a provider lists in place of what it has listed, with the indexes; nothing is not stored.
func (o offers) replace(ctx context.Context, account sdk.AccAddress, after sessionsv1.Offer) error {
	before, err := o.all.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) {
		err = nil
	}
	for _, l := range before.Listings {
		err = errors.Join(err, o.byModel.Remove(ctx, collections.Join(l.Model, account)), o.byName.Remove(ctx, collections.Join(l.Name, account)))
	}
	if before.UntilMs != 0 {
		err = errors.Join(err, o.lapses.Remove(ctx, collections.Join(before.UntilMs, account)))
	}
	if len(after.Listings) == 0 {
		return errors.Join(err, o.all.Remove(ctx, account))
	}
	for _, l := range after.Listings {
		err = errors.Join(err, o.byModel.Set(ctx, collections.Join(l.Model, account)), o.byName.Set(ctx, collections.Join(l.Name, account)))
	}
	return errors.Join(err, o.lapses.Set(ctx, collections.Join(after.UntilMs, account)), o.all.Set(ctx, account, after))
}

// lapse removes offers that stand no more.
func (o offers) lapse(ctx context.Context) error {
	due, err := module.First(ctx, o.lapses, collections.NewPrefixUntilPairRange[int64, sdk.AccAddress](module.Now(ctx)), maxDue)
	for _, at := range due {
		none := sessionsv1.Offer{Provider: at.K2().String()}
		err = errors.Join(err, o.replace(ctx, at.K2(), none), module.Emit(ctx, &sessionsv1.EventOffer{Offer: none}))
	}
	return err
}

// listed returns those of a provider's listings that it could begin a session of now, as far as they match.
func (k *Keeper) listed(ctx context.Context, account sdk.AccAddress, match func(*sessionsv1.Listing) bool) ([]sessionsv1.Listed, error) {
	o, err := k.offers.all.Get(ctx, account)
	if err != nil || o.UntilMs <= module.Now(ctx) {
		return nil, err
	}
	p, err := k.provider(ctx, account)
	if errors.Is(err, ErrProvider) {
		return nil, nil // it serves nobody now
	} else if err != nil {
		return nil, err
	}
	record, err := k.Record(ctx, account)
	if err != nil {
		return nil, err
	}
	listings, err := wire.ListingsFromProto(o.Listings)
	if err != nil {
		return nil, err
	}
	var out []sessionsv1.Listed
	free := p.Stake - p.Reserved
	for i := range listings {
		least, err := listings[i].Reserve()
		if err != nil {
			return nil, err
		}
		if free < least || !match(&o.Listings[i]) {
			continue
		}
		out = append(out, sessionsv1.Listed{
			Provider: p.Account, PeerKey: p.PeerKey, Addrs: p.Listing.Addrs, Listing: o.Listings[i], UntilMs: o.UntilMs, Free: free, Record: record,
		})
	}
	return out, nil
}

// ofModel matches the listing of a model.
func ofModel(model canon.Hash) func(*sessionsv1.Listing) bool {
	return func(l *sessionsv1.Listing) bool { return canon.Hash(l.Model) == model }
}

// named matches listings of a name.
func named(name string) func(*sessionsv1.Listing) bool {
	return func(l *sessionsv1.Listing) bool { return l.Name == name }
}
