package client

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
)

// maxListed bounds the sessions of an account, and the listings, that are read at once.
const maxListed = 10_000

// Session asks for a session. One that was never opened, or is forgotten, is the gRPC error NotFound.
func (c *Client) Session(ctx context.Context, id canon.Hash) (session.Session, error) {
	r, err := sessionsv1.NewQueryClient(c.Conn).Session(ctx, &sessionsv1.QuerySessionRequest{Session: id.String()})
	if err != nil {
		return session.Session{}, fmt.Errorf("ask for session %s: %w", id, err)
	}
	s, err := wire.SessionFromProto(&r.Session)
	if err == nil && s.ID() != id {
		err = fmt.Errorf("the node tells of session %s, asked for %s", s.ID(), id)
	}
	return s, err
}

// SessionsOf asks for the sessions of an account, on either side, until the chain forgets them.
func (c *Client) SessionsOf(ctx context.Context, account string) ([]session.Session, error) {
	all, err := Pages("sessions of "+account, maxListed, func(page *query.PageRequest) ([]sessionsv1.Session, *query.PageResponse, error) {
		r, err := sessionsv1.NewQueryClient(c.Conn).SessionsOf(ctx, &sessionsv1.QuerySessionsOfRequest{Account: account, Pagination: page})
		if err != nil {
			return nil, nil, err
		}
		return r.Sessions, r.Pagination, nil
	})
	return read(all, err, wire.SessionFromProto)
}

// Listings asks for what providers offer to serve and could serve now: of a model by its root, by its name, or, where both are zero,
// of all models.
func (c *Client) Listings(ctx context.Context, model canon.Hash, name string) ([]wire.Listed, error) {
	ask := sessionsv1.QueryListingsRequest{Name: name}
	if !model.IsZero() {
		ask.Model = model[:]
	}
	all, err := Pages("listings", maxListed, func(page *query.PageRequest) ([]sessionsv1.Listed, *query.PageResponse, error) {
		ask.Pagination = page
		r, err := sessionsv1.NewQueryClient(c.Conn).Listings(ctx, &ask)
		if err != nil {
			return nil, nil, err
		}
		return r.Listings, r.Pagination, nil
	})
	return read(all, err, wire.ListedFromProto)
}

// read reads what a list holds, if there is one.
func read[M, T any](all []M, err error, one func(*M) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	out := make([]T, len(all))
	for i := range all {
		if out[i], err = one(&all[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// NotFound reports whether a node has answered that it has no such thing.
func NotFound(err error) bool { return status.Code(err) == codes.NotFound }
