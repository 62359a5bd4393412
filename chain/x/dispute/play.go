package dispute

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
)

// Open begins a dispute about the standing attempt of a target, and locks the
// challenger's bond.
func (k *Keeper) Open(ctx context.Context, challenger sdk.AccAddress, order canon.Hash, t job.Target, attempt int, o dispute.Opening) (uint64, error) {
	claim, bond, err := k.work.Claim(ctx, order, t, attempt, o.Segment)
	if err != nil {
		return 0, err
	}
	r, err := k.Rules(ctx)
	if err != nil {
		return 0, err
	}
	g, err := dispute.Open(claim, r, o, module.Now(ctx))
	if err != nil {
		return 0, errorsmod.Wrap(ErrOpening, err.Error())
	}
	id, err := k.next.Next(ctx)
	if err != nil {
		return 0, err
	}
	p := disputev1.Parties{
		Order: order.String(), Target: wire.TargetToProto(t), Attempt: uint32(attempt),
		Challenger: challenger.String(), Bond: bond, OpenedAt: module.Now(ctx),
	}
	pledged := false
	p.Defender, pledged, err = k.work.OpenDispute(ctx, order, job.OpenDispute{ID: id, Target: t, Attempt: attempt, Segment: o.Segment, Challenger: p.Challenger})
	switch {
	case err != nil:
		return 0, err
	case pledged:
		p.ChallengerPurse = disputev1.PURSE_VERDICT
	default:
		if p.ChallengerPurse, err = k.lock(ctx, p.Challenger, bond); err != nil {
			return 0, errorsmod.Wrap(err, "lock a challenger's bond")
		}
	}
	return id, opened(ctx, k, id, p, g)
}

// opened stores a game that has just been opened. It waits if others about the defender's work come first.
func opened(ctx context.Context, k *Keeper, id uint64, p disputev1.Parties, g dispute.Game) error {
	if err := k.enter(ctx, id, p); err != nil {
		return err
	}
	if err := module.Emit(ctx, &disputev1.EventOpened{Dispute: id, Parties: p}); err != nil {
		return err
	}
	full, err := k.full(ctx, p.Defender, g.Rules)
	if err != nil {
		return err
	}
	if full {
		g = dispute.Wait(g)
	}
	return k.step(ctx, id, p, nil, g)
}

// Move plays the move of a message for the side to which its player belongs.
func (k *Keeper) Move(ctx context.Context, m *disputev1.MsgMove, move dispute.Move) error {
	id := m.Dispute
	g, p, err := k.Game(ctx, id)
	if err != nil {
		return err
	}
	side, err := sideOf(p, m.Player)
	if err != nil {
		return err
	}
	if g.Stage == dispute.Over {
		return errorsmod.Wrap(ErrOver, g.Reason)
	}
	if int64(m.Number) != int64(g.Moves) {
		return errorsmod.Wrapf(ErrTurn, "it is to follow %d moves, and %d were made", m.Number, g.Moves)
	}
	next, err := dispute.Apply(g, side, move, module.Now(ctx))
	switch {
	case errors.Is(err, dispute.ErrTurn):
		return errorsmod.Wrapf(ErrTurn, "%v", g.Stage)
	case errors.Is(err, dispute.ErrLate):
		return ErrLate
	case errors.Is(err, dispute.ErrWait):
		return ErrWait
	case err != nil:
		return errorsmod.Wrap(ErrMove, err.Error())
	}
	moved := &disputev1.EventMoved{Side: disputev1.Side(side), Size_: uint32(len(m.Move)), Dispute: wire.DisputeToProto(id, p, &next)}
	if err := module.Emit(ctx, moved); err != nil {
		return err
	}
	return k.step(ctx, id, p, &g, next)
}

// Substitute gives the seat of a side that has missed its answer to a substitute,
// which locks the bond of the challenger.
func (k *Keeper) Substitute(ctx context.Context, substitute sdk.AccAddress, id uint64, side dispute.Side) error {
	g, p, err := k.Game(ctx, id)
	if err != nil {
		return err
	}
	next, err := dispute.Substitute(g, side, module.Now(ctx))
	if err != nil {
		return errorsmod.Wrap(ErrSubstitute, err.Error())
	}
	was := p
	seat, purse, other := &p.DefenderSubstitute, &p.DefenderSubstitutePurse, []string{p.Challenger, p.ChallengerSubstitute}
	if side == dispute.Challenger {
		seat, purse, other = &p.ChallengerSubstitute, &p.ChallengerSubstitutePurse, []string{p.Defender, p.DefenderSubstitute}
	}
	switch {
	case p.Reply != nil && side == dispute.Defender: // who has it could lose on purpose, and the provider would be convicted
		return errorsmod.Wrapf(ErrSubstitute, "who has signed a reply defends it")
	case slices.Contains(other, substitute.String()):
		return errorsmod.Wrapf(ErrSubstitute, "%s plays for the other side", substitute)
	case *seat == substitute.String():
		return errorsmod.Wrapf(ErrSubstitute, "%s has the seat: move", substitute)
	}
	if *seat != "" { // a substitute that fell silent forfeits its bond
		if err := k.forfeit(ctx, bonded{*seat, side, *purse}, p.Bond, "", 0); err != nil {
			return err
		}
	}
	*seat = substitute.String()
	if *purse, err = k.lock(ctx, *seat, p.Bond); err != nil {
		return errorsmod.Wrap(err, "lock a substitute's bond")
	}
	if err := k.parties.Set(ctx, id, p); err != nil {
		return err
	}
	if side == dispute.Challenger {
		order, err := canon.ParseHash(p.Order)
		if err != nil {
			return err
		}
		if err := toldOf(k, p).Substitute(ctx, order, id, *seat); err != nil {
			return err
		}
	}
	if err := module.Emit(ctx, &disputev1.EventSubstituted{Dispute: id, Side: disputev1.Side(side), Parties: p}); err != nil {
		return err
	}
	return k.put(ctx, id, was, p, &g, &next)
}

// player returns who plays for a side now.
func player(p disputev1.Parties, side dispute.Side) string {
	if side == dispute.Defender {
		return cmp.Or(p.DefenderSubstitute, p.Defender)
	}
	return cmp.Or(p.ChallengerSubstitute, p.Challenger)
}

func sideOf(p disputev1.Parties, account string) (dispute.Side, error) {
	for _, side := range []dispute.Side{dispute.Defender, dispute.Challenger} {
		if player(p, side) == account {
			return side, nil
		}
	}
	return dispute.Nobody, errorsmod.Wrap(ErrStranger, account)
}

// HasTurn reports whether the next move of a game is an account's, which has a bond or a
// claim at stake in it.
func (k *Keeper) HasTurn(ctx context.Context, account string, id uint64) bool {
	g, p, err := k.Game(ctx, id)
	return err == nil && g.Stage != dispute.Over && !g.Waiting && player(p, g.Stage.Turn()) == account
}

// substitutes returns the substitutes of both sides.
func substitutes(p disputev1.Parties) []string {
	return slices.DeleteFunc([]string{p.DefenderSubstitute, p.ChallengerSubstitute}, func(s string) bool { return s == "" })
}

// step stores what a game has become, and if it is over ends the dispute.
func (k *Keeper) step(ctx context.Context, id uint64, p disputev1.Parties, before *dispute.Game, g dispute.Game) error {
	order, err := canon.ParseHash(p.Order)
	if err != nil {
		return err
	}
	if g.Stage != dispute.Over {
		if err := k.put(ctx, id, p, p, before, &g); err != nil {
			return err
		}
		return tellAnswer(ctx, toldOf(k, p), order, id, before, &g)
	}
	// What a substitute plays shows nothing of whose seat it has: it may lose on purpose.
	loser, err := toldOf(k, p).CloseDispute(ctx, order, id, g.Loser, g.Silent || p.DefenderSubstitute != "")
	if err != nil {
		return err
	}
	if loser != g.Loser {
		g = dispute.Drop(g, "what it was about is gone")
	}
	return k.end(ctx, id, p, before, g)
}

// Drop lets the end of the block end the game of a dispute that its lease has ended:
// nobody has lost it. One event may end many of them.
func (k *Keeper) Drop(ctx context.Context, id uint64, why string) error {
	return k.dropped.Set(ctx, id, why)
}

// endDropped ends games that were dropped, the oldest first. It reports whether some are
// left.
func (k *Keeper) endDropped(ctx context.Context) (more bool, err error) {
	type drop struct {
		id  uint64
		why string
	}
	var drops []drop
	err = k.dropped.Walk(ctx, nil, func(id uint64, why string) (bool, error) {
		drops = append(drops, drop{id, why})
		return len(drops) == maxEnds, nil
	})
	if err != nil {
		return false, err
	}
	for _, d := range drops {
		if err := k.dropped.Remove(ctx, d.id); err != nil {
			return false, err
		}
		_, err := attempt(ctx, d.id, func(ctx context.Context) error {
			before, p, err := k.Game(ctx, d.id)
			if err != nil {
				return err
			}
			return k.end(ctx, d.id, p, &before, dispute.Drop(before, d.why))
		})
		if err != nil {
			return false, err
		}
	}
	return len(drops) == maxEnds, nil
}

// tellAnswer tells when the defender misses an answer, and when it then moves after all.
func tellAnswer(ctx context.Context, t told, order canon.Hash, id uint64, before, g *dispute.Game) error {
	was := before != nil && before.Missed
	if was == g.Missed {
		return nil
	}
	turn := g.Stage.Turn()
	if was {
		turn = before.Stage.Turn()
	}
	if turn != dispute.Defender {
		return nil
	}
	return t.MissAnswer(ctx, order, id, g.Missed)
}

// end stores a game that is over, and pays out its bonds.
func (k *Keeper) end(ctx context.Context, id uint64, p disputev1.Parties, before *dispute.Game, g dispute.Game) error {
	closed := &disputev1.EventClosed{Dispute: wire.DisputeToProto(id, p, &g)}
	g.Trim()
	if err := k.put(ctx, id, p, p, before, &g); err != nil {
		return err
	}
	if before != nil && !before.Waiting {
		if err := k.freed.Set(ctx, p.Defender); err != nil {
			return err
		}
	}
	if err := k.release(ctx, p, g.Loser); err != nil {
		return err
	}
	return module.Emit(ctx, closed)
}

// maxEnds is how many games the end of a block drops at most, and for how many it lets
// time pass. A move is late whether or not its game has been ended.
const maxEnds = 64

// EndBlock ends the games whose subject is gone. It lets time pass for those in which an answer
// is missed or a clock has run out, and begins those whose turn it is.
func (k *Keeper) EndBlock(ctx context.Context) error {
	more, err := k.endDropped(ctx)
	if err != nil {
		return err
	}
	if !more { // a game that is about to be dropped can no longer be lost
		if err := k.expire(ctx); err != nil {
			return err
		}
	}
	return k.admit(ctx)
}

// expire lets time pass for games whose time has come.
func (k *Keeper) expire(ctx context.Context) error {
	var due []collections.Pair[int64, uint64]
	err := k.wakes.Walk(ctx, collections.NewPrefixUntilPairRange[int64, uint64](module.Now(ctx)-1),
		func(at collections.Pair[int64, uint64]) (bool, error) {
			due = append(due, at)
			return len(due) == maxEnds, nil
		})
	if err != nil {
		return err
	}
	late, err := k.late.Due(ctx)
	if err != nil {
		return err
	}
	for _, at := range due {
		ok, err := attempt(ctx, at.K2(), func(ctx context.Context) error { return k.pass(ctx, at.K2()) })
		if err == nil && !ok {
			err = k.postpone(ctx, at)
		}
		if err != nil {
			return err
		}
	}
	for _, r := range late {
		ok, err := attempt(ctx, r.Key, func(ctx context.Context) error { return k.resume(ctx, r) })
		if err == nil && !ok {
			err = k.late.Again(ctx, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pass lets time pass for a game.
func (k *Keeper) pass(ctx context.Context, id uint64) error {
	g, p, err := k.Game(ctx, id)
	if err != nil || g.Stage == dispute.Over { // it ended with another of them
		return err
	}
	if gone, err := k.dropped.Has(ctx, id); gone || err != nil { // or is about to
		return err
	}
	next := dispute.Expire(g, module.Now(ctx))
	if next.Missed && !g.Missed {
		if err := module.Emit(ctx, &disputev1.EventMissed{Dispute: wire.DisputeToProto(id, p, &next)}); err != nil {
			return err
		}
	}
	return k.step(ctx, id, p, &g, next)
}

// postpone takes a game for which time cannot pass out of the way of others, those about
// the same defender's work too.
func (k *Keeper) postpone(ctx context.Context, at collections.Pair[int64, uint64]) error {
	id := at.K2()
	if err := errors.Join(k.wakes.Remove(ctx, at), k.late.Add(ctx, id)); err != nil {
		return err
	}
	p, err := k.parties.Get(ctx, id)
	if err != nil {
		return nil // whose it is nobody can tell
	}
	return errors.Join(k.queue.Remove(ctx, collections.Join3(p.Defender, false, id)), k.freed.Set(ctx, p.Defender))
}

// resume puts a game back where time passes for it, and lets it pass.
func (k *Keeper) resume(ctx context.Context, r module.Retry[uint64]) error {
	g, p, err := k.Game(ctx, r.Key)
	if errors.Is(err, ErrNoDispute) { // it ended, and its lease was pruned
		return k.late.Done(ctx, r)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(k.late.Done(ctx, r), k.put(ctx, r.Key, p, p, nil, &g)); err != nil {
		return err
	}
	if g.Waiting {
		return k.freed.Set(ctx, p.Defender) // it may be its turn
	}
	return k.pass(ctx, r.Key)
}

// attempt does f for a dispute at the end of a block, and reports whether it succeeded.
// One that fails stays as it was, and does not stop the chain.
func attempt(ctx context.Context, id uint64, f func(ctx context.Context) error) (ok bool, err error) {
	if err := module.Attempt(ctx, f); err != nil {
		return false, module.Emit(ctx, &disputev1.EventStuck{Dispute: id, Reason: err.Error()})
	}
	return true, nil
}
