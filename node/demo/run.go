package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/format/text"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/role"
)

// Names of the demo's orders.
const (
	training = "training"
	batch    = "batch"
)

// cheaters are the providers that may be dishonest, and in units of which kind and length.
var cheaters = map[string]struct {
	kind  string
	steps int
}{
	"provider-1": {job.Training, trainingSteps},
	"provider-2": {job.Batch, scoreSteps},
}

// Run runs the demo to its end. Orders that an earlier run in the same
// directory has not finished are taken up again.
func Run(ctx context.Context, o Options) (*Report, error) {
	begun := time.Now()
	d := &demo{o: o, spec: spec(), scribe: newScribe(&o), report: &Report{}}
	body, err := o.text()
	if err != nil {
		return nil, err
	}
	if d.model, err = d.draftModel(body); err != nil {
		return nil, err
	}
	n, err := d.start(ctx)
	if err != nil {
		return nil, err
	}
	d.env = n.Consumer.Env
	d.scribe.names[consume.InsuranceFund] = "insurance fund"
	d.report.FirstBlock = seconds(begun)
	d.scribe.say("network up: %d validators, %d providers, %d challenger; first block after %.1f s", len(n.Validators), len(n.Providers), len(n.Challengers), d.report.FirstBlock)
	if err = n.Ready(ctx); err == nil { // all take part, also the last to register
		err = d.found(ctx, n)
	}
	if err == nil {
		err = d.orders(ctx, n, body)
	}
	d.report.Seconds = seconds(begun)
	d.report.Names = d.scribe.names
	if stopErr := n.Stop(); err == nil {
		err = stopErr
	}
	if err == nil {
		d.scribe.change(func(b *Board) { b.Stage = "settled" })
	}
	return d.report, err
}

type demo struct {
	o      Options
	spec   consume.Spec
	model  *lm.Model // before training
	env    *role.Env // the consumer's
	scribe *scribe
	report *Report

	project uint64 // whose task the batch is
	folder  string // of the trained model
}

// draftModel chooses the model for a text.
func (d *demo) draftModel(body string) (*lm.Model, error) {
	n, err := text.Vocabulary(body)
	if err != nil {
		return nil, err
	}
	return NewModel(n, seed)
}

func (d *demo) start(ctx context.Context) (*devnet.Network, error) {
	var prepared error
	n, err := devnet.Start(ctx, devnet.Config{
		Dir: d.o.Dir, Policy: votes(), Log: d.o.Log, Threads: d.o.Threads, Observe: d.scribe.observe,
		Prepare: func(env *role.Env) {
			d.scribe.mu.Lock()
			d.scribe.names[env.Account.Address] = env.Name
			d.scribe.mu.Unlock()
			in, cheats := cheaters[env.Name]
			if !cheats {
				return
			}
			exec, err := d.o.Cheat.Executor(env.Jobs.Exec, in.kind, in.steps)
			if err != nil {
				prepared = err
				return
			}
			env.Jobs.Exec = exec
		},
	})
	if err == nil && prepared != nil {
		err = errors.Join(prepared, n.Stop())
	}
	if err != nil {
		return nil, err
	}
	d.scribe.change(func(b *Board) {
		b.Rounds = d.spec.Problem.Rounds
		for _, m := range n.Providers {
			b.Workers = append(b.Workers, Worker{Name: m.Env.Name, Unit: -1, Steps: d.spec.Problem.Steps})
		}
	})
	return n, nil
}

// work is one of the demo's orders.
type work struct {
	name   string
	draft  *consume.Draft
	show   func(*job.Lease) // puts what is its own on the board
	finish func(context.Context, *job.Lease) error
	id     canon.Hash // zero: not posted yet
}

// orders brings both orders from draft to settlement, side by side, and has the model served that was trained.
func (d *demo) orders(ctx context.Context, n *devnet.Network, body string) error {
	g, err := d.model.Training(d.spec.Problem.Batch, recordLength)
	if err != nil {
		return err
	}
	draft, err := consume.FromParts(ctx, d.spec, consume.Origin{Model: g}, body, d.env.Jobs.Exec)
	if err != nil {
		return err
	}
	d.report.LossFirst = draft.Loss
	first, err := draft.Job.Scores(ctx, draft.Job.Start, draft.HeldOut, d.env.Jobs.Exec)
	if err != nil {
		return err
	}
	d.report.HeldOutLossFirst = first.Loss()
	d.scribe.say("model: %d parameters; text: %d records, %d held out; loss %.3f, held out %.3f", d.model.Parameters(), draft.Problem.Records, draft.HeldOut.Shape[0], draft.Loss, d.report.HeldOutLossFirst)
	score, err := d.draftScore(ctx, draft.HeldOut)
	if err != nil {
		return err
	}
	all := []*work{
		{name: training, draft: draft, show: d.showTraining, finish: func(ctx context.Context, l *job.Lease) error { return d.finish(ctx, draft, l) }},
		{name: batch, draft: score, show: d.showBatch, finish: d.finishScore},
	}
	if err := d.post(ctx, all); err != nil {
		return err
	}
	d.scribe.stage("training")
	serving, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = consume.Serve(serving, d.env) }()
	side, sideCtx := errgroup.WithContext(ctx)
	for _, w := range all {
		side.Go(func() error {
			l, err := d.follow(sideCtx, w)
			if err != nil {
				return err
			}
			return w.finish(sideCtx, l)
		})
	}
	if err := side.Wait(); err != nil {
		return err
	}
	if err := d.serve(ctx, n, prompt(body)); err != nil {
		return err
	}
	return errors.Join(d.report.supply(ctx, d.env), d.report.seats(ctx, d.env))
}

// memory is what a run remembers for the next one in the same directory: its orders, by name.
type memory map[string]canon.Hash

const memoryName = "demo.json"

// ResultsDir is the directory below Options.Dir that holds what the consumer got.
const ResultsDir = "orders"

func (d *demo) memoryFile() string { return filepath.Join(d.o.Dir, memoryName) }

// Begun reports whether a run in dir has come as far as an order.
func Begun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, memoryName))
	return err == nil
}

// maxMemory bounds the file of what a run remembers, in bytes.
const maxMemory = 1 << 16

// remember reads what an earlier run has noted, if there was one.
func (d *demo) remember() (memory, error) {
	m := memory{}
	b, err := bounded.ReadFile(d.memoryFile(), maxMemory)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged, remove it to begin new orders: %w", d.memoryFile(), err)
	}
	return m, nil
}

// takeUp finds the orders of an earlier run, unless all of them have ended.
func (d *demo) takeUp(ctx context.Context, all []*work) error {
	m, err := d.remember()
	if err != nil {
		return err
	}
	goesOn := false
	for _, w := range all {
		if p, err := consume.Look(ctx, d.env, m[w.name]); err == nil {
			w.id = m[w.name]
			goesOn = goesOn || !p.Ended()
		} // else it was noted, and never posted
	}
	for _, w := range all {
		if !goesOn {
			w.id = canon.Hash{}
		} else if !w.id.IsZero() {
			d.scribe.say("order %s goes on: the %s", w.id.Short(), w.name)
		}
	}
	return nil
}

// post takes up the orders of an earlier run, or posts new ones.
func (d *demo) post(ctx context.Context, all []*work) error {
	if err := d.takeUp(ctx, all); err != nil {
		return err
	}
	var posted []*job.Order
	m := memory{}
	for _, w := range all {
		if w.id.IsZero() {
			o, err := w.draft.Order(consume.BuyerOf(d.env))
			if err != nil {
				return err
			}
			w.id = o.ID()
			if err := consume.Keep(d.env, &o, w.draft.Body()); err != nil {
				return err
			}
			posted = append(posted, &o)
		}
		m[w.name] = w.id
		d.scribe.call(w.id, w.name)
	}
	// Noted before they are posted: an order is never lost, at worst never posted.
	b, err := json.Marshal(m)
	if err == nil {
		err = replace.File(d.memoryFile(), b)
	}
	for _, o := range posted {
		if err == nil {
			err = d.postOne(ctx, o)
		}
	}
	return err
}

func (d *demo) postOne(ctx context.Context, o *job.Order) error {
	best, err := d.awaitOffer(ctx, o)
	if err != nil {
		return err
	}
	id, err := consume.Post(ctx, d.env, o)
	if err != nil {
		return err
	}
	d.scribe.say("order %s posted: %s of %d units of %d steps, at most %v; best offer %v by %s", id.Short(), o.Problem.Kind, o.Problem.Units(), o.Problem.Steps, consume.Amount(o.Conditions.MaxPrice), consume.Amount(best.Price), d.scribe.name(best.Validator))
	return nil
}

// awaitOffer waits until the network's roles have registered and an offer meets
// the order.
func (d *demo) awaitOffer(ctx context.Context, o *job.Order) (best marketv1.Bid, err error) {
	d.scribe.stage("waiting for offers")
	deadline := time.Now().Add(time.Minute)
	for height := int64(0); ; {
		q, err := consume.Quote(ctx, d.env, o)
		if err != nil {
			return best, err
		}
		for _, b := range q.Bids {
			if b.Validator == q.Best {
				return b, nil
			}
		}
		if time.Now().After(deadline) {
			return best, fmt.Errorf("no offer meets the order: %s", consume.Obstacles(q.Bids))
		}
		b, err := d.env.Chain.Next(ctx, height)
		if err != nil {
			return best, err
		}
		height = b.Height
	}
}

// follow shows how an order gets on until it is settled.
func (d *demo) follow(ctx context.Context, w *work) (*job.Lease, error) {
	seen := &seen{of: w.name, disputes: map[uint64]uint32{}, over: map[uint64]bool{}}
	var inspected error
	p, err := consume.Follow(ctx, d.env, w.id, func(p consume.Progress) bool {
		if p.Lease == nil {
			return false
		}
		if d.o.Inspect != nil && inspected == nil {
			inspected = d.o.Inspect(ctx, d.env, p.Lease)
		}
		if ds, err := consume.Disputes(ctx, d.env, w.id); err == nil {
			d.show(seen, p.Lease, ds)
			w.show(p.Lease)
		}
		return p.Lease.Phase == job.Settled
	})
	if err = errors.Join(err, inspected); err != nil {
		return nil, err
	}
	if p.Lease == nil || p.Lease.Phase != job.Settled {
		return nil, fmt.Errorf("order %s was left before its settlement", w.id.Short())
	}
	d.scribe.say("the %s is settled", w.name)
	return p.Lease, nil
}

// finish fetches and writes everything that the consumer gets of the training.
func (d *demo) finish(ctx context.Context, draft *consume.Draft, l *job.Lease) (err error) {
	r := d.report
	if r.Outcome, err = consume.NewOutcome(ctx, d.env, l); err != nil {
		return err
	}
	d.scribe.stage("fetching the model and its proof")
	out, err := consume.Deliver(ctx, d.env, l, d.results(l), nil)
	if err != nil {
		return err
	}
	r.Delivery = *out
	d.folder = filepath.Join(d.results(l), folderName)
	return writeFolder(d.folder, draft.Tokenizer, out.Result.Safetensors)
}

// seen is what has been told about a lease already.
type seen struct {
	of               string // the order's name
	matched, closing bool
	round            int
	disputes         map[uint64]uint32 // moves
	over             map[uint64]bool
	slashed          uint64
}

// show tells what has happened to a lease, and puts its disputes on the board.
func (d *demo) show(s *seen, l *job.Lease, ds []disputev1.Dispute) {
	if !s.matched {
		s.matched = true
		d.scribe.say("%s matched: %s leads %d providers for %v", s.of, d.scribe.name(l.Lead()), len(l.Providers), consume.Amount(l.Quote.Price))
	}
	if l.Phase == job.Closing && !s.closing {
		s.closing = true
		d.scribe.say("%s: all %d units accepted; the challenge window is open", s.of, l.Order.Problem.Units())
	}
	if l.Phase != job.Closing {
		s.closing = false
	}
	if l.Round < s.round {
		d.scribe.say("%s rolled back to round %d: the fraud's descendants are void", s.of, l.Round)
	}
	s.round = l.Round
	for i := range ds {
		d.showDispute(s, l, &ds[i])
	}
}

// showTraining puts a round of the training on the board.
func (d *demo) showTraining(l *job.Lease) {
	d.scribe.change(func(b *Board) {
		b.Round, b.Audits = l.Round, [2]int{l.Audits.Passed, l.Audits.Failed}
		b.Units = statuses(b.Units, l)
		if l.Phase == job.Closing {
			b.Stage = "challenge window"
		} else if l.Phase == job.Active {
			b.Stage = "training"
		}
	})
}

// showBatch puts the units of the batch on the board.
func (d *demo) showBatch(l *job.Lease) {
	d.scribe.change(func(b *Board) { b.Batch = statuses(b.Batch, l) })
}

// statuses returns those of a round's units. Once nothing is under way, the last ones stand.
func statuses(before []job.Status, l *job.Lease) (out []job.Status) {
	for _, u := range l.RoundUnits() {
		out = append(out, u.Status)
	}
	if len(out) == 0 {
		for range before {
			out = append(out, job.Accepted)
		}
	}
	return out
}

func (d *demo) showDispute(s *seen, l *job.Lease, x *disputev1.Dispute) {
	target, _ := wire.TargetFromProto(x.Parties.Target) // the chain has checked it
	board := &DisputeBoard{
		Order: s.of, Defender: d.scribe.name(x.Parties.Defender), Stage: x.Stage, Unit: target.Index(),
		StepLo: int(x.StepLo), StepHi: int(x.StepHi), Node: -1, Op: x.Op, Tile: [2]int{int(x.TileRow), int(x.TileCol)},
		FoldLo: int(x.FoldFrom), FoldHi: int(x.FoldTo), Moves: int(x.Moves), Over: x.Loser != disputev1.SIDE_UNSPECIFIED,
	}
	if x.Op != "" {
		board.Node = int(x.Node)
	}
	if board.Over {
		board.Loser = d.scribe.name(consume.Loser(x))
	}
	d.scribe.change(func(b *Board) { b.Dispute = board })
	if _, known := s.disputes[x.Id]; !known {
		d.scribe.say("%s disputes unit %d of the %s, computed by %s", d.scribe.name(x.Parties.Challenger), board.Unit, s.of, board.Defender)
	}
	if s.disputes[x.Id] != x.Moves {
		d.scribe.say("dispute about the %s, move %d: %s (next: %s)", s.of, x.Moves, board, x.Stage)
	}
	s.disputes[x.Id] = x.Moves
	if board.Over && !s.over[x.Id] {
		s.over[x.Id] = true
		if x.Loser == disputev1.SIDE_DEFENDER {
			d.scribe.change(func(b *Board) {
				for i := range b.Workers {
					b.Workers[i].Out = b.Workers[i].Out || b.Workers[i].Name == board.Defender
				}
			})
		}
		d.scribe.say("verdict after %d moves: %s lost: %s", x.Moves, board.Loser, x.Reason)
		if l.Ledger.Slashed > s.slashed {
			d.scribe.say("slashed %v", consume.Amount(l.Ledger.Slashed))
			s.slashed = l.Ledger.Slashed
		}
	}
}
