package bench

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/text"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/model/zoo"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/role"
)

// A provider's units, each of which takes it unitTime to replay. Every segment of
// each is falsely disputed once, so that no game finds what another has computed.
const (
	unitTime        = 30 * time.Second
	disputedUnits   = 8
	segmentsPerUnit = 8 // segments of a unit
	friendPurse     = 100_000_000
)

// falseDisputes returns how many of 64 false disputes at once one honest provider does not
// survive on a devnet of this machine. Its clocks of two minutes are a fifteenth of a new
// chain's. Whoever disputes plays each game until it would have to prove what is not so, and
// lets its clock run out: that takes half an hour in all.
func falseDisputes(ctx context.Context, o Options) (float64, error) {
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	n, err := devnet.Start(ctx, devnet.Config{Dir: dir, Providers: 1})
	if err != nil {
		return 0, err
	}
	defer func() { _ = n.Stop() }()
	if err := n.Ready(ctx); err != nil {
		return 0, err
	}
	c := &crowd{env: n.Consumer.Env, tell: o.Tell}
	if err := c.gather(ctx, disputedUnits*segmentsPerUnit); err != nil {
		return 0, err
	}
	draft, err := draftHalfMinuteUnits(ctx, o)
	if err != nil {
		return 0, err
	}
	order, err := draft.Order(consume.BuyerOf(c.env))
	if err != nil {
		return 0, err
	}
	if err := consume.Keep(c.env, &order, draft.Body()); err != nil {
		return 0, err
	}
	if c.order, err = consume.Post(ctx, c.env, &order); err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = consume.Serve(ctx, c.env) }()
	done := make(chan *job.Lease, 1)
	failed := make(chan error, 1)
	go func() {
		_, err := consume.Follow(ctx, c.env, c.order, func(p consume.Progress) bool {
			if p.Lease != nil && allCounted(p.Lease) && len(done) == 0 {
				done <- p.Lease
			}
			return false
		})
		failed <- err
	}()
	o.Tell("a provider computes %d units", disputedUnits)
	select {
	case l := <-done:
		won, err := c.dispute(ctx, l)
		return float64(len(c.all) - won), err
	case err := <-failed:
		return 0, errors.Join(errors.New("the order ended before it could be disputed"), err)
	}
}

// draftHalfMinuteUnits drafts an order whose units take half a minute each on this machine.
func draftHalfMinuteUnits(ctx context.Context, o Options) (*consume.Draft, error) {
	const trial = segmentsPerUnit // steps
	s := consume.Default()
	p, c := &s.Problem, &s.Conditions
	p.Rounds, p.Shards, p.Batch, p.Seed = 1, disputedUnits, 8, 7
	c.MaxPrice, c.Providers, c.Custodians = 10_000_000_000, 1, 1
	c.UnitTimeout, c.UnitWindow, c.Window = consume.Duration(time.Hour), consume.Duration(time.Hour), consume.Duration(time.Hour)
	book := strings.Repeat("a stick is cut in two and each side keeps its half of the tally. ", 200)
	words, err := text.Vocabulary(book)
	if err != nil {
		return nil, err
	}
	model := zoo.GPT{Vocab: words, Context: 128, Width: 128, Layers: 4, Heads: 4, Seed: 3}
	g, err := model.Graph(p.Batch)
	if err != nil {
		return nil, err
	}
	draft := func(steps int) (*consume.Draft, error) {
		p.Steps, p.Interval = steps, steps/segmentsPerUnit
		return consume.FromParts(ctx, s, consume.Origin{Model: g}, book, cpu.New(1))
	}
	d, err := draft(trial)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if _, err := d.Job.UnitOf(&d.Problem, 0).Play(ctx, d.Job.Start, 0, trial, nil); err != nil {
		return nil, err
	}
	step := time.Since(begun) / trial
	steps := int(unitTime/step) / segmentsPerUnit * segmentsPerUnit
	o.Tell("a step takes %v: units of %d steps, a checkpoint each %d", step.Round(time.Millisecond), steps, steps/segmentsPerUnit)
	return draft(steps)
}

// allCounted reports whether all work of a lease can be disputed.
func allCounted(l *job.Lease) bool {
	for i := range l.Units {
		if l.Units[i].Status != job.Counted {
			return false
		}
	}
	return true
}

// crowd are people who dispute what is right.
type crowd struct {
	env   *role.Env // of who pays them
	order canon.Hash
	all   []*client.Account
	tell  func(string, ...any)
}

// gather makes so many people, each with a purse.
func (c *crowd) gather(ctx context.Context, n int) error {
	var purses []sdk.Msg
	for range n {
		a := c.env.Chain.Account(secp256k1.GenPrivKey())
		c.all = append(c.all, a)
		purses = append(purses, &banktypes.MsgSend{FromAddress: c.env.Account.Address, ToAddress: a.Address, Amount: coin.Of(friendPurse)})
	}
	for some := range slices.Chunk(purses, 16) { // that one transaction may have
		if _, err := c.env.Account.Send(ctx, some...); err != nil {
			return err
		}
	}
	return nil
}

// dispute lets each of the crowd dispute a segment, and play until all games are over.
// It returns how many of them the defender has won.
func (c *crowd) dispute(ctx context.Context, l *job.Lease) (won int, err error) {
	begun := time.Now()
	if l, err = c.env.Leases.Fill(ctx, l, l.Everything()); err != nil {
		return 0, err
	}
	open, opening := errgroup.WithContext(ctx)
	for i, a := range c.all {
		open.Go(func() error { return c.open(opening, a, l, i/segmentsPerUnit, i%segmentsPerUnit) })
	}
	if err := open.Wait(); err != nil {
		return 0, err
	}
	c.tell("%d false disputes are open", len(c.all))
	byName := map[string]*client.Account{}
	for _, a := range c.all {
		byName[a.Address] = a
	}
	for last := -1; ; {
		ds, err := consume.Disputes(ctx, c.env, c.order)
		if err != nil {
			return 0, err
		}
		over := 0
		won = 0
		moves, moving := errgroup.WithContext(ctx)
		for i := range ds {
			d := &ds[i]
			switch a := byName[d.Parties.Challenger]; {
			case d.Loser == disputev1.SIDE_CHALLENGER:
				won++
				over++
			case d.Turn == disputev1.SIDE_CHALLENGER && !d.Waiting && a != nil:
				moves.Go(func() error { return c.move(moving, a, d) })
			case d.Turn == disputev1.SIDE_UNSPECIFIED && !d.Waiting:
				over++
			}
		}
		if err := moves.Wait(); err != nil {
			return 0, err
		}
		if over != last {
			c.tell("%d of %d games are over after %v; the defender has won %d", over, len(ds), time.Since(begun).Round(time.Second), won)
			last = over
		}
		if over == len(ds) {
			return won, nil
		}
		if _, err := c.env.Chain.Next(ctx, c.env.Chain.Head().Height); err != nil {
			return 0, err
		}
	}
}

// open disputes a segment of a unit without looking at it.
func (c *crowd) open(ctx context.Context, a *client.Account, l *job.Lease, unit, segment int) error {
	o := dispute.OpeningOf(l.Units[unit].Receipt.Checkpoints, segment)
	_, err := a.Send(ctx, &disputev1.MsgOpen{
		Challenger: a.Address, Order: c.order.String(), Target: wire.TargetToProto(job.UnitTarget(unit)), Attempt: uint32(l.Units[unit].Attempt),
		Opening: canon.Marshal(&o),
	})
	return err
}

// move disagrees with something of what the defender has posted, in each game with
// something else.
func (c *crowd) move(ctx context.Context, a *client.Account, d *disputev1.Dispute) error {
	r, err := disputev1.NewQueryClient(c.env.Chain.Conn).Dispute(ctx, &disputev1.QueryDisputeRequest{Dispute: d.Id})
	if err != nil {
		return err
	}
	var g dispute.Game
	if err := canon.Unmarshal(r.Game, &g); err != nil {
		return err
	}
	var m dispute.Move
	switch {
	case g.Stage == dispute.PickElement:
		m = &dispute.Element{}
	case g.Stage.Turn() != dispute.Challenger, g.Stage == dispute.ProveBlock, g.Stage == dispute.ProveOutput:
		return nil
	default:
		m = &dispute.Pick{Index: int(d.Id) % max(len(g.Posted), len(g.BlockState), 1)}
	}
	if _, err := a.Send(ctx, &disputev1.MsgMove{Player: a.Address, Dispute: d.Id, Move: dispute.EncodeMove(m), Number: uint32(g.Moves)}); err != nil {
		c.tell("a move in dispute %d was refused, and is tried again: %v", d.Id, err) // it was made already, or the defender was asked first
	}
	return ctx.Err()
}
