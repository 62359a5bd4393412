package job

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/money"
)

// Timely returns an error that shows the inequality if an order leaves others less time
// than what it asks of them takes. Who is late with a unit, or has its data attested
// too late, loses a part of its bond: a consumer could take that from honest people
// by a short timeout, at no cost. A short window would let what nobody had time to
// look at count as verified work.
//
//	unit_timeout ≥ allowance + unit FLOPs / speed + (checkpoint + file bytes) / link
//	unit_window  ≥ allowance
//	window       ≥ allowance + unit FLOPs / speed + checkpoint bytes / link
//
// File bytes count where a unit has replicas: these are drawn, and may not have the order's files before.
// Others say that they are ready once they do. Speed and link are those of the slowest machine that the chain counts on. A longer
// time is the consumer's own: its money is locked as long as anybody's, and custodians are
// paid by the hour. How long an order waits for an offer harms nobody else.
func (p *Params) Timely(o *Order) error {
	q, c := &o.Problem, &o.Conditions
	compute, err := money.Scale(q.UnitFLOPs(), 1000, p.Speed)
	if err != nil {
		return err
	}
	move, err := money.Scale(q.UnitBytes(), 1000, p.Link)
	if err != nil {
		return err
	}
	work, err := money.Sum(compute, move)
	if err != nil {
		return err
	}
	files, err := p.Fetch(o)
	if err != nil {
		return err
	}
	drawn, err := money.Sum(work, files)
	if err != nil {
		return err
	}
	for _, t := range []struct {
		name  string
		given int64
		work  uint64
		why   string
	}{
		{"unit timeout", c.UnitTimeout, drawn, "honest providers would lose a part of their bond"},
		{"unit window", c.UnitWindow, 0, "nobody could dispute a unit"},
		{"challenge window", c.Window, work, "nobody could compute a unit again in it"},
	} {
		need, err := money.Sum(t.work, uint64(p.Allowance))
		if err != nil {
			return err
		}
		if uint64(t.given) >= need {
			continue
		}
		detail := fmt.Sprintf("%d ms for blocks", p.Allowance)
		if t.work > 0 {
			detail += fmt.Sprintf(" + %d FLOP at %d FLOP/s + %d bytes at %d B/s", q.UnitFLOPs(), p.Speed, q.UnitBytes(), p.Link)
		}
		if t.work > work {
			detail += fmt.Sprintf(" + %d ms to fetch what the unit reads", files)
		}
		return fmt.Errorf("%s: the %s must be at least %s = %d ms > %d ms", t.why, t.name, detail, need, t.given)
	}
	return nil
}

// Fetch returns in how many ms who computes a unit fetches what it could not have before: of replicas, which are drawn, the
// order's files; of others the records of its shard, where records are fetched so.
func (p *Params) Fetch(o *Order) (uint64, error) {
	_, parts := o.Problem.File(RoleCrown)
	var bytes uint64
	for _, f := range o.Problem.Files {
		switch shard := parts && f.Role == RoleData; {
		case shard:
			f.Size = (f.Size + uint64(o.Problem.Shards) - 1) / uint64(max(o.Problem.Shards, 1))
		case o.Conditions.Replicas == 0:
			continue
		}
		var err error
		if bytes, err = money.Sum(bytes, f.Size); err != nil {
			return 0, err
		}
	}
	return money.Scale(bytes, 1000, p.Link)
}

// perTransaction is the most ms between two transactions of an account that waits for each
// to be in a block.
const perTransaction = 2000

// attestTime returns the ms from their draw in which a quorum of custodians must attest to a
// receipt. Until then its auditors' bonds are locked, whoever posted it: so it is not the consumer's to
// choose, but what all custodians take to fetch the unit from one slow provider.
//
//	min(unit_timeout, 2 · answer_ms + custodians · checkpoint bytes / link + units under way · custodians / validators · 2 s)
//
// The last is for attesting, since all that is under way may be received at once. An account
// that waits for each transaction gets one into each block.
func (l *Lease) attestTime() int64 {
	c, p := &l.Order.Conditions, &l.Params
	bytes, err := money.Times(l.Order.Problem.UnitBytes(), c.Custodians)
	if err == nil {
		bytes, err = money.Scale(bytes, 1000, p.Link)
	}
	if err != nil || bytes > maxWindow {
		return c.UnitTimeout
	}
	l.count()
	s := &l.Count.Status
	each := int64(s[Assigned]+s[Received]+s[Counted]) * int64(c.Custodians) / int64(len(l.Auditors))
	return min(c.UnitTimeout, 2*p.AnswerTime+int64(bytes)+perTransaction*each)
}

// Replayable returns an error that shows the inequality if a dispute about a segment
// of an order, or about a merge, leaves an honest side too little time. A defender has half of
// its time for an answer to replay as many segments as are played at once, on the slowest
// machine that the chain counts on. The other half is for fetching and for blocks. Whoever is
// later may lose its seat to somebody who spoils the game.
//
//	answer_ms ≥ 2 · parallel · segment FLOPs / speed
//	answer_ms ≥ 2 · parallel · merge FLOPs / speed
func (p *Params) Replayable(o *Order, r dispute.Rules) error {
	q := &o.Problem
	most := p.replays(r)
	if q.MergeFLOPs > most {
		return p.tooLong("merge", q.MergeFLOPs, r, "use fewer shards, or a smaller model")
	}
	_, steps := q.Segment(0)
	flops, err := money.Times(q.StepFLOPs, steps)
	switch {
	case err != nil:
		return err
	case flops <= most:
		return nil
	case q.StepFLOPs > most:
		return p.tooLong("step", q.StepFLOPs, r, "use smaller batches, or a smaller model")
	}
	return p.tooLong(fmt.Sprintf("segment of %d steps", steps), flops, r,
		fmt.Sprintf("put checkpoints at most %d steps apart", most/q.StepFLOPs))
}

// Replays reports whether Replayable allows a step of so many floating-point operations.
func (p *Params) Replays(stepFLOPs uint64, r dispute.Rules) bool { return stepFLOPs <= p.replays(r) }

// Segment returns the most steps between checkpoints that Replayable allows, at least
// one, for steps of so many floating-point operations.
func (p *Params) Segment(stepFLOPs uint64, r dispute.Rules) int {
	return int(max(1, min(p.replays(r)/max(stepFLOPs, 1), dispute.MaxSteps)))
}

// replays returns the floating-point operations that a segment may have.
func (p *Params) replays(r dispute.Rules) uint64 {
	hi, lo := bits.Mul64(p.Speed, uint64(max(r.Answer, 0)))
	share := 2 * uint64(max(r.Parallel, 1)) * 1000
	if hi >= share {
		return math.MaxUint64
	}
	most, _ := bits.Div64(hi, lo, share)
	return most
}

func (p *Params) tooLong(what string, flops uint64, r dispute.Rules, instead string) error {
	need, err := money.Scale(flops, 2*uint64(r.Parallel)*1000, p.Speed)
	if err != nil {
		return err
	}
	return fmt.Errorf("a dispute about one %s could not be answered in time: 2 · %d games at once · %d FLOP at %d FLOP/s = %d ms > answer_ms = %d; %s",
		what, r.Parallel, flops, p.Speed, need, r.Answer, instead)
}
