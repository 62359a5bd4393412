package job

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
)

// PostMerge posts the state that a round's units merge into, and begins the next
// round, or the closing window after the last and in a lease that has stopped.
type PostMerge struct {
	By    string
	Round int
	Root  canon.Hash
	Data  File
}

// Check returns why the merge is refused, nil if it is not. It needs only a skeleton of the lease.
func (e PostMerge) Check(l *Lease) error {
	switch {
	case e.By != l.Lead():
		return fmt.Errorf("%s does not lead this lease; %s does", e.By, l.Lead())
	case l.Phase > Stopping || e.Round != l.Round || e.Round >= len(l.Merges):
		return fmt.Errorf("the lease is %v at round %d, round %d cannot be merged", l.Phase, l.Round, e.Round)
	case e.Root.IsZero():
		return fmt.Errorf("the merge has no root")
	case !l.AwaitsMerge():
		return fmt.Errorf("%d of the %d units of round %d are accepted: it is merged when all are", l.Count.Status[Accepted], l.Order.Problem.Shards, e.Round)
	}
	return e.Data.check()
}

func (e PostMerge) apply(l *Lease, now int64) ([]Effect, error) {
	if err := e.Check(l); err != nil {
		return nil, err
	}
	if want := canon.Root(l.Ends(e.Round)); !l.Order.Problem.Merges() && (e.Root != want || e.Data != File{}) {
		return nil, fmt.Errorf("round %d is merged by no program: its root is %v, over the ends of its units, and it has no data", e.Round, want.Short())
	}
	m := &l.Merges[e.Round]
	*m = Merge{By: e.By, Root: e.Root, Inputs: l.Ends(e.Round), Data: e.Data, Attempt: m.Attempt, Until: l.Windows.until(&l.Order.Conditions, l.round(e.Round))}
	if x := l.Reserve.of(e.By, ForLead); x != nil {
		if err := x.add(e.Round, 0); err != nil {
			return nil, err
		}
	}
	if l.Windows.Final == e.Round {
		l.Windows.Next = m.Until
	}
	l.enter(l.Round + 1)
	l.BegunAt = now
	l.Windows.pass(l, now)
	if l.Round == l.Order.Problem.Rounds || l.Phase == Stopping {
		l.close(now)
	}
	l.DueSince = 0
	l.watchLead(now)
	return []Effect{{Emit, e.By, uint64(e.Round), "merged"}}, nil
}

// close begins the final window; where there is no work to challenge, it is
// over at once. It leaves time to refute what was shown of forced attempts.
func (l *Lease) close(now int64) {
	l.Phase, l.Windows.End, l.DueSince = Closing, now, 0
	if l.count(); l.Windows.Truth > 0 || l.Round > 0 || l.Count.Status[Accepted] > 0 {
		l.Windows.End += l.Order.Conditions.closing()
	}
	l.Windows.End = max(l.Windows.End, l.Windows.Truth)
}

// AwaitsMerge reports whether all units of the round are accepted, and nothing is left
// to do but to merge them. That is done in a lease that has stopped, too: its consumer
// pays for these units, and has no use of them else.
func (l *Lease) AwaitsMerge() bool {
	return l.Phase <= Stopping && l.Round < len(l.Merges) && l.Count.Status[Accepted] == l.Order.Problem.Shards && !l.Windows.full(l)
}

// stop ends the lease early: units under way are finished and paid, no others are given out.
func (l *Lease) stop(now int64, reason string) {
	l.Phase, l.Reason = Stopping, reason
	l.watchLead(now)
}

// LossSlot is the name of the slot that holds the training loss.
const LossSlot = "loss"

// Halt ends a lease early because its loss is no longer a number: nothing that
// comes after could be of use. It opens the loss in the newest merge.
type Halt struct {
	Opening canon.Opening // of LossSlot in the state of the last merged round
	Loss    []byte        // the bytes of the scalar
}

func (e Halt) apply(l *Lease, now int64) ([]Effect, error) {
	if l.Phase != Active || l.Round == 0 {
		return nil, fmt.Errorf("no merged round shows a loss yet")
	}
	layout := tensor.LayoutOf(tensor.Float32, tensor.Shape{})
	if len(e.Loss) != layout.TileBytes(0) {
		return nil, fmt.Errorf("the loss is %d bytes, want a float32 scalar", len(e.Loss))
	}
	root := layout.Root(canon.Root([]canon.Hash{tensor.TileHash(e.Loss)}))
	if e.Opening.Entry != (canon.Entry{Key: LossSlot, Value: root}) {
		return nil, fmt.Errorf("the opening does not show this loss")
	}
	if err := e.Opening.Verify(l.FinalRoot()); err != nil {
		return nil, err
	}
	const exponent = 0x7f80_0000 // all ones: infinite or not a number
	if layout.Word(e.Loss, 0)&exponent != exponent {
		return nil, fmt.Errorf("the loss is a finite number, training goes on")
	}
	l.stop(now, "the loss is not a finite number: lower the learning rate or check the data")
	return []Effect{{Emit, l.Order.Consumer, uint64(l.Round), "halted"}}, nil
}

// StopReason is why a lease ends whose consumer wants no more of it: its rounds are its result, and it is not insured.
const StopReason = "its consumer has stopped it"

// Stop ends training early because its consumer wants no more of it, once a round is merged: the rest of the price goes back.
type Stop struct{ By string }

func (e Stop) apply(l *Lease, now int64) ([]Effect, error) {
	switch {
	case e.By != l.Order.Consumer:
		return nil, fmt.Errorf("%s may not stop the order of %s", e.By, l.Order.Consumer)
	case l.Phase != Active || l.Round == 0 || !l.Order.Problem.Merges():
		return nil, fmt.Errorf("the lease is %v, with %d rounds merged: training can be stopped while it is active, after its first round", l.Phase, l.Round)
	}
	l.stop(now, StopReason)
	return []Effect{{Emit, e.By, uint64(l.Round), "stopped"}}, nil
}
