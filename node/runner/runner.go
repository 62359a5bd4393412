// Package runner runs the role of a home: it registers the peer as the settings say, and
// lets the role work until its context is done. Call [Run]; what it does first,
// [Register], can be called alone, and again: it changes only what differs.
//
//	validator  leads its own leases, audits and keeps those of others
//	provider   computes
//	challenger challenges
//	consumer   nothing; people act for it
//
// Invariant: a process may be killed at any moment and begun again.
package runner

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/tally-network/tally/node/audit"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/lead"
	"github.com/tally-network/tally/node/provide"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/watch"
)

type work = func(context.Context, *role.Env) error

var works = map[home.Role][]work{
	home.Validator:  {lead.Run, audit.Run},
	home.Provider:   {func(ctx context.Context, env *role.Env) error { return provide.Run(ctx, env, provide.Options{}) }},
	home.Challenger: {watch.Run},
}

// Run registers a home's peer and works until ctx is done, which is no error.
func Run(ctx context.Context, h *home.Home, env *role.Env) error {
	if err := Register(ctx, h, env); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	for _, do := range works[h.Settings.Role] {
		group.Go(func() error { return do(inner, env) })
	}
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}
