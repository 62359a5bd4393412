package split

import (
	"context"
	"io"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/desk"
	"github.com/tally-network/tally/node/role"
)

// Market says what offers would take for a part, and whose they are.
type Market interface {
	Quote(context.Context, *job.Order) ([]marketv1.Bid, error)
	Owners(context.Context) (map[string]string, error) // of validators that have declared one
	Deposit(context.Context, *job.Order) (uint64, error)
}

// Network is a chain as a consumer's home reaches it.
type Network interface {
	Market
	Buyer() consume.Buyer
	Similar(context.Context, *job.Order) ([]*consume.EarlierOrder, error) // as consume.FindSimilar
	Afford(context.Context, *job.Order) error
	Post(ctx context.Context, d *consume.Draft, again bool) (canon.Hash, error)
	Keep(ctx context.Context, o *job.Order, body func() io.Reader) error
	Follow(ctx context.Context, order canon.Hash, done func(consume.Progress) bool) (consume.Progress, error)
	Deliver(context.Context, desk.DeliveryRequest) (*consume.Results, error)
	Outcome(context.Context, *job.Lease) (consume.Outcome, error)
	Now() int64 // protocol time, ms
}

// OnChain asks a chain.
type OnChain struct{ Env *role.Env }

// Quote implements Market.
func (c OnChain) Quote(ctx context.Context, o *job.Order) ([]marketv1.Bid, error) {
	q, err := consume.Quote(ctx, c.Env, o)
	if err != nil {
		return nil, err
	}
	return q.Bids, nil
}

// mostValidators bounds how many validators are read.
const mostValidators = 10_000

// Owners implements Market.
func (c OnChain) Owners(ctx context.Context) (map[string]string, error) {
	q := providerv1.NewQueryClient(c.Env.Chain.Conn)
	peers, err := client.Pages("validators", mostValidators, func(p *query.PageRequest) ([]providerv1.Peer, *query.PageResponse, error) {
		r, err := q.Peers(ctx, &providerv1.QueryPeersRequest{Role: providerv1.ROLE_VALIDATOR, Pagination: p})
		return r.GetPeers(), r.GetPagination(), err
	})
	owners := map[string]string{}
	for i := range peers {
		if peers[i].Owner != "" {
			owners[peers[i].Account] = peers[i].Owner
		}
	}
	return owners, err
}

// Deposit implements Market.
func (c OnChain) Deposit(ctx context.Context, o *job.Order) (uint64, error) {
	return consume.Deposit(ctx, c.Env, o)
}

// Place posts a draft, unless it was posted before.
type Place func(ctx context.Context, d *consume.Draft, again bool) (canon.Hash, error)

// At returns the network of a home that a desk has open, where place posts.
func At(env *role.Env, d *desk.Desk, as consume.Buyer, place Place) Network {
	return &atHome{OnChain{env}, d, as, place}
}

type atHome struct {
	OnChain
	desk  *desk.Desk
	as    consume.Buyer
	place Place
}

func (h *atHome) Buyer() consume.Buyer { return h.as }

func (h *atHome) Similar(ctx context.Context, o *job.Order) ([]*consume.EarlierOrder, error) {
	return consume.FindSimilar(ctx, h.Env, o)
}

func (h *atHome) Afford(ctx context.Context, o *job.Order) error {
	return consume.Afford(ctx, h.Env, o)
}

func (h *atHome) Post(ctx context.Context, d *consume.Draft, again bool) (canon.Hash, error) {
	return h.place(ctx, d, again)
}

func (h *atHome) Keep(ctx context.Context, o *job.Order, body func() io.Reader) error {
	return h.desk.Keep(ctx, o, body)
}

func (h *atHome) Follow(ctx context.Context, order canon.Hash, done func(consume.Progress) bool) (consume.Progress, error) {
	return consume.Follow(ctx, h.Env, order, done)
}

func (h *atHome) Deliver(ctx context.Context, r desk.DeliveryRequest) (*consume.Results, error) {
	d, err := h.desk.Deliver(ctx, r)
	return d.Results, err
}

func (h *atHome) Outcome(ctx context.Context, l *job.Lease) (consume.Outcome, error) {
	return consume.NewOutcome(ctx, h.Env, l)
}

func (h *atHome) Now() int64 { return h.Env.Chain.Head().Time }
