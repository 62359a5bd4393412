// Package lead is a validator's role in the leases that it won.
//
// It takes the order's files from the consumer and gives out units to its providers, more to
// the faster ones. It merges each round and posts the merge. It takes over leases whose lead
// is idle, when it is next in line. [Run] is all of it; node/runner calls it beside
// node/audit.
//
// Invariant: it takes over only what it could load itself.
//
// Source: docs/spec/lease.md.
package lead

import (
	"context"
	"errors"
	"fmt"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/tasks"
)

type lead struct {
	env    *role.Env
	leases *tasks.Set
	pace   *pace
}

// Run leads until ctx is done. The validator's other role, audit, lets go of the
// blobs of its leases and answers disputes for it.
func Run(ctx context.Context, env *role.Env) error {
	d := &lead{env: env, leases: env.NewTasks(0), pace: newPace()}
	defer d.leases.Wait()
	return env.EachBlock(ctx, d.block)
}

func (d *lead) block(ctx context.Context, b client.Block) error {
	live, err := d.env.Leases.Live(ctx, d.env.Account.Address)
	if err != nil {
		return err
	}
	d.pace.keep(live)
	for _, x := range live {
		l := x.Lease
		d.env.Blobs.Serve(x)
		me := d.env.Account.Address
		switch {
		case l.Lead() == me:
			d.pace.see(l, b.Time)
			d.leases.Start(ctx, l.Order.ID().String(), func(ctx context.Context) error { return d.lead(ctx, l, b.Time) })
		case l.MayTakeLead(me, b.Time):
			d.leases.Start(ctx, l.Order.ID().String(), func(ctx context.Context) error { return d.takeOver(ctx, l) })
		}
	}
	return nil
}

// takeOver becomes the lead, if it could do the work.
func (d *lead) takeOver(ctx context.Context, l *job.Lease) error {
	if _, err := d.env.Jobs.Get(ctx, l); err != nil {
		return err
	}
	return d.env.Send(ctx, &workv1.MsgTakeLead{Validator: d.env.Account.Address, Order: l.Order.ID().String()})
}

// lead does what a lease needs now.
func (d *lead) lead(ctx context.Context, l *job.Lease, now int64) error {
	if l.Phase != job.Active && !l.AwaitsMerge() {
		return nil
	}
	j, err := d.takeFiles(ctx, l)
	if l.Files.Said != job.Had {
		return nil // their custodians say whether they can be had
	}
	if err != nil {
		return err
	}
	if err := d.sponsor(ctx, l, computing(l)); err != nil {
		return err
	}
	switch {
	case l.AwaitsMerge():
		return d.merge(ctx, l, j)
	case l.Count.Status[job.Open] > 0:
		return d.assign(ctx, l, now)
	}
	return nil
}

// takeFiles brings all files of the order. What cannot be had now is tried again until the
// lead's time is over: that a source refuses for a moment is no reason to pay for giving
// the order up.
func (d *lead) takeFiles(ctx context.Context, l *job.Lease) (*replay.Job, error) {
	j, err := d.env.Jobs.Get(ctx, l)
	for _, f := range l.Order.Problem.Files {
		if err == nil {
			_, err = d.env.Blobs.FetchFile(ctx, l, f)
		}
	}
	return j, err
}

// merge computes and posts the merge of a round, and proves that there is no
// point in going on if the loss is no number.
func (d *lead) merge(ctx context.Context, l *job.Lease, j *replay.Job) error {
	if !l.Order.Problem.Merges() {
		return d.postMerge(ctx, l, canon.Root(l.Ends(l.Round)), job.File{})
	}
	var ends []*graph.State
	for _, end := range l.Ends(l.Round) {
		s, err := d.env.States.Get(ctx, l, end)
		if err != nil {
			return err
		}
		ends = append(ends, s)
	}
	s, err := j.MergeStates(ctx, ends)
	if err != nil {
		return err
	}
	order := l.Order.ID()
	root, ref, err := d.env.States.Put(order, s)
	if err != nil {
		return err
	}
	if err := d.postMerge(ctx, l, root, blobs.File("state", ref)); err != nil {
		return err
	}
	loss := replay.LossOf(s)
	d.env.Emit(events.Event{Kind: events.Posted, Order: order, Unit: -1, Step: l.Round, Loss: loss, Text: "merge " + root.Short()})
	if l.Phase == job.Active && l.Round+1 < l.Order.Problem.Rounds && !replay.Finite(loss) {
		return d.halt(ctx, order, s)
	}
	return nil
}

func (d *lead) postMerge(ctx context.Context, l *job.Lease, root canon.Hash, data job.File) error {
	_, err := d.env.Account.Send(ctx, &workv1.MsgMerge{ // not env.Send: halt hashes the state after it
		Lead: d.env.Account.Address, Order: l.Order.ID().String(), Round: uint32(l.Round), Root: root[:], Data: wire.FileToProto(data),
	})
	if err != nil {
		return fmt.Errorf("post the merge of round %d: %w", l.Round, err)
	}
	return nil
}

func (d *lead) halt(ctx context.Context, order canon.Hash, s *graph.State) error {
	k, err := s.Keyed()
	if err != nil {
		return err
	}
	i, _ := k.Find(job.LossSlot)
	loss := s.Find(job.LossSlot)
	if loss == nil || loss.Type != tensor.Float32 {
		return errors.New("the state has no loss")
	}
	return d.env.Send(ctx, &workv1.MsgHalt{
		Sender: d.env.Account.Address, Order: order.String(), Loss: loss.Bytes(),
		Opening: wire.OpeningToProto(k.Open(i)),
	})
}
