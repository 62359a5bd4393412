package dispute

import (
	"context"
	"errors"

	"cosmossdk.io/collections"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/dispute"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
)

// first returns the oldest games of a defender that are played, or that wait, at most
// so many of them.
func first(ctx context.Context, queue collections.KeySet[place], defender string, waiting bool, most int) (out []uint64, err error) {
	all, err := module.First(ctx, queue, collections.NewSuperPrefixedTripleRange[string, bool, uint64](defender, waiting), most)
	for _, at := range all {
		out = append(out, at.K3())
	}
	return out, err
}

// full reports whether a new game about a defender's work must wait: so many are
// played as may be, or others wait already.
func (k *Keeper) full(ctx context.Context, defender string, r dispute.Rules) (bool, error) {
	waiting, err := first(ctx, k.queue, defender, true, 1)
	if err != nil || len(waiting) > 0 {
		return true, err
	}
	playing, err := first(ctx, k.queue, defender, false, r.Parallel)
	return len(playing) == r.Parallel, err
}

// maxBegins is how many games the end of a block begins at most, or finds that they cannot begin.
// What is left is for the next blocks: clocks of games that wait stand still.
const maxBegins = 64

// admit begins the games whose turn has come: those of the defenders of whom a game
// has ended. So it begins hardly more than have ended.
func (k *Keeper) admit(ctx context.Context) error {
	var defenders []string
	err := k.freed.Walk(ctx, nil, func(d string) (bool, error) {
		defenders = append(defenders, d)
		return len(defenders) == maxBegins, nil
	})
	if err != nil || len(defenders) == 0 {
		return err
	}
	r, err := k.Rules(ctx)
	if err != nil {
		return err
	}
	left := maxBegins
	for _, d := range defenders {
		if left, err = k.fill(ctx, d, r.Parallel, left); err != nil || left == 0 {
			return err
		}
		if err := k.freed.Remove(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// fill begins games about a defender's work until so many are played, none waits, or so many
// were tried. It returns how many more may be. One that cannot begin leaves its place to the next.
func (k *Keeper) fill(ctx context.Context, defender string, parallel, left int) (int, error) {
	playing, err := first(ctx, k.queue, defender, false, parallel)
	if err != nil {
		return left, err
	}
	for free := parallel - len(playing); free > 0 && left > 0; left-- {
		next, err := first(ctx, k.queue, defender, true, 1)
		if err != nil || len(next) == 0 {
			return left, err
		}
		id := next[0]
		began, err := attempt(ctx, id, func(ctx context.Context) error { return k.begin(ctx, id) })
		switch {
		case err != nil:
			return left, err
		case began:
			free--
			continue
		}
		if err := errors.Join(k.queue.Remove(ctx, collections.Join3(defender, true, id)), k.late.Add(ctx, id)); err != nil {
			return left, err
		}
	}
	return left, nil
}

// begin lets a game that has waited be played.
func (k *Keeper) begin(ctx context.Context, id uint64) error {
	g, p, err := k.Game(ctx, id)
	if err != nil {
		return err
	}
	next := dispute.Begin(g, module.Now(ctx))
	if err := module.Emit(ctx, &disputev1.EventBegun{Dispute: wire.DisputeToProto(id, p, &next)}); err != nil {
		return err
	}
	return k.put(ctx, id, p, p, &g, &next)
}
