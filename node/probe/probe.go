// Package probe has the chain measure how fast this provider is.
//
// [Run] is all of it; node/runner calls it for every provider. If the settings ask for a probe, and the registry knows of
// none, it opens one. It goes on with one that somebody has opened by hand. When the probe has its seed, it orders the batch
// of that seed from itself, under its own validator, and hands over the files. The provider of this home computes the batch
// as any other order.
//
// Invariants: of a seed at most one order waits or is under way. Its maximum price is what its own rates come to, and a
// tenth more. It is posted only if the account can lock that. How far a probe is, the chain knows, so it goes on after a restart.
//
// Source: core/probe, docs/spec/market.md.
package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/probe"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	probev1 "github.com/tally-network/tally/gen/tally/probe/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/tasks"
)

const (
	pause  = 2 * time.Minute // after something failed: each attempt costs fees
	stale  = 60_000          // ms of protocol time after which a seed without an order is drawn anew
	orders = 64              // of ours, the last, that we look through for that of a seed
	rarely = 8               // doublings of the pause between probes that show nothing

	leastTime = 20 * time.Second // in an order, for blocks, where the rules ask for less
)

// Run has the provider measured over so long, until ctx is done. If that is 0, it is not measured, and nothing is done.
func Run(ctx context.Context, env *role.Env, over time.Duration) error {
	if over == 0 {
		return nil
	}
	m := &meter{env: env, over: over, work: env.NewTasks(1)}
	defer m.work.Wait()
	return env.EachBlock(ctx, m.block)
}

type meter struct {
	env   *role.Env
	over  time.Duration
	work  *tasks.Set
	after time.Time // by this machine's clock, before which nothing is tried again

	opened int       // probes
	opens  time.Time // likewise, before which none is opened: each costs fees

	told     uint64     // FLOP/s that was told to be shown
	counted  canon.Hash // the order whose quarters are counted
	quarters int        // of it that were told to be done
}

// block hands over files of our own orders, and does what is next.
func (m *meter) block(ctx context.Context, at client.Block) error {
	m.work.Start(ctx, "measure this machine", func(ctx context.Context) error { return m.next(ctx, at.Time) })
	return m.env.ServeOrders(ctx)
}

// next opens a probe, or posts its order. One task at a time does so.
func (m *meter) next(ctx context.Context, now int64) (err error) {
	if time.Now().Before(m.after) {
		return nil
	}
	defer func() {
		if err != nil && ctx.Err() == nil {
			m.after = time.Now().Add(pause)
			m.env.Emit(events.Event{Kind: events.Trouble, Unit: -1, Text: "the probe of this machine: " + err.Error()})
		}
	}()
	me := m.env.Account.Address
	at, err := providerv1.NewQueryClient(m.env.Chain.Conn).Peer(ctx, &providerv1.QueryPeerRequest{Account: me}) // as it is now: a probe may just be over
	if err != nil || at.Peer.Listing.Validator == "" {
		return err
	}
	peer := at.Peer
	r, err := probev1.NewQueryClient(m.env.Chain.Conn).Probe(ctx, &probev1.QueryProbeRequest{Account: me})
	switch {
	case status.Code(err) == codes.NotFound && peer.Pace.Probed > 0:
		m.shown(at)
		return nil
	case status.Code(err) == codes.NotFound:
		return m.open(ctx, &peer)
	case err != nil || len(r.Probe.Seed) != len(canon.Hash{}):
		return err
	}
	seed := canon.Hash(r.Probe.Seed)
	switch posted, err := m.posted(ctx, seed); {
	case err != nil:
		return err
	case !posted.IsZero():
		return m.progress(ctx, posted)
	case now > r.Probe.DrawnMs+stale:
		return m.open(ctx, &peer) // its time has run too long
	}
	return m.post(ctx, &peer, seed)
}

// open opens a probe, if its order could be posted: of whatever seed, for it costs as much.
func (m *meter) open(ctx context.Context, peer *providerv1.Peer) error {
	if time.Now().Before(m.opens) {
		return nil
	}
	_, o, err := m.order(ctx, peer, canon.Hash{})
	if err != nil {
		return err
	}
	text := "opens a probe"
	if m.opened > 0 {
		text = "opens another probe, since the last one has shown nothing"
	}
	m.opens = time.Now().Add(pause << min(m.opened, rarely))
	if err := m.env.Send(ctx, &probev1.MsgOpen{Account: m.env.Account.Address}); err != nil {
		return err
	}
	m.opened++
	m.env.Emit(events.Event{Kind: events.Probed, Unit: -1, Text: fmt.Sprintf("%s: the chain measures how fast this machine is. It is an order of %d runs to itself, for %v at most; what is not burnt, nor paid to others who judge and lead, comes back", text, o.Problem.Records, consume.Amount(o.Conditions.MaxPrice))})
	return nil
}

// progress tells when another quarter of a probe is done.
func (m *meter) progress(ctx context.Context, order canon.Hash) error {
	l, err := m.env.Leases.Get(ctx, order)
	if status.Code(err) == codes.NotFound { // it waits in the book
		return nil
	}
	if err != nil {
		return err
	}
	if order != m.counted {
		m.counted, m.quarters = order, 0
	}
	done := 0
	for i := range l.Units {
		if l.Units[i].Status == job.Accepted {
			done++
		}
	}
	if q := 4 * done / max(len(l.Units), 1); q > m.quarters {
		m.quarters = q
		m.env.Emit(events.Event{Kind: events.Probed, Order: order, Unit: -1, Text: fmt.Sprintf("its probe: %d of %d units are accepted", done, len(l.Units))})
	}
	return nil
}

// shown tells what a probe has shown, once.
func (m *meter) shown(at *providerv1.QueryPeerResponse) {
	if m.told == at.Peer.Pace.Probed {
		return
	}
	m.told, m.opened = at.Peer.Pace.Probed, 0
	m.env.Emit(events.Event{Kind: events.Probed, Unit: -1, Text: fmt.Sprintf("its probe has shown %.4g GFLOP/s: tier %s, for %d days from then on", float64(m.told)/1e9, at.Tier, probe.StandsMs/(24*3_600_000))})
}

// posted returns the order of ours for a seed that is in the book, or under way; zeros if there is none.
func (m *meter) posted(ctx context.Context, seed canon.Hash) (canon.Hash, error) {
	return under(ctx, m.env.Chain.Conn, m.env.Account.Address, func(o *job.Order) bool { return probe.ForSeed(o, seed) })
}

// UnderWay reports whether a probe that an account has ordered from itself is in the book, or computed. If it opens another, that one shows nothing.
func UnderWay(ctx context.Context, conn grpc.ClientConnInterface, account string) (bool, error) {
	order, err := under(ctx, conn, account, func(o *job.Order) bool { return probe.IsProbe(&o.Problem) })
	return !order.IsZero(), err
}

// under returns the last order of an account that is of some kind, and not over; zeros if there is none.
func under(ctx context.Context, conn grpc.ClientConnInterface, account string, of func(*job.Order) bool) (canon.Hash, error) {
	r, err := marketv1.NewQueryClient(conn).Orders(ctx, &marketv1.QueryOrdersRequest{
		Consumer: account, Pagination: &query.PageRequest{Limit: orders, Reverse: true}, // older ones are kept for long
	})
	if err != nil {
		return canon.Hash{}, fmt.Errorf("ask for the orders of %s: %w", account, err)
	}
	for i := range r.Orders {
		if s := r.Orders[i].Posting.Status; s != marketv1.STATUS_OPEN && s != marketv1.STATUS_LEASED {
			continue
		}
		o, err := wire.OrderFromProto(&r.Orders[i].Order)
		if err != nil {
			return canon.Hash{}, err
		}
		if of(&o) {
			return o.ID(), nil
		}
	}
	return canon.Hash{}, nil
}

// order returns the order of a seed, which the account can pay.
func (m *meter) order(ctx context.Context, peer *providerv1.Peer, seed canon.Hash) (*consume.Draft, *job.Order, error) {
	d, err := m.draft(ctx, peer, seed)
	if err != nil {
		return nil, nil, err
	}
	o, err := d.Order(consume.BuyerOf(m.env))
	if err != nil {
		return nil, nil, err
	}
	o.Nonce = 0 // a seed has one order
	if err := m.price(ctx, &o); err != nil {
		return nil, nil, err
	}
	if err := consume.Afford(ctx, m.env, &o); err != nil {
		return nil, nil, fmt.Errorf("a probe of %v is an order to oneself, whose price comes back but for wages and taxes: %w", m.over, err)
	}
	return d, &o, nil
}

// post orders the batch of a seed from ourselves.
func (m *meter) post(ctx context.Context, peer *providerv1.Peer, seed canon.Hash) error {
	d, o, err := m.order(ctx, peer, seed)
	if err != nil {
		return err
	}
	if err := consume.Keep(m.env, o, d.Body()); err != nil {
		return err
	}
	if _, err := consume.Post(ctx, m.env, o); err != nil {
		return err
	}
	m.env.Emit(events.Event{Kind: events.Probed, Order: o.ID(), Unit: -1, Text: fmt.Sprintf("posts a probe of %d runs to itself, for %v at most", o.Problem.Records, consume.Amount(o.Conditions.MaxPrice))})
	return nil
}

// draft makes the probe of a seed, of as many runs as this machine makes in its time.
func (m *meter) draft(ctx context.Context, peer *providerv1.Peer, seed canon.Hash) (*consume.Draft, error) {
	g := probe.Model()
	dataset := func(runs int) replay.Dataset {
		return replay.Dataset{Model: g, Records: probe.Records(seed, runs), Batch: 1}
	}
	r, err := workv1.NewQueryClient(m.env.Chain.Conn).Params(ctx, &workv1.QueryParamsRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the rules: %w", err)
	}
	rules := wire.ParamsFromProto(r.Params)
	first, err := consume.FromDataset(ctx, m.spec(peer, 1, rules, 0), dataset(probe.Fewest), m.env.Jobs.Exec)
	if err != nil {
		return nil, err
	}
	begun := time.Now() // the run includes loading, so the speed is rather too low
	if _, err := first.Job.UnitOf(&first.Problem, 1).Play(ctx, first.Job.Start, 0, 1, nil); err != nil {
		return nil, err
	}
	took := time.Since(begun)
	speed := float64(probe.RunFLOPs) / max(took.Seconds(), 1e-9)
	runs := probe.Runs(uint64(speed), uint64(m.over.Milliseconds()))
	return consume.FromDataset(ctx, m.spec(peer, min(max(runs/64, 4), 32), rules, took), dataset(runs), m.env.Jobs.Exec)
}

// spec says what the order of a probe asks for, in units of so many runs, of which one takes so long here. The slowest machine that the
// rules count on may make them in its times, and this one at a quarter of its speed.
func (m *meter) spec(peer *providerv1.Peer, steps int, rules job.Params, run time.Duration) consume.BatchSpec {
	s := consume.BatchSpec{Conditions: consume.Default().Conditions}
	s.Problem.Steps = steps
	c := &s.Conditions
	blocks := max(leastTime, 2*time.Duration(rules.Allowance)*time.Millisecond)
	unit := max(time.Duration(steps)*4*run, time.Duration(uint64(steps)*probe.RunFLOPs*1000/max(rules.Speed, 1))*time.Millisecond)
	c.UnitTimeout, c.UnitWindow, c.Window = consume.Duration(2*unit+blocks), consume.Duration(blocks), consume.Duration(unit+2*blocks)
	c.Validator = peer.Listing.Validator
	c.Providers, c.OnlyProviders = 1, []string{m.env.Account.Address}
	c.Assurance = consume.SpecAssurance{Audit: &consume.SpecAudit{Auditors: 1, Segments: probe.Audited(steps)}}
	return s
}

// price sets what an order costs at our own rates, with as many custodians as there are, up to what it asks for.
func (m *meter) price(ctx context.Context, o *job.Order) error {
	asked, most := *o, o.Conditions.Custodians
	asked.Conditions.MaxPrice, asked.Conditions.Custodians = 0, 1 // any
	b, err := m.quote(ctx, &asked)
	if err != nil {
		return err
	}
	asked.Conditions.Custodians = max(1, min(most, int(b.Referees)))
	if b, err = m.quote(ctx, &asked); err != nil {
		return err
	}
	o.Conditions.Custodians, o.Conditions.MaxPrice = asked.Conditions.Custodians, b.Price+b.Price/10 // what a rule may add meanwhile
	return nil
}

// quote returns what our validator's offer takes for an order.
func (m *meter) quote(ctx context.Context, o *job.Order) (*marketv1.Bid, error) {
	q, err := consume.Quote(ctx, m.env, o)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(q.Bids, func(b marketv1.Bid) bool { return b.Validator == o.Conditions.Validator })
	if i < 0 {
		return nil, fmt.Errorf("the validator %s offers nothing at present", o.Conditions.Validator)
	}
	if b := &q.Bids[i]; b.Obstacle == "" {
		return b, nil
	}
	return nil, errors.New(q.Bids[i].Obstacle)
}
