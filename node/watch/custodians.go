package watch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/engine/merkle"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/node/states"
)

// A challenger looks at every custodian that has attested to a unit, or said that it has the
// order's files: does it hand over a block of them? One that has not for a quarter of the time
// in which it would have to answer on chain is asked there, once in a lease. Once it is
// convicted, it is asked about every unit. If it keeps, it earns the fee; if not, it loses its
// bond. Of one that keeps fragments it makes them too, and exposes it if it attested to others.

// patience is the part of the time for an answer that a custodian may be out of reach.
const patience = 4

// custodians starts a look at every custodian of a lease that was not looked at yet, and
// reports whether there is one.
func (c *challenger) custodians(ctx context.Context, l *job.Lease, now int64) (some bool) {
	if l.Phase == job.Closing && now >= l.Windows.End {
		return false
	}
	for _, k := range l.Files.Custodians {
		name := "custodian-" + l.Order.ID().String() + "-files-" + k.Account
		if k.Says == job.Had && k.Account != c.env.Account.Address && !c.noted(l, name) && !c.noted(l, asked(l, job.OfFiles, k.Account)) {
			some = true
			c.looks.Start(ctx, name, func(ctx context.Context) error {
				return c.look(ctx, l, job.OfFiles, job.Attestation{Custodian: k.Account}, name)
			})
		}
	}
	for i, a := range attested(l) {
		name := fmt.Sprintf("custodian-%s-%s", leases.AttemptName(l.Order.ID(), i, l.Units[i].Attempt), a.Custodian)
		if a.Custodian == c.env.Account.Address || c.noted(l, name) || a.Fragment == nil && c.noted(l, asked(l, i, a.Custodian)) {
			continue
		}
		some = true
		c.looks.Start(ctx, name, func(ctx context.Context) error { return c.look(ctx, l, i, a, name) })
	}
	return some
}

// attested yields the attestations that stand, with their units. Before a unit counts its
// custodians rightly refuse us: only who was drawn may read where its checkpoints are.
func attested(l *job.Lease) iter.Seq2[int, job.Attestation] {
	return func(yield func(int, job.Attestation) bool) {
		for i := range l.Units {
			u := &l.Units[i]
			if u.Receipt == nil || u.Status == job.Received {
				continue
			}
			for _, a := range u.Attested {
				if a.Stands() && !yield(i, a) {
					return
				}
			}
		}
	}
}

// asked is what is noted of a question to a custodian about a unit.
func asked(l *job.Lease, unit int, custodian string) string {
	if unit == job.OfFiles {
		return "asked-files-" + custodian
	}
	if slices.Contains(l.Barred, custodian) {
		return fmt.Sprintf("asked-%s-%d", custodian, unit)
	}
	return "asked-" + custodian
}

// look asks a custodian for a block, and the chain to ask it if it has given none for
// too long.
func (c *challenger) look(ctx context.Context, l *job.Lease, unit int, a job.Attestation, name string) error {
	custodian := a.Custodian
	err := c.reach(ctx, l, unit, a)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		c.missing.Delete(name)
		if a.Fragment != nil {
			if err := c.compare(ctx, l, unit, a); err != nil {
				return err
			}
		}
		return c.note(l, name)
	}
	if c.noted(l, asked(l, unit, custodian)) {
		return fmt.Errorf("custodian %s of %s: %w", custodian, job.Kept(unit), err) // what it keeps is still to be compared
	}
	since, _ := c.missing.LoadOrStore(name, time.Now())
	if wait := time.Duration(l.Params.AnswerTime) * time.Millisecond / patience; time.Since(since.(time.Time)) < wait {
		return fmt.Errorf("custodian %s of %s: %w", custodian, job.Kept(unit), err)
	}
	c.missing.Delete(name)
	return c.ask(ctx, l, unit, custodian)
}

// ask lets the chain ask a custodian about a unit, or about the order's files.
func (c *challenger) ask(ctx context.Context, l *job.Lease, unit int, custodian string) error {
	m := &workv1.MsgAsk{Sender: c.env.Account.Address, Order: l.Order.ID().String(), Custodian: custodian, Files: unit == job.OfFiles}
	if !m.Files {
		m.Unit, m.Attempt = uint32(unit), uint32(l.Units[unit].Attempt)
	}
	if err := c.env.Send(ctx, m); err != nil {
		return fmt.Errorf("ask custodian %s about %s: %w", custodian, job.Kept(unit), err)
	}
	c.env.Emit(events.Event{Kind: events.Asked, Order: l.Order.ID(), Unit: unit, Text: "asked " + custodian + " to show what it keeps"})
	return c.note(l, asked(l, unit, custodian))
}

// reach gets a block of one of a unit's checkpoints, or of its fragment of it, or of one of
// the order's files, from a custodian.
func (c *challenger) reach(ctx context.Context, l *job.Lease, unit int, a job.Attestation) error {
	var files []job.File
	if unit == job.OfFiles {
		files = l.Order.Problem.Files
	} else if a.Fragment != nil {
		list, err := c.env.States.Fragments(ctx, l, unit, a)
		if err != nil {
			return err
		}
		files = list.Files
	} else {
		list, err := c.env.States.Checkpoints(ctx, l, l.Units[unit].Receipt)
		if err != nil {
			return err
		}
		files = list.States
	}
	return c.env.Blobs.Probe(ctx, l.Order.ID(), a.Custodian, files[rand.IntN(len(files))])
}

// compare makes a custodian's fragments of a unit, and exposes it if they are not those that
// it attested to.
func (c *challenger) compare(ctx context.Context, l *job.Lease, unit int, a job.Attestation) error {
	kept, err := c.env.States.Fragments(ctx, l, unit, a)
	if err != nil {
		return err
	}
	if l, err = c.env.Leases.Fill(ctx, l, l.AboutUnit(unit)); err != nil {
		return err
	}
	for i, root := range l.Units[unit].Receipt.Checkpoints[1:] {
		wrong, err := c.wrong(ctx, l, unit, a, kept, i+1, root)
		if err != nil {
			return fmt.Errorf("fragment of custodian %s: %w", a.Custodian, err)
		}
		if wrong == nil {
			continue
		}
		err = c.env.Send(ctx, &workv1.MsgExpose{
			Sender: c.env.Account.Address, Order: l.Order.ID().String(), Unit: uint32(unit), Attempt: uint32(l.Units[unit].Attempt),
			Custodian: a.Custodian, Wrong: canon.Marshal(wrong),
		})
		if err != nil {
			return fmt.Errorf("expose custodian %s of unit %d: %w", a.Custodian, unit, err)
		}
		c.env.Emit(events.Event{Kind: events.Exposed, Order: l.Order.ID(), Unit: unit, Text: "showed that " + a.Custodian + " keeps a wrong fragment"})
		return nil
	}
	return nil
}

// wrong returns what shows that a custodian's fragment of a checkpoint is none, nil if it is
// one. Who does not hand over what it cannot have is asked for it.
func (c *challenger) wrong(ctx context.Context, l *job.Lease, unit int, a job.Attestation, kept states.FragmentList, at int, root canon.Hash) (*proof.WrongFragment, error) {
	code := l.Order.Fragments()
	s, err := c.env.States.Get(ctx, l, root)
	if err != nil {
		return nil, err
	}
	fragment, err := code.Fragment(s, a.Fragment.Number)
	if err != nil {
		return nil, err
	}
	if right, err := merkle.StateRoot(fragment, c.env.States.Threads); err != nil || right == kept.Roots[at-1] {
		return nil, err
	}
	if fragment, err = c.env.States.Fragment(ctx, l, a, kept, at); err != nil {
		if !c.noted(l, asked(l, unit, a.Custodian)) {
			err = errors.Join(err, c.ask(ctx, l, unit, a.Custodian))
		}
		return nil, err
	}
	return proof.FindWrongFragment(code, a.Fragment.Number, at, s, fragment, kept.Roots)
}
