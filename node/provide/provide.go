// Package provide is the role that sells computation: it takes units that leads
// offer, computes them, keeps their checkpoints and posts its own receipts. It also keeps lots on
// sale at auctions, seals bids there, and takes on the orders that it sold to.
//
// [Run] is all of it; node/runner calls it.
//
// Invariant: it accepts an offer, or asks for a unit, only if the order's files are here and loaded, but for the records of a
// shard, and this machine can fetch these and compute a unit in time: being late costs a penalty. Places of replicas are drawn unasked.
//
// Source: docs/spec/lease.md.
package provide

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/sync/errgroup"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/disputer"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/seals"
	"github.com/tally-network/tally/node/states"
	"github.com/tally-network/tally/node/tasks"
	"github.com/tally-network/tally/p2p"
)

// Options are a provider's own choices.
type Options struct {
	Parallel int             // units computed at a time; 1 if zero
	Lots     []auctionv1.Lot // on sale at auctions, by tier
}

type provider struct {
	env         *role.Env
	units       *tasks.Set
	loads       *tasks.Set // fetching and loading orders
	sends       *tasks.Set // showing forced draws, and asking for units
	player      *disputer.Player
	idle        map[canon.Hash]int64             // protocol time since when an order has given us nothing, ms
	lots        []auctionv1.Lot                  // on sale at auctions, by the settings
	fit         atomic.Pointer[[]auctionv1.Lot]  // those of them that the chain would take
	sold        atomic.Pointer[string]           // what may be sold, as it was told last
	hand        byHand                           // which tiers of these a person has changed
	refused     atomic.Int32                     // how often in a row the chain did not take its lots
	selling     atomic.Bool                      // something of ours is on sale
	bound       atomic.Bool                      // we have sold some to orders whose leases have not begun
	sealedRules atomic.Pointer[auctionv1.Params] // the rules, if by them bids are sealed
	warned      atomic.Bool                      // of a balance that is too small for them
	bids        seals.Bidder                     // of those
	sellAt      int64                            // protocol time of the next look at them, ms
	speed       atomic.Uint64                    // FLOP per second of the last segment that was computed here; 0: none yet
}

// Run provides until ctx is done.
func Run(ctx context.Context, env *role.Env, player *disputer.Player, o Options) error {
	p := &provider{env: env, units: env.NewTasks(max(o.Parallel, 1)), loads: env.NewTasks(16), sends: env.NewTasks(4), player: player, idle: map[canon.Hash]int64{}, lots: o.Lots}
	p.fit.Store(&p.lots)
	p.selling.Store(true) // before this start something may have been sold
	p.bids = seals.Bidder{Dir: env.Seals, Chain: env.Chain.ChainID, Account: env.Account.Address, Query: auctionv1.NewQueryClient(env.Chain.Conn), Send: env.Send}
	defer p.units.Wait()
	defer p.loads.Wait()
	defer p.sends.Wait()
	role.Offers.Handle(env.Host, p.offered)
	err := env.EachBlock(ctx, p.block)
	p.warnSealed(ctx)
	return err
}

// patience is how long a lead's offer waits for our node to know of it, and then
// for the order's files, which are fetched in any case.
const patience = 2 * time.Second

// offered answers a lead that offers a unit. For whom else nothing is looked up: a lease
// is large, and every lead is a validator.
func (p *provider) offered(ctx context.Context, from peer.ID, o role.UnitOffer) (role.UnitAnswer, error) {
	if !p.env.Peers.HasRole(ctx, from, providerv1.ROLE_VALIDATOR) {
		return role.UnitAnswer{}, p2p.ErrRefused
	}
	l, err := p.due(ctx, from, o)
	if err != nil {
		return role.UnitAnswer{}, err
	}
	// Taking a unit whose files are late, or do not make up the order, would cost
	// a penalty.
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := p.env.Jobs.Await(wait, l); err != nil {
		return role.UnitAnswer{Reason: role.Clip(err.Error(), role.MaxReason)}, nil
	}
	if err := canMake(l, p.speed.Load()); err != nil {
		return role.UnitAnswer{Reason: role.Clip(err.Error(), role.MaxReason)}, nil
	}
	if err := p.roomFor(wait, l, o.Unit); err != nil {
		return role.UnitAnswer{Reason: role.Clip(err.Error(), role.MaxReason)}, nil
	}
	a := job.Acceptance{Order: o.Order, Unit: o.Unit, Attempt: o.Attempt, Provider: p.env.Account.Address}
	return role.UnitAnswer{Signature: ed25519.Sign(p.env.Keys.Peer, a.SignBytes())}, nil
}

// roomFor returns an error unless there is room for the records of a unit, whose job is here.
func (p *provider) roomFor(ctx context.Context, l *job.Lease, unit int) error {
	j, err := p.env.Jobs.Get(ctx, l)
	if err != nil {
		return err
	}
	return j.UnitOf(&l.Order.Problem, unit).Reserve()
}

// canMake returns an error unless a machine of so many FLOP per second, 0 if that was
// never measured, computes a unit in the order's time: being late costs a penalty.
func canMake(l *job.Lease, speed uint64) error {
	c := &l.Order.Conditions
	if speed == 0 {
		return nil // the rules leave time for the slowest machine that the chain counts on
	}
	fetch, err := l.Params.Fetch(&l.Order)
	if err != nil && l.Params.Link > 0 {
		return err
	}
	need := float64(l.Order.Problem.UnitFLOPs())/float64(speed)*1000 + float64(fetch) + float64(l.Params.Allowance)
	if need > float64(c.UnitTimeout) {
		return fmt.Errorf("a unit of %d FLOP takes about %.0f ms here, at %d FLOP/s; its time is %d ms", l.Order.Problem.UnitFLOPs(), need, speed, c.UnitTimeout)
	}
	return nil
}

// due returns the lease once it shows that the caller may offer the unit now: a
// lead must not collect acceptances to use them when it suits it. Our node may
// be some blocks behind the lead's.
func (p *provider) due(ctx context.Context, from peer.ID, o role.UnitOffer) (*job.Lease, error) {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		height := p.env.Chain.Head().Height
		l, err := p.env.Leases.Get(ctx, o.Order)
		if err == nil {
			if err := p.mayOffer(ctx, l, from); err != nil {
				return nil, err
			}
		}
		if err == nil && l.Phase == job.Active && o.Unit/l.Order.Problem.Shards == l.Round && o.Unit < len(l.Units) {
			if u := &l.Units[o.Unit]; u.Status == job.Open && u.Attempt == o.Attempt {
				return l, nil
			}
		}
		if err == nil {
			err = fmt.Errorf("attempt %d of unit %d is not to be given out now", o.Attempt, o.Unit)
		}
		if _, late := p.env.Chain.Next(wait, height); late != nil {
			return nil, err
		}
	}
}

// mayOffer returns an error unless the caller leads the lease and this provider
// is part of it.
func (p *provider) mayOffer(ctx context.Context, l *job.Lease, from peer.ID) error {
	lead, err := p.env.Peers.Registered(ctx, l.Lead())
	if err != nil {
		return err
	}
	if id, err := p2p.PeerID(lead.PeerKey); err != nil || id != from {
		return fmt.Errorf("order %s is led by %s, whose peer you are not", l.Order.ID().Short(), l.Lead())
	}
	if !slices.ContainsFunc(l.Providers, func(x job.Party) bool { return x.Account == p.env.Account.Address }) {
		return fmt.Errorf("%s is not a provider of order %s", p.env.Account.Address, l.Order.ID().Short())
	}
	return nil
}

func (p *provider) block(ctx context.Context, b client.Block) error {
	live, err := p.env.Live(ctx)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, x := range live {
		l := x.Lease
		p.env.Blobs.Serve(x)
		if l.Phase == job.Active && l.Files.Said == job.Had && !p.env.Jobs.Has(l) {
			p.loads.Start(ctx, l.Order.ID().String(), func(ctx context.Context) error {
				_, err := p.env.Jobs.Get(ctx, l)
				return err
			})
		}
		for i := range l.Units {
			u := &l.Units[i]
			p.replica(ctx, l, i, wanted)
			if u.Provider != p.env.Account.Address {
				continue
			}
			name := leases.AttemptName(l.Order.ID(), i, u.Attempt)
			wanted[name] = true // while it is ours, a task may still be posting its receipt
			if l.ForcedDrawDue(i, b.Time) {
				p.sends.Start(ctx, "forced draw "+name, func(ctx context.Context) error { return p.proveDraw(ctx, l, i) })
			}
			if u.Status != job.Assigned || !l.ForcedDrawn(i) {
				continue
			}
			if !p.env.Jobs.Holds(l, i) { // waiting for records takes no processor from other units
				p.loads.Start(ctx, name, func(ctx context.Context) error { return p.env.Jobs.Hold(ctx, l, i) })
				continue
			}
			p.units.Start(ctx, name, func(ctx context.Context) error {
				if ours, err := p.stillOurs(ctx, l, i); !ours {
					return err
				}
				return p.compute(ctx, l, i)
			})
		}
		if p.passedOver(l, b.Time) {
			p.sends.Start(ctx, "ready "+l.Order.ID().String(), func(ctx context.Context) error { return p.ready(ctx, l) })
		}
	}
	p.sell(ctx, b, live)
	maps.DeleteFunc(p.idle, func(order canon.Hash, _ int64) bool {
		return !slices.ContainsFunc(live, func(l leases.Lease) bool { return l.Order.ID() == order })
	})
	p.units.Retain(func(name string) bool { return wanted[name] })
	return nil
}

// stillOurs reports whether a unit is still to be computed here. Its receipt may have been posted since the chain was asked for the lease.
func (p *provider) stillOurs(ctx context.Context, l *job.Lease, i int) (bool, error) {
	now, err := p.env.Leases.Get(ctx, l.Order.ID())
	if err != nil {
		return false, err
	}
	u := &now.Units[i]
	return u.Status == job.Assigned && u.Provider == p.env.Account.Address && u.Attempt == l.Units[i].Attempt, nil
}

// passedOver reports whether the lead of an order has given us nothing for as long as it may be
// idle, while we could work and others did. Where nobody works, a quarter of the lead's time is
// enough, so that it is known who was ready when all of it is over.
func (p *provider) passedOver(l *job.Lease, now int64) bool {
	me, order := p.env.Account.Address, l.Order.ID()
	ours := func(u job.Unit) bool { return u.Provider == me && u.Status == job.Assigned }
	others := func(u job.Unit) bool { return u.Provider != "" && u.Provider != me }
	units := l.RoundUnits()
	able := l.Phase == job.Active && l.Order.Conditions.Replicas == 0 && l.Files.Said == job.Had && p.env.Jobs.Has(l) && slices.Contains(l.Eligible(), me) && !slices.Contains(l.Waits(), me) && canMake(l, p.speed.Load()) == nil
	if !able || slices.ContainsFunc(units, ours) {
		delete(p.idle, order)
		return false
	}
	if _, ok := p.idle[order]; !ok {
		p.idle[order] = now
	}
	if !slices.ContainsFunc(units, others) {
		return l.DueSince != 0 && now-l.DueSince >= l.Params.LeadTimeout/4
	}
	return now-p.idle[order] >= l.Params.LeadTimeout
}

// ready asks the chain for the next unit of an order. Who is jailed for another order would be
// refused, and pay for that.
func (p *provider) ready(ctx context.Context, l *job.Lease) error {
	me, err := p.env.Peers.Registered(ctx, p.env.Account.Address)
	if err != nil || me.JailedUntil > p.env.Chain.Head().Time {
		return err
	}
	if err := p.roomFor(ctx, l, l.Round*l.Order.Problem.Shards); err != nil { // shards are alike
		return fmt.Errorf("ask for a unit: %w", err)
	}
	err = p.env.Send(ctx, &workv1.MsgReady{Provider: p.env.Account.Address, Order: l.Order.ID().String()})
	if err != nil {
		return fmt.Errorf("ask for a unit: %w", err)
	}
	p.env.Emit(events.Event{Kind: events.Ready, Order: l.Order.ID(), Unit: -1, Text: "for the next unit"})
	return nil
}

// compute computes a unit from its last checkpoint here, and posts the receipt.
func (p *provider) compute(ctx context.Context, l *job.Lease, i int) error {
	problem, u := &l.Order.Problem, &l.Units[i]
	j, err := p.env.Jobs.Get(ctx, l)
	if err != nil {
		return err
	}
	notes := p.notes(l.Order.ID(), i, u.Attempt)
	done, s, err := p.resume(ctx, l, i, notes)
	if err != nil {
		return errors.Join(err, p.doubtStart(ctx, l, i))
	}
	roots := []canon.Hash{l.RoundStart(i / problem.Shards)}
	for _, c := range done {
		roots = append(roots, c.Root)
	}
	drawn, err := p.forcedDraw(l, i, u.Attempt)
	if err != nil {
		return err
	}
	unit := j.UnitOf(problem, i)
	save, playing := errgroup.WithContext(ctx) // a checkpoint, while the next segment is computed
	save.SetLimit(1)
	for at := len(done) * problem.Interval; at < problem.Steps; {
		to := min(at+problem.Interval, problem.Steps)
		begun := time.Now()
		var inner canon.Hash
		if s, inner, err = p.play(playing, l, unit, s, at, to); err != nil {
			return errors.Join(save.Wait(), err)
		}
		p.speed.Store(uint64(float64(problem.StepFLOPs) * float64(to-at) / max(time.Since(begun).Seconds(), 1e-6)))
		s, at = drawn.present(at/problem.Interval, s), to
		reached := s
		save.Go(func() error {
			root, ref, err := p.env.States.Put(l.Order.ID(), reached)
			if err != nil {
				return err
			}
			roots, done = append(roots, root), append(done, checkpoint{root, inner, blobs.File("state", ref)})
			return notes.save(done)
		})
	}
	if err := save.Wait(); err != nil {
		return err
	}
	r, err := p.receipt(l, i, roots, done)
	if err != nil {
		return err
	}
	if l.Order.Conditions.Replicas > 0 {
		return p.answer(ctx, l, r, done, notes)
	}
	if err := p.submit(ctx, r); err != nil {
		return err
	}
	return notes.remove()
}

// resume returns the checkpoints of a unit that are still here, and the state to
// go on from.
func (p *provider) resume(ctx context.Context, l *job.Lease, i int, n notes) ([]checkpoint, *state, error) {
	done, err := n.load()
	if err != nil {
		p.env.Log.Warn("begin the unit again", "unit", i, "error", err)
	}
	for ; len(done) > 0; done = done[:len(done)-1] {
		if s, err := p.env.States.Get(ctx, l, done[len(done)-1].Root); err == nil {
			return done, s, nil
		}
	}
	s, err := p.env.States.Get(ctx, l, l.RoundStart(i/l.Order.Problem.Shards))
	return nil, s, err
}

// doubtStart disputes the merge that a unit starts from, if it is wrong. Where nobody has the start, only a
// dispute keeps who should compute from being late.
func (p *provider) doubtStart(ctx context.Context, l *job.Lease, i int) error {
	round := i/l.Order.Problem.Shards - 1
	if round < 0 || !l.Order.Problem.Merges() {
		return nil
	}
	merge := job.MergeTarget(round)
	if l.Disputed(p.env.Account.Address, merge, l.Attempt(merge)) {
		return nil
	}
	_, err := p.player.Check(ctx, l, merge)
	return err
}

// progress tells how fast a unit goes.
func (p *provider) progress(order canon.Hash, unit int) func(int, *state) error {
	begun, first := time.Now(), -1
	return func(done int, s *state) error {
		if first < 0 {
			first = done - 1
		}
		rate := float64(done-first) / max(time.Since(begun).Seconds(), 1e-6)
		p.env.Emit(events.Event{Kind: events.Computed, Order: order, Unit: unit, Step: done, Loss: lossOf(s), Rate: rate})
		return nil
	}
}

// receipt stores the list of a unit's checkpoints, and makes its receipt.
func (p *provider) receipt(l *job.Lease, i int, roots []canon.Hash, done []checkpoint) (r job.Receipt, err error) {
	var c states.CheckpointList
	for _, d := range done {
		c.States = append(c.States, d.File)
	}
	order := l.Order.ID()
	ref, err := p.env.Store.PutBytes(blobs.ListPin(order), canon.Marshal(&c))
	if err != nil {
		return r, err
	}
	return job.Receipt{
		Order: order, Unit: i, Attempt: l.Units[i].Attempt, Provider: p.env.Account.Address,
		Start: roots[0], Checkpoints: roots, FLOPs: l.Order.Problem.UnitFLOPs(), Data: blobs.File("checkpoints", ref),
	}, nil
}

func (p *provider) submit(ctx context.Context, r job.Receipt) error {
	err := p.env.Send(ctx, &workv1.MsgSubmit{
		Provider: r.Provider, Receipt: wire.ReceiptToProto(&r), Signature: ed25519.Sign(p.env.Keys.Peer, r.SignBytes()),
	})
	if err != nil {
		return fmt.Errorf("post the receipt of unit %d: %w", r.Unit, err)
	}
	p.env.Emit(events.Event{Kind: events.Posted, Order: r.Order, Unit: r.Unit, Text: "receipt " + r.ID().Short()})
	return nil
}
