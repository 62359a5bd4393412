package runner

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cosmos/gogoproto/proto"

	"github.com/cosmos/cosmos-sdk/types/query"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/provider"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/clusters"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/seals"
)

var onChain = map[home.Role]providerv1.Role{
	home.Provider:   providerv1.ROLE_PROVIDER,
	home.Validator:  providerv1.ROLE_VALIDATOR,
	home.Challenger: providerv1.ROLE_CHALLENGER,
}

// rolesOf returns the roles of a home that the chain knows.
func rolesOf(s *home.Settings) (roles []providerv1.Role) {
	for _, r := range s.Roles() {
		if kind, ok := onChain[r]; ok {
			roles = append(roles, kind)
		}
	}
	return roles
}

// Registered returns the peer of a home as the chain knows it; nil if it does
// not.
func Registered(ctx context.Context, env *role.Env) (*providerv1.Peer, error) {
	r, err := providerv1.NewQueryClient(env.Chain.Conn).Peer(ctx, &providerv1.QueryPeerRequest{Account: env.Account.Address})
	if status.Code(err) == codes.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the peer of %s: %w", env.Account.Address, err)
	}
	return &r.Peer, nil
}

// Register makes sure that the chain knows the peer, its listing and its offer
// as the settings say. A new peer waits for the money of its stake, a provider without a
// validator for an offer, and all for a node that follows the chain.
func Register(ctx context.Context, h *home.Home, env *role.Env) error {
	return onceCaughtUp(ctx, env.Log, func() error { return register(ctx, h, env) })
}

func register(ctx context.Context, h *home.Home, env *role.Env) error {
	roles := rolesOf(&h.Settings)
	if len(roles) == 0 {
		return nil
	}
	slices.Sort(roles)
	p, err := Registered(ctx, env)
	if err != nil {
		return err
	}
	if p != nil && !bytes.Equal(p.PeerKey, h.PeerKey()) {
		return fmt.Errorf("account %s is registered as another peer: its key is in use by another home", env.Account.Address)
	}
	want, err := listing(ctx, h, env, p)
	if err != nil {
		return err
	}
	switch {
	case p == nil:
		err = enter(ctx, h, env, roles, want)
	case !proto.Equal(&p.Listing, &want) || !slices.Equal(p.Roles, roles):
		err = update(ctx, h, env, p, roles, want)
	}
	if err != nil {
		return fmt.Errorf("register %s: %w", env.Name, err)
	}
	return offer(ctx, h, env)
}

// update changes the roles and the listing of a peer, and stakes what new roles need.
func update(ctx context.Context, h *home.Home, env *role.Env, p *providerv1.Peer, roles []providerv1.Role, l providerv1.Listing) error {
	m := &providerv1.MsgUpdate{Account: p.Account, Listing: l, Roles: roles}
	if !slices.Equal(p.Roles, roles) {
		stake, err := Stake(ctx, h, env)
		if err != nil {
			return err
		}
		if short := stake - min(p.Stake, stake); short > 0 {
			if err := await(ctx, env, short+client.FirstFees, "waiting for the stake of more roles"); err != nil {
				return err
			}
		}
		m.Stake = stake
	}
	_, err := env.Account.Send(ctx, m)
	if errors.Is(err, provider.ErrOpenWork) {
		err = fmt.Errorf("%w; until then put the old ones into the settings", err)
	}
	return err
}

// await waits until the account has so many utally, and says what for whenever it has others.
func await(ctx context.Context, env *role.Env, needed uint64, what string) error {
	return AwaitFunds(ctx, env, needed, func(have uint64) {
		env.Log.Info(what, "account", env.Account.Address, "utally", have, "needed", needed)
	})
}

// enter registers a new peer with its stake.
func enter(ctx context.Context, h *home.Home, env *role.Env, roles []providerv1.Role, l providerv1.Listing) error {
	stake, err := Stake(ctx, h, env)
	if err != nil {
		return err
	}
	if err := await(ctx, env, stake+client.FirstFees, "waiting for the stake and first fees"); err != nil {
		return err
	}
	account, err := address.Parse(env.Account.Address)
	if err != nil {
		return err
	}
	m := &providerv1.MsgRegister{
		Account: env.Account.Address, Roles: roles, PeerKey: h.PeerKey(), Listing: l, Stake: stake,
		VrfKey:    h.VRFKey(),
		Signature: ed25519.Sign(h.Peer, wire.Statement(env.Chain.ChainID, account)),
	}
	_, err = env.Account.Send(ctx, m)
	return err
}

// Stake returns what the peer bonds when it registers: what its settings say,
// or the least that the chain takes.
func Stake(ctx context.Context, h *home.Home, env *role.Env) (uint64, error) {
	least, err := LeastStake(ctx, h, env)
	if s := h.Settings.Stake; err == nil && s != 0 && s < least {
		return 0, fmt.Errorf("a stake of %d utally is below the least of %d: run it again with --stake, or raise stake in tally.yaml", s, least)
	}
	return max(h.Settings.Stake, least), err
}

// LeastStake returns the least stake in utally that the chain takes for the roles of a home.
func LeastStake(ctx context.Context, h *home.Home, env *role.Env) (uint64, error) {
	r, err := providerv1.NewQueryClient(env.Chain.Conn).Params(ctx, &providerv1.QueryParamsRequest{})
	if err != nil {
		return 0, fmt.Errorf("ask for the least stake: %w", err)
	}
	return wire.LeastStake(&r.Params, rolesOf(&h.Settings)), nil
}

// FirstNeeds returns how many utally a new peer's account needs, and what for: its stake and first fees, and the deposit of a sealed
// ask if it sells where bids at auctions are sealed.
func FirstNeeds(ctx context.Context, h *home.Home, env *role.Env) (needed uint64, what string, err error) {
	stake, err := Stake(ctx, h, env)
	if err != nil {
		return 0, "", err
	}
	needed, what = stake+client.FirstFees, "the stake and first fees"
	if p := h.Settings.Provider; p != nil && len(p.Sell) > 0 {
		sealed, deposit, err := seals.Rules(ctx, env.Chain.Conn)
		if err != nil {
			return 0, "", err
		}
		if sealed {
			needed, what = needed+deposit, "the stake, first fees, and the deposit of a sealed ask"
		}
	}
	return needed, what, nil
}

// AwaitFunds waits until the account has a balance in utally, and says what it
// has whenever that changes before.
func AwaitFunds(ctx context.Context, env *role.Env, balance uint64, tell func(have uint64)) error {
	told, last := false, uint64(0)
	for height := int64(0); ; {
		r, err := banktypes.NewQueryClient(env.Chain.Conn).Balance(ctx, &banktypes.QueryBalanceRequest{
			Address: env.Account.Address, Denom: coin.Denom,
		})
		if err != nil {
			return fmt.Errorf("ask for the balance of %s: %w", env.Account.Address, err)
		}
		have := r.Balance.Amount.Uint64()
		if have >= balance {
			return nil
		}
		if !told || have != last {
			tell(have)
			told, last = true, have
		}
		b, err := env.Chain.Next(ctx, height)
		if err != nil {
			return err
		}
		height = b.Height
	}
}

// listing returns what the chain shall list for the peer. A provider that is free to choose
// stays where it is, or begins where it is advised to. A validator that provides is under itself.
func listing(ctx context.Context, h *home.Home, env *role.Env, p *providerv1.Peer) (providerv1.Listing, error) {
	s := h.Settings
	l := providerv1.Listing{Addrs: s.Announce}
	if len(l.Addrs) == 0 {
		l.Addrs = env.Host.Addrs()
	}
	if s.Provider == nil {
		return l, nil
	}
	l.UnitPrice, l.BytePrice, l.Validator = s.Provider.UnitPrice, s.Provider.BytePrice, s.Provider.Validator
	declared, err := s.Provider.Declared(s.MemoryGB)
	if err != nil {
		return l, err
	}
	l.Declared = wire.DeclaredToProto(declared)
	if l.Validator == "" && p != nil {
		l.Validator = p.Listing.Validator
	}
	switch {
	case l.Validator == "" && s.Role == home.Validator:
		l.Validator = env.Account.Address
	case l.Validator == "":
		l.Validator, err = choose(ctx, env, declared.Region)
	}
	return l, err
}

// choose waits for offers and returns the validator whom a newcomer is advised to work under.
func choose(ctx context.Context, env *role.Env, region string) (string, error) {
	for height := int64(0); ; {
		validator, err := clusters.Choose(ctx, env.Chain.Conn, env.Host, env.Account.Address, region)
		if err != nil || validator != "" {
			return validator, err
		}
		if height == 0 {
			env.Log.Info("waiting for a validator's offer")
		}
		b, err := env.Chain.Next(ctx, height)
		if err != nil {
			return "", err
		}
		height = b.Height
	}
}

// offers returns all offers in account order.
func offers(ctx context.Context, env *role.Env) ([]marketv1.Offer, error) {
	return client.Pages("offers", math.MaxInt, func(p *query.PageRequest) ([]marketv1.Offer, *query.PageResponse, error) {
		r, err := marketv1.NewQueryClient(env.Chain.Conn).Offers(ctx, &marketv1.QueryOffersRequest{Pagination: p})
		return r.GetOffers(), r.GetPagination(), err
	})
}

// offer makes sure of a validator's offer.
func offer(ctx context.Context, h *home.Home, env *role.Env) error {
	v := h.Settings.Validator
	if v == nil {
		return nil
	}
	ends, err := v.Ends()
	if err != nil {
		return err
	}
	all, err := offers(ctx, env)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(o marketv1.Offer) bool {
		return o.Validator == env.Account.Address && o.FeeBps == v.FeeBps && o.MaxLeases == v.MaxLeases && o.Ends == ends
	}) {
		return nil
	}
	if now := env.Chain.Head().Time; ends != 0 && ends <= now {
		return nil // it leads what it has begun
	}
	_, err = env.Account.Send(ctx, &marketv1.MsgPostOffer{Validator: env.Account.Address, FeeBps: v.FeeBps, MaxLeases: v.MaxLeases, Ends: ends})
	if err != nil {
		return fmt.Errorf("post the offer: %w", err)
	}
	return nil
}
