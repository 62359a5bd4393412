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

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/format/text"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/role"
)

// cheater is the provider that may be dishonest.
const cheater = "provider-1"

// Run runs the demo to its end. An order that an earlier run in the same
// directory has not finished is taken up again.
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
		err = d.order(ctx, body)
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
	model  GPT
	env    *role.Env // the consumer's
	scribe *scribe
	report *Report
}

// draftModel chooses the model for a text.
func (d *demo) draftModel(body string) (GPT, error) {
	n, err := Vocabulary(body)
	if err != nil {
		return GPT{}, err
	}
	m := NewGPT(n, seed)
	return m, m.quick()
}

func (d *demo) start(ctx context.Context) (*devnet.Network, error) {
	var prepared error
	n, err := devnet.Start(ctx, devnet.Config{
		Dir: d.o.Dir, Log: d.o.Log, Threads: d.o.Threads, Observe: d.scribe.observe,
		Prepare: func(env *role.Env) {
			d.scribe.mu.Lock()
			d.scribe.names[env.Account.Address] = env.Name
			d.scribe.mu.Unlock()
			if env.Name != cheater {
				return
			}
			exec, err := d.o.Cheat.Executor(env.Jobs.Exec, d.spec.Problem.Steps)
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

// order brings one order from draft to settlement.
func (d *demo) order(ctx context.Context, body string) error {
	g, err := d.model.Graph(d.spec.Problem.Batch)
	if err != nil {
		return err
	}
	draft, err := consume.FromParts(ctx, d.spec, consume.Origin{Model: g}, body, d.env.Jobs.Exec)
	if err != nil {
		return err
	}
	d.report.LossFirst = draft.Loss
	if d.report.HeldOutLossFirst, err = draft.Job.Loss(ctx, draft.Job.Start, draft.HeldOut, d.env.Jobs.Exec); err != nil {
		return err
	}
	d.scribe.say("model: %d parameters; text: %d records, %d held out; loss %.3f, held out %.3f", d.model.Parameters(), draft.Problem.Records, draft.HeldOut.Shape[0], draft.Loss, d.report.HeldOutLossFirst)
	id, err := d.post(ctx, draft)
	if err != nil {
		return err
	}
	l, err := d.follow(ctx, id)
	if err != nil {
		return err
	}
	return d.finish(ctx, draft, l)
}

// memory is what a run remembers for the next one in the same directory.
type memory struct {
	Order canon.Hash `json:"order"`
}

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

// post takes up the order of an earlier run, or posts a new one.
func (d *demo) post(ctx context.Context, draft *consume.Draft) (canon.Hash, error) {
	var m memory
	b, err := bounded.ReadFile(d.memoryFile(), maxMemory)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m.Order, fmt.Errorf("%s is damaged, remove it to begin a new order: %w", d.memoryFile(), err)
	}
	if err == nil {
		p, err := consume.Look(ctx, d.env, m.Order)
		if err == nil && !p.Ended() {
			d.scribe.say("order %s goes on", m.Order.Short())
			return m.Order, nil
		}
	}
	o, err := draft.Order(d.env)
	if err != nil {
		return o.ID(), err
	}
	// Noted before it is posted: an order is never lost, at worst never posted.
	b, err = json.Marshal(memory{o.ID()})
	if err != nil {
		return o.ID(), err
	}
	if err := replace.File(d.memoryFile(), b); err != nil {
		return o.ID(), err
	}
	best, err := d.awaitOffer(ctx, &o)
	if err != nil {
		return o.ID(), err
	}
	id, err := consume.Post(ctx, d.env, &o)
	if err != nil {
		return id, err
	}
	d.scribe.say("order %s posted: %d units of %d steps, at most %v; best offer %v by %s", id.Short(), o.Problem.Units(), o.Problem.Steps, consume.Amount(o.Conditions.MaxPrice), consume.Amount(best.Price), d.scribe.name(best.Validator))
	return id, nil
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

// follow shows how the order gets on until it is settled.
func (d *demo) follow(ctx context.Context, id canon.Hash) (*job.Lease, error) {
	d.scribe.stage("training")
	seen := &seen{}
	var inspected error
	p, err := consume.Follow(ctx, d.env, id, func(p consume.Progress) bool {
		if d.o.Inspect != nil && inspected == nil {
			inspected = d.o.Inspect(ctx, d.env, p.Lease)
		}
		ds, err := consume.Disputes(ctx, d.env, id)
		if err == nil {
			d.show(seen, p.Lease, ds)
		}
		return p.Lease.Phase == job.Settled
	})
	if err = errors.Join(err, inspected); err != nil {
		return nil, err
	}
	if p.Lease == nil || p.Lease.Phase != job.Settled {
		return nil, fmt.Errorf("order %s was left before its settlement", id.Short())
	}
	return p.Lease, nil
}

// finish fetches and writes everything that the consumer gets.
func (d *demo) finish(ctx context.Context, draft *consume.Draft, l *job.Lease) (err error) {
	r := d.report
	if r.Outcome, err = consume.NewOutcome(ctx, d.env, l); err != nil {
		return err
	}
	if err := r.supply(ctx, d.env); err != nil {
		return err
	}
	d.scribe.stage("fetching the model and its proof")
	out, err := consume.Deliver(ctx, d.env, l, filepath.Join(d.o.Dir, ResultsDir, l.Order.ID().Short()), nil)
	if err != nil {
		return err
	}
	r.Delivery = *out
	r.Sample, err = d.sample(ctx, out.Result, draft.Tokenizer)
	return err
}

// sampleLength is the number of characters that the trained model writes.
const sampleLength = 240

func (d *demo) sample(ctx context.Context, r *consume.Result, t *text.Tokenizer) (string, error) {
	body, err := d.o.text()
	if err != nil {
		return "", err
	}
	ids, err := t.Encode(prompt(body))
	if err != nil {
		return "", err
	}
	out, err := consume.Sample(ctx, r.Model, d.env.Jobs.Exec, ids, sampleLength, seed)
	if err != nil {
		return "", err
	}
	return t.Decode(out)
}

// seen is what has been told about a lease already.
type seen struct {
	matched, closing bool
	round            int
	disputes         map[uint64]uint32 // moves
	over             map[uint64]bool
	slashed          uint64
}

// show puts a lease and its disputes on the board.
func (d *demo) show(s *seen, l *job.Lease, ds []disputev1.Dispute) {
	if !s.matched {
		s.matched = true
		d.scribe.say("matched: %s leads %d providers for %v", d.scribe.name(l.Lead()), len(l.Providers), consume.Amount(l.Quote.Price))
	}
	if l.Phase == job.Closing && !s.closing {
		s.closing = true
		d.scribe.say("all %d rounds merged; the challenge window is open", l.Round)
	}
	if l.Phase != job.Closing {
		s.closing = false
	}
	if l.Round < s.round {
		d.scribe.say("rolled back to round %d: the fraud's descendants are void", l.Round)
	}
	s.round = l.Round
	if s.disputes == nil {
		s.disputes, s.over = map[uint64]uint32{}, map[uint64]bool{}
	}
	for i := range ds {
		d.showDispute(s, l, &ds[i])
	}
	d.scribe.change(func(b *Board) {
		b.Round, b.Audits = l.Round, [2]int{l.Audits.Passed, l.Audits.Failed}
		b.Units = b.Units[:0]
		for _, u := range l.RoundUnits() {
			b.Units = append(b.Units, u.Status)
		}
		if l.Phase == job.Closing {
			b.Stage = "challenge window"
		} else if l.Phase == job.Active {
			b.Stage = "training"
		}
	})
}

func (d *demo) showDispute(s *seen, l *job.Lease, x *disputev1.Dispute) {
	target, _ := wire.TargetFromProto(x.Parties.Target) // the chain has checked it
	board := &DisputeBoard{
		Defender: d.scribe.name(x.Parties.Defender), Stage: x.Stage, Unit: target.Index(),
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
		d.scribe.say("%s disputes unit %d of %s", d.scribe.name(x.Parties.Challenger), board.Unit, board.Defender)
	}
	if s.disputes[x.Id] != x.Moves {
		d.scribe.say("dispute, move %d: %s (next: %s)", x.Moves, board, x.Stage)
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
