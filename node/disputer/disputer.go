// Package disputer plays disputes on chain for a role. It checks work against
// what the role computes itself, and opens a dispute where they differ. It makes
// every move that is the role's, as defender or as challenger.
//
// Call [New] for a role's [Player] and [Player.Block] on every block. [Player.Check] is for
// work that has to be right. [OfReplies] returns one for replies of language models.
//
// Invariants: it keeps no state that a restart would miss. Games, roles and turns are read
// from the chain, and the account of a claim is computed again from its start state. It takes
// the seat of a side only if what is computed here bears that side out.
//
// Source: docs/spec/dispute.md; core/dispute has the game.
package disputer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/session"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/tasks"
)

// Player plays all disputes of one account.
type Player struct {
	ctx     context.Context // of the role: an account of a claim outlives the task that began it
	env     *role.Env
	tasks   *tasks.Set
	known   accounts
	replies Replies // nil: it plays games about work
}

// Replies gives accounts of replies, by what their receipts name.
type Replies interface {
	Account(ctx context.Context, session canon.Hash, s *dispute.Sequence) (dispute.SequenceWitness, error)
}

// New returns the player of a role, which plays until ctx is done.
func New(ctx context.Context, env *role.Env) *Player {
	return &Player{ctx: ctx, env: env, tasks: env.NewTasks(4)}
}

// OfReplies returns what plays games about replies of language models, and no others.
func OfReplies(ctx context.Context, env *role.Env, r Replies) *Player {
	p := New(ctx, env)
	p.replies = r
	return p
}

// plays reports whether a game is one of those that this player knows something of.
func (p *Player) plays(d *disputev1.Dispute) bool {
	return (d.Parties.Reply != nil) == (p.replies != nil)
}

// Wait waits until no move is being made, after the context has ended.
func (p *Player) Wait() { p.tasks.Wait() }

// Block makes the moves that are due, in the background, those first whose clock
// runs out first.
func (p *Player) Block(ctx context.Context) error {
	var mine []*disputev1.Dispute
	if err := p.each(ctx, &disputev1.QueryDisputesRequest{Turn: p.env.Account.Address}, func(d *disputev1.Dispute) {
		if p.mine(d) && p.plays(d) {
			mine = append(mine, d)
		}
	}); err != nil {
		return err
	}
	slices.SortFunc(mine, func(a, b *disputev1.Dispute) int {
		return cmp.Or(cmp.Compare(a.Deadline, b.Deadline), cmp.Compare(a.Id, b.Id))
	})
	for _, d := range mine {
		p.tasks.Start(ctx, fmt.Sprintf("dispute %d", d.Id), func(ctx context.Context) error { return p.move(ctx, d.Id) })
	}
	return nil
}

// Substitute takes the seats of sides that have missed an answer and are right, as
// far as this role can tell by computing the claim itself, in the background.
func (p *Player) Substitute(ctx context.Context) error {
	return p.each(ctx, &disputev1.QueryDisputesRequest{Missed: true}, func(d *disputev1.Dispute) {
		if d.Missed && !p.mine(d) && p.plays(d) {
			p.tasks.Start(ctx, fmt.Sprintf("substitution in dispute %d", d.Id), func(ctx context.Context) error { return p.substitute(ctx, d) })
		}
	})
}

// each hands every dispute that a question is about to f. What is not this role's it does not read.
func (p *Player) each(ctx context.Context, q *disputev1.QueryDisputesRequest, f func(*disputev1.Dispute)) error {
	for {
		r, err := disputev1.NewQueryClient(p.env.Chain.Conn).Disputes(ctx, q)
		if err != nil {
			return fmt.Errorf("disputes: %w", err)
		}
		for i := range r.Disputes {
			f(&r.Disputes[i])
		}
		if r.Pagination == nil || len(r.Pagination.NextKey) == 0 {
			return nil
		}
		q.Pagination = &query.PageRequest{Key: r.Pagination.NextKey}
	}
}

// mine reports whether the next move is this account's.
func (p *Player) mine(d *disputev1.Dispute) bool {
	seat := cmp.Or(d.Parties.ChallengerSubstitute, d.Parties.Challenger)
	if d.Turn == disputev1.SIDE_DEFENDER {
		seat = cmp.Or(d.Parties.DefenderSubstitute, d.Parties.Defender)
	}
	return !d.Waiting && seat == p.env.Account.Address
}

// substitute takes the seat of the side to move, if what is computed here bears it
// out.
func (p *Player) substitute(ctx context.Context, d *disputev1.Dispute) error {
	r, err := disputev1.NewQueryClient(p.env.Chain.Conn).Dispute(ctx, &disputev1.QueryDisputeRequest{Dispute: d.Id})
	if err != nil {
		return fmt.Errorf("dispute %d: %w", d.Id, err)
	}
	var g dispute.Game
	if err := canon.Unmarshal(r.Game, &g); err != nil {
		return fmt.Errorf("dispute %d: %w", d.Id, err)
	}
	me, parties := p.env.Account.Address, &r.Dispute.Parties
	other := []string{parties.Defender, parties.DefenderSubstitute}
	if g.Stage.Turn() == dispute.Defender {
		other = []string{parties.Challenger, parties.ChallengerSubstitute}
	}
	if !g.Missed || slices.Contains(other, me) || p.mine(&r.Dispute) {
		return nil
	}
	a, err := p.account(ctx, parties, &g)
	if err != nil {
		return fmt.Errorf("dispute %d: %w", d.Id, err)
	}
	if side, err := a.right(&g); err != nil || side != g.Stage.Turn() {
		return err
	}
	err = p.env.Send(ctx, &disputev1.MsgSubstitute{Substitute: me, Dispute: d.Id, Side: d.Turn})
	if err != nil {
		return fmt.Errorf("take the seat of the %v in dispute %d: %w", g.Stage.Turn(), d.Id, err)
	}
	return nil
}

// move makes this account's next moves in a dispute, until it is not its turn.
func (p *Player) move(ctx context.Context, id uint64) error {
	r, err := disputev1.NewQueryClient(p.env.Chain.Conn).Dispute(ctx, &disputev1.QueryDisputeRequest{Dispute: id})
	if err != nil {
		return fmt.Errorf("dispute %d: %w", id, err)
	}
	if !p.mine(&r.Dispute) {
		return nil
	}
	var g dispute.Game
	if err := canon.Unmarshal(r.Game, &g); err != nil {
		return fmt.Errorf("dispute %d: %w", id, err)
	}
	a, err := p.account(ctx, &r.Dispute.Parties, &g)
	if err != nil {
		return fmt.Errorf("dispute %d: %w", id, err)
	}
	m, err := a.play(&g)
	if p.replies != nil {
		m, err = orConcede(a, &g, m, err)
	}
	if errors.Is(err, dispute.ErrAgree) {
		return fmt.Errorf("dispute %d is lost: the claim agrees with what was computed here", id)
	}
	if err != nil {
		return fmt.Errorf("dispute %d: %w", id, err)
	}
	err = p.env.Send(ctx, &disputev1.MsgMove{Player: p.env.Account.Address, Dispute: id, Move: dispute.EncodeMove(m), Number: uint32(g.Moves)})
	if err != nil {
		return fmt.Errorf("dispute %d, %v: %w", id, g.Stage, err)
	}
	order, err := canon.ParseHash(r.Dispute.Parties.Order)
	if p.replies != nil {
		p.env.Log.Info("a reply is disputed", "dispute", id, "played", g.Stage, "moves", g.Moves+1)
		return err
	}
	target, wrong := wire.TargetFromProto(r.Dispute.Parties.Target)
	p.env.Emit(events.Event{Kind: events.Narrowed, Order: order, Unit: target.Index(), Step: g.Moves + 1, Text: g.Stage.String()})
	return errors.Join(err, wrong)
}

// orConcede returns the move, or one that concedes where the game does not take it because the other side is right: what was signed is not what is
// computed here.
func orConcede(a *account, g *dispute.Game, m dispute.Move, err error) (dispute.Move, error) {
	if err == nil {
		_, err = dispute.Apply(*g, g.Stage.Turn(), m, g.Since)
	}
	if err == nil {
		return m, nil
	}
	side, bad := a.right(g)
	if bad == nil && side != g.Stage.Turn() {
		return &dispute.Concede{}, nil
	}
	return nil, errors.Join(err, bad)
}

// account returns this role's account of what a game is about: one for all games
// about the same segment of the same attempt. It begins at the segment, with the
// checkpoint that both sides agree on, so the steps before are not played again.
func (p *Player) account(ctx context.Context, parties *disputev1.Parties, g *dispute.Game) (*account, error) {
	order, err := canon.ParseHash(parties.Order)
	if err != nil {
		return nil, err
	}
	if parties.Reply != nil {
		return p.reply(order, g.Claim.Sequence)
	}
	t, err := wire.TargetFromProto(parties.Target)
	if err != nil {
		return nil, err
	}
	l, err := p.env.Leases.Get(ctx, order)
	if err != nil {
		return nil, err
	}
	if l, err = p.fill(ctx, l, t); err != nil {
		return nil, err
	}
	j, err := p.env.Jobs.Get(ctx, l)
	if err != nil {
		return nil, err
	}
	k := keyOf(order, t, int(parties.Attempt), segmentOf(g))
	return p.known.get(k, j.WitnessBytes(), func() (dispute.Witness, error) { return p.begin(ctx, l, j, k, g) })
}

// reply returns this role's account of a reply.
func (p *Player) reply(session canon.Hash, s *dispute.Sequence) (*account, error) {
	if s == nil || p.replies == nil {
		return nil, errors.New("nothing is known here of replies")
	}
	const bytes = maxBytes / always // so few are held; the keys and values of long sequences are not counted
	return p.known.get(key{order: canon.Sum(canon.DomainServed, canon.Marshal(&dispute.Claim{Sequence: s}))}, bytes, func() (dispute.Witness, error) {
		w, err := p.replies.Account(p.ctx, session, s)
		return dispute.WitnessOf(w), err
	})
}

// Dispute challenges the reply of a receipt, of a model whose root the receipt names.
func (p *Player) Dispute(ctx context.Context, r *session.Receipt, signature []byte, m *dispute.Model) error {
	return p.env.Send(ctx, wire.DisputeReply(p.env.Account.Address, r, signature, m))
}

// segmentOf returns the segment of its claim that a game is about.
func segmentOf(g *dispute.Game) int { return g.Lo / max(g.Claim.Interval, 1) }

// begin returns an account of the segment that a game is about.
func (p *Player) begin(ctx context.Context, l *job.Lease, j *replay.Job, k key, g *dispute.Game) (dispute.Witness, error) {
	if k.target.Kind() != job.AboutUnit && k.target.Kind() != job.AboutVerdict {
		return p.whole(ctx, l, k.target, g.Claim.Inputs)
	}
	first := k.segment * g.Claim.Interval
	from := g.LoRoot
	if s, err := l.Subject(k.target, k.attempt); err == nil {
		from = s.Points[k.segment]
	} else if g.Lo != first { // void, and its checkpoints are gone from the lease
		return p.whole(ctx, l, k.target, g.Claim.Inputs)
	}
	start, err := p.env.States.Get(ctx, l, from)
	if err != nil && k.target.Kind() == job.AboutUnit && ctx.Err() == nil {
		return p.whole(ctx, l, k.target, g.Claim.Inputs) // nobody hands the checkpoint over
	}
	if err != nil {
		return nil, err
	}
	return j.UnitOf(&l.Order.Problem, k.target.Index()).WitnessFrom(p.ctx, start, first), nil
}

// whole returns this role's account of a whole claim, from its start states.
func (p *Player) whole(ctx context.Context, l *job.Lease, t job.Target, inputs []canon.Hash) (dispute.Witness, error) {
	j, err := p.env.Jobs.Get(ctx, l)
	if err != nil {
		return nil, err
	}
	states := make([]*graph.State, len(inputs))
	for i, r := range inputs {
		if states[i], err = p.env.States.Get(ctx, l, r); err != nil {
			return nil, err
		}
	}
	if t.Kind() == job.AboutMerge {
		return j.MergeWitness(p.ctx, states), nil
	}
	unit := j.UnitOf(&l.Order.Problem, t.Index())
	if t.Kind() == job.AboutTruth || t.Kind() == job.AboutResult {
		unit = unit.From(t.Segment() * l.Order.Problem.Interval)
	}
	return unit.Witness(p.ctx, states[0]), nil
}

// Check compares work with what this role computes. If they differ it opens a
// dispute and reports the work as wrong.
func (p *Player) Check(ctx context.Context, l *job.Lease, t job.Target) (wrong bool, err error) {
	return p.CheckAttempt(ctx, l, t, l.Attempt(t))
}

// CheckAttempt does so with an attempt that need not stand: a verdict can be
// challenged after the work that it is about was refuted. A verdict is wrong if it
// is about the first segment that is.
func (p *Player) CheckAttempt(ctx context.Context, l *job.Lease, t job.Target, attempt int) (wrong bool, err error) {
	l, err = p.fill(ctx, l, t)
	if err != nil {
		return false, err
	}
	s, err := l.Subject(t, attempt)
	if err != nil || s.Defender == p.env.Account.Address { // a forced attempt is wrong by duty, and nobody challenges its own
		return false, err
	}
	w, err := p.whole(ctx, l, t, s.Claim.Inputs)
	if err != nil {
		return false, err
	}
	o, err := dispute.Challenge(s.Claim, s.Points, w)
	if errors.Is(err, dispute.ErrAgree) || err == nil && t.Kind() == job.AboutVerdict && !slices.Contains(s.Audited, o.Segment) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.env.Emit(events.Event{Kind: events.Found, Order: l.Order.ID(), Unit: t.Index(), Text: fmt.Sprintf("segment %d is wrong", o.Segment)})
	return true, p.open(ctx, l, t, attempt, o, w)
}

// fill brings the state roots of the work that t is about. Earlier attempts have theirs.
func (p *Player) fill(ctx context.Context, l *job.Lease, t job.Target) (*job.Lease, error) {
	if t.Kind() == job.AboutTruth {
		return l, nil
	}
	return p.env.Leases.Fill(ctx, l, l.About(t))
}

// CheckTruth looks at what a provider has shown as the truth about a forced attempt. It computes
// some segments, and disputes the first of which that is not true.
func (p *Player) CheckTruth(ctx context.Context, l *job.Lease, f *job.Forced, segments []int) (wrong bool, err error) {
	for _, s := range segments {
		wrong, err := p.CheckAttempt(ctx, l, job.TruthTarget(f.Index, s), f.Unit.Attempt)
		if wrong || err != nil {
			return wrong, err
		}
	}
	return false, nil
}

func (p *Player) open(ctx context.Context, l *job.Lease, t job.Target, attempt int, o dispute.Opening, w dispute.Witness) error {
	l, err := p.env.Leases.Get(ctx, l.Order.ID()) // re-executing the work took a while
	if err != nil {
		return err
	}
	if l.Disputed(p.env.Account.Address, t, attempt) {
		return fmt.Errorf("a dispute about the %v is open: it is looked at again when that is over", t)
	}
	if j, err := p.env.Jobs.Get(ctx, l); err == nil {
		p.known.put(keyOf(l.Order.ID(), t, attempt, o.Segment), j.WitnessBytes(), w)
	}
	if err = p.env.Send(ctx, p.openMsg(l, t, attempt, o)); err != nil {
		return fmt.Errorf("open a dispute: %w", err)
	}
	return nil
}

// Accuse returns the message that disputes a segment of a unit, which was found not
// to lead from its own first checkpoint to its second; nil if nobody can dispute the
// unit now.
func (p *Player) Accuse(ctx context.Context, l *job.Lease, unit, segment int) (*disputev1.MsgOpen, error) {
	t, attempt := job.UnitTarget(unit), l.Units[unit].Attempt
	l, err := p.env.Leases.Get(ctx, l.Order.ID()) // re-executing the work took a while
	if err != nil {
		return nil, err
	}
	u := &l.Units[unit]
	mine := func(c *job.Dispute) bool { return c.Challenger == p.env.Account.Address }
	if u.Attempt != attempt || u.Status != job.Counted || slices.ContainsFunc(l.DisputesAbout(t, attempt), mine) {
		return nil, nil
	}
	if l, err = p.fill(ctx, l, t); err != nil {
		return nil, err
	}
	u = &l.Units[unit]
	return p.openMsg(l, t, attempt, dispute.OpeningOf(u.Receipt.Checkpoints, segment)), nil
}

func (p *Player) openMsg(l *job.Lease, t job.Target, attempt int, o dispute.Opening) *disputev1.MsgOpen {
	return &disputev1.MsgOpen{
		Challenger: p.env.Account.Address, Order: l.Order.ID().String(),
		Target:  wire.TargetToProto(t),
		Attempt: uint32(attempt), Opening: canon.Marshal(&o),
	}
}
