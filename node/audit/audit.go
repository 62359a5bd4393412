// Package audit is a validator's role in the leases of others.
//
// Drawn as custodian, it fetches, checks and keeps the order's files or the data of
// receipts. It attests to them, and shows on chain what it is asked for. Drawn as auditor,
// it re-executes the segments that its VRF picks, and disputes what is wrong.
//
// [Run] is all of it; node/runner calls it beside node/lead.
//
// Invariants: it attests only to what is here and was checked. It reports only what it
// computed itself, and a mismatch is followed by a dispute, since its bond stands behind it.
//
// Source: docs/spec/lease.md; docs/adr/0014-forced-errors.md.
package audit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/disputer"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/tasks"
)

type auditor struct {
	env    *role.Env
	order  *tasks.Set // keeping the files of orders
	fetch  *tasks.Set // keeping
	replay *tasks.Set // auditing
	answer *tasks.Set // showing what is kept
	player *disputer.Player
	judged sync.Map // names of forced attempts whose truth contradicts our word, and holds
}

// Run audits and keeps until ctx is done.
func Run(ctx context.Context, env *role.Env, player *disputer.Player) error {
	a := &auditor{env: env, order: env.NewTasks(0), fetch: env.NewTasks(8), replay: env.NewTasks(4), answer: env.NewTasks(2), player: player}
	defer a.order.Wait()
	defer a.fetch.Wait()
	defer a.replay.Wait()
	defer a.answer.Wait()
	return env.EachBlock(ctx, a.block)
}

func (a *auditor) block(ctx context.Context, b client.Block) error {
	live, err := a.env.Leases.Live(ctx, a.env.Account.Address)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, x := range live {
		l := x.Lease
		a.env.Blobs.Serve(x)
		a.first(ctx, l, b.Time)
		a.units(ctx, l, wanted)
		a.answers(ctx, l)
		a.truth(ctx, l, wanted)
	}
	for _, t := range []*tasks.Set{a.fetch, a.replay} {
		t.Retain(func(name string) bool { return wanted[name] })
	}
	return nil
}

// units starts what is to be done about each unit of a lease.
func (a *auditor) units(ctx context.Context, l *job.Lease, wanted map[string]bool) {
	me := a.env.Account.Address
	for i := range l.Units {
		u := &l.Units[i]
		mine := slices.ContainsFunc(u.Audits, func(x job.Audit) bool { return x.Auditor == me })
		keeps := slices.ContainsFunc(u.Attested, func(x job.Attestation) bool { return x.Custodian == me })
		if u.Receipt == nil || !mine && !keeps && !l.MayAttest(i, me) {
			continue
		}
		// While the receipt stands, a task may still be posting its answer.
		name := leases.AttemptName(l.Order.ID(), i, u.Attempt)
		keep, audit := "keep "+name, "audit "+name
		wanted[keep], wanted[audit] = true, true
		if l.MayAttest(i, me) {
			a.fetch.Start(ctx, keep, func(ctx context.Context) error { return a.attest(ctx, l, i) })
		}
		if u.Status != job.Received && u.Status != job.Counted {
			continue
		}
		for _, x := range u.Audits {
			switch {
			case x.Auditor != me || x.Forfeit || x.Pass:
			case !x.Done:
				a.replay.Start(ctx, audit, func(ctx context.Context) error { return a.audit(ctx, l, i) })
			case u.Status == job.Counted && x.Bonded && !l.Disputed(me, job.UnitTarget(i), u.Attempt): // it owes a dispute
				a.replay.Start(ctx, audit, func(ctx context.Context) error {
					_, err := a.player.Check(ctx, l, job.UnitTarget(i))
					return err
				})
			}
		}
	}
}

// truth disputes what providers show as the truth about forced attempts where it is not
// what this auditor found: it would lose its bond. Of one that was shown before this
// auditor had answered, it looks at the segments that it had to look at: whoever disputes
// a receipt early would else keep a forced attempt from all who audit.
func (a *auditor) truth(ctx context.Context, l *job.Lease, wanted map[string]bool) {
	me := a.env.Account.Address
	for _, f := range l.Forced() {
		name := "truth " + leases.AttemptName(l.Order.ID(), f.Index, f.Unit.Attempt)
		wanted[name] = true
		if _, judged := a.judged.Load(name); judged || l.TruthDisputed(me, f) {
			continue
		}
		if doubted := a.doubted(f); len(doubted) > 0 {
			a.replay.Start(ctx, name, func(ctx context.Context) error {
				wrong, err := a.player.CheckTruth(ctx, l, f, doubted)
				if err == nil && !wrong {
					a.judged.Store(name, true)
				}
				return err
			})
		}
	}
}

// doubted returns the segments of a forced attempt of whose truth this auditor must make
// sure: all, where its bond depends on them; those that it was to look at, where it had
// not answered yet.
func (a *auditor) doubted(f *job.Forced) (segments []int) {
	me := a.env.Account.Address
	for i := range f.Unit.Audits {
		switch x := &f.Unit.Audits[i]; {
		case x.Auditor != me:
		case x.Done && x.Bonded && !f.Right(x):
			return f.Segments()
		case !x.Done && !x.Forfeit:
			output, _, err := vrf.Prove(a.env.Keys.VRF, proof.AuditInput(f.Unit.Receipt.ID(), me))
			if err == nil { // as it is, for a key that was registered
				return proof.Segments(output[:], len(f.Truth), f.Unit.Audited)
			}
		}
	}
	return nil
}

// files keeps what every unit of a lease needs: the order's files, and the
// states that rounds start from, unless custodians keep fragments: these states can be
// computed from those of which there are.
func (a *auditor) files(ctx context.Context, l *job.Lease) error {
	// What makes up the work first: nothing else is fetched of an order that it does not.
	if _, err := a.env.Jobs.Get(ctx, l); err != nil {
		return err
	}
	for _, f := range l.Order.Problem.Files {
		if _, err := a.env.Blobs.FetchFile(ctx, l, f); err != nil {
			return err
		}
	}
	if l.Order.Fragments().Cuts() || !l.Order.Problem.Merges() {
		return nil
	}
	for r := range l.Round {
		if err := a.env.States.Ensure(ctx, l, l.Merges[r].Root); err != nil {
			return err
		}
	}
	return nil
}

// attest fetches and checks all that a unit needs: the order's files, its start
// state and its checkpoints, of which it keeps a fragment where they are cut.
func (a *auditor) attest(ctx context.Context, l *job.Lease, i int) error {
	if err := a.files(ctx, l); err != nil {
		return err
	}
	l, err := a.env.Leases.Fill(ctx, l, l.AboutUnit(i))
	if err != nil {
		return err
	}
	r := l.Units[i].Receipt
	fragment, err := a.hold(ctx, l, i)
	if err != nil {
		return err
	}
	err = a.env.Send(ctx, &workv1.MsgAttest{
		Custodian: a.env.Account.Address, Order: l.Order.ID().String(), Unit: uint32(i), Attempt: uint32(r.Attempt), Fragment: wire.FragmentToProto(fragment),
	})
	if err != nil {
		return fmt.Errorf("attest to unit %d: %w", i, err)
	}
	a.env.Emit(events.Event{Kind: events.Attested, Order: l.Order.ID(), Unit: i})
	return nil
}

// hold keeps a unit's checkpoints, or makes and keeps the fragment of them that it
// returns.
func (a *auditor) hold(ctx context.Context, l *job.Lease, i int) (*job.Fragment, error) {
	if l.Order.Fragments().Cuts() {
		number, ok := l.FreeFragment(i, a.env.Account.Address)
		if !ok {
			return nil, fmt.Errorf("all fragments of unit %d are kept", i)
		}
		return a.env.States.PutFragments(ctx, l, i, number)
	}
	for _, root := range l.Units[i].Receipt.Checkpoints {
		if err := a.env.States.Ensure(ctx, l, root); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// audit re-executes the segments that this auditor's VRF picks and answers. Of what is
// wrong it opens a dispute in the same transaction, or in a later block where the unit
// cannot be disputed yet.
func (a *auditor) audit(ctx context.Context, l *job.Lease, i int) error {
	l, err := a.env.Leases.Fill(ctx, l, l.AboutUnit(i))
	if err != nil {
		return err
	}
	r := l.Units[i].Receipt
	me := a.env.Account.Address
	output, pi, err := vrf.Prove(a.env.Keys.VRF, proof.AuditInput(r.ID(), me))
	if err != nil {
		return err
	}
	segments := proof.Segments(output[:], l.Order.Problem.Segments(), l.Units[i].Audited)
	top, err := a.largest(ctx, l, r, segments)
	if err != nil {
		return err
	}
	segments = append(segments, top...)
	outcomes, err := a.env.States.Truth(ctx, l, r, segments)
	if err != nil {
		return err
	}
	wrong := -1
	for i, s := range segments {
		if wrong < 0 && outcomes[i].End != r.Checkpoints[s+1] {
			wrong = s
		}
	}
	digest := proof.Digest(me, r.ID(), outcomes)
	answer := []sdk.Msg{&workv1.MsgReport{
		Auditor: me, Order: l.Order.ID().String(), Unit: uint32(i), Attempt: uint32(r.Attempt),
		Proof: pi, Digest: digest[:], Pass: wrong < 0, Top: indices(top),
	}}
	text := fmt.Sprintf("segments %v hold", segments)
	if wrong >= 0 {
		text = fmt.Sprintf("segment %d does not hold", wrong)
		accusation, err := a.player.Accuse(ctx, l, i, wrong)
		if err != nil {
			return err
		}
		if accusation != nil {
			answer = append(answer, accusation)
		}
	}
	err = a.env.Send(ctx, answer...)
	if err != nil && len(answer) > 1 { // then the dispute is opened by itself, in a later block
		a.env.Log.Warn("a report was refused together with its dispute", "unit", i, "error", err)
		answer = answer[:1]
		err = a.env.Send(ctx, answer...)
	}
	if err != nil {
		return fmt.Errorf("report on unit %d: %w", i, err)
	}
	a.env.Emit(events.Event{Kind: events.Audited, Order: l.Order.ID(), Unit: i, Text: text})
	if len(answer) > 1 {
		a.env.Emit(events.Event{Kind: events.Found, Order: l.Order.ID(), Unit: i, Text: fmt.Sprintf("segment %d is wrong", wrong)})
	}
	return nil
}

// largest returns the segments with the largest updates beside those that are
// audited, as many as the order wants.
func (a *auditor) largest(ctx context.Context, l *job.Lease, r *job.Receipt, audited []int) ([]int, error) {
	q := l.Order.Conditions.TopSegments
	if q == 0 {
		return nil, nil
	}
	var sizes []float64
	var before *graph.State
	for _, root := range r.Checkpoints {
		after, err := a.env.States.Get(ctx, l, root)
		if err != nil {
			return nil, err
		}
		if before != nil {
			sizes = append(sizes, replay.Distance(before, after))
		}
		before = after
	}
	return proof.Largest(sizes, q, audited), nil
}

func indices(segments []int) (out []uint32) {
	for _, s := range segments {
		out = append(out, uint32(s))
	}
	return out
}
