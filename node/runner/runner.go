// Package runner runs the roles of a home: it registers the peer as the settings say, and
// lets the roles work until its context is done. Call [Run]; what it does first,
// [Register], can be called alone, and again: it changes only what differs.
//
//	validator  leads its own leases, audits and keeps those of others
//	provider   computes
//	challenger challenges
//	consumer   nothing; people act for it
//
// What all roles of an account owe is done once: it plays its disputes, and lets go of what ended.
//
// Invariant: a process may be killed at any moment and begun again.
package runner

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tally-network/tally/node/audit"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/disputer"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/lead"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/node/probe"
	"github.com/tally-network/tally/node/provide"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/seat"
	"github.com/tally-network/tally/node/watch"
)

type work = func(context.Context, *role.Env, *disputer.Player) error

// worksOf returns what a role does, as a home's settings want it.
func worksOf(r home.Role, s *home.Settings) []work {
	switch r {
	case home.Validator:
		return []work{func(ctx context.Context, env *role.Env, _ *disputer.Player) error { return lead.Run(ctx, env) }, audit.Run, func(ctx context.Context, env *role.Env, _ *disputer.Player) error { return seat.Run(ctx, env) }}
	case home.Provider:
		return []work{func(ctx context.Context, env *role.Env, player *disputer.Player) error {
			lots, err := s.Provider.Lots()
			if err != nil {
				return err
			}
			return provide.Run(ctx, env, player, provide.Options{Lots: lots})
		}, func(ctx context.Context, env *role.Env, _ *disputer.Player) error {
			return probe.Run(ctx, env, s.Provider.Probe)
		}}
	case home.Challenger:
		return []work{watch.Run}
	}
	return nil
}

// Run registers a home's peer and works until ctx is done, which is no error.
func Run(ctx context.Context, h *home.Home, env *role.Env) error {
	var all []work
	for _, r := range h.Settings.Roles() {
		all = append(all, worksOf(r, &h.Settings)...)
	}
	return run(ctx, h, env, all)
}

// RunOnly is Run of one work in place of those of the home's roles.
func RunOnly(ctx context.Context, h *home.Home, env *role.Env, do func(context.Context, *role.Env) error) error {
	return run(ctx, h, env, []work{func(ctx context.Context, env *role.Env, _ *disputer.Player) error { return do(ctx, env) }})
}

func run(ctx context.Context, h *home.Home, env *role.Env, works []work) error {
	err := Register(ctx, h, env)
	if ctx.Err() != nil {
		return nil
	} else if err != nil {
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	player := disputer.New(inner, env)
	for _, do := range works {
		group.Go(func() error { return do(inner, env, player) })
	}
	if h.Settings.Role != home.Consumer {
		group.Go(func() error { return common(inner, h, env, player) })
	}
	err = group.Wait()
	player.Wait()
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// onceCaughtUp does what a node refuses while it reads the blocks of the past, as soon as it takes it.
func onceCaughtUp(ctx context.Context, log *slog.Logger, do func() error) error {
	for {
		err := do()
		if !client.CatchingUp(err) {
			return err
		}
		log.Info("waiting until the node has caught up with the network, and can take a transaction")
		select {
		case <-time.After(syncPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// syncPause is between two looks at a node that reads the blocks of the past.
const syncPause = 2 * time.Second

// common does what is owed once, whatever roles an account has.
func common(ctx context.Context, h *home.Home, env *role.Env, player *disputer.Player) error {
	following := env.Live
	if h.Settings.Is(home.Challenger) { // it has the files of all leases
		following = func(ctx context.Context) ([]leases.Lease, error) { return env.Leases.Live(ctx, "") }
	}
	pruner := env.NewPruner()
	return env.EachBlock(ctx, func(ctx context.Context, b client.Block) error {
		live, err := following(ctx)
		if err == nil {
			err = pruner.Block(ctx, b.Time, live)
		}
		return errors.Join(err, player.Block(ctx))
	})
}
