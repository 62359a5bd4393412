package adversary

import (
	"crypto/ed25519"
	"slices"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// Orders each unit of which several providers compute beside one another: who posts them, what
// replicas do and say, and what hostile ones do in its place. testdata/before has a file in the
// place of this one: there no order has replicas.

// The Pick of an order says by its highest digit how many replicas there are: none, or two to four.
const (
	plainOrders = tails * sizes * times * powers
	forms       = 4
)

// replicas is how many a kind of order has.
func replicas(pick int) int {
	if n := pick / plainOrders % forms; n > 0 {
		return n + 1
	}
	return 0
}

// replicate has the units of an order computed by as many providers as Pick says, and not audited.
func replicate(o *job.Order, pick int) {
	if n := replicas(pick); n > 0 {
		k := &o.Conditions
		k.Replicas, k.Auditors, k.AuditSegments = n, 0, 0
	}
}

// Writing.

// copies draws whether an order of a kind has replicas, and how many, as a Pick has it. Those of
// many shards would take too long.
func (h *writer) copies(pick int) int {
	if n := h.side.IntN(3); n > 0 || pick/tails%sizes > 3 {
		return 0
	}
	return plainOrders * (1 + h.side.IntN(forms-1))
}

// replicaHabits draws what hostile providers do as replicas, all of a house or each as it likes:
// they forge a state, say nothing once all have committed, or before, or let a dispute be lost.
// Where honest people want replicas, more of these are hostile.
func (h *writer) replicaHabits() {
	for _, house := range [][]string{house0, house1} {
		together, first := h.side.IntN(2) == 0, Habit{}
		for i, name := range house {
			b, hostile := h.script.Hostile[name]
			hostile = hostile || h.side.IntN(4) == 0 && replicas(h.script.Pick) > 0 && len(h.script.Orders) > 0
			add := Habit{}
			switch h.side.IntN(6) {
			case 0:
				add.Forge = 1 + h.side.IntN(4)
			case 1:
				add.Skip = []string{"work.MsgReveal"}
			case 2:
				add.Skip = []string{[]string{"work.MsgCommit", "dispute.MsgMove", "dispute.MsgOpen"}[h.side.IntN(3)]}
			}
			if i == 0 {
				first = add
			}
			if together {
				add = first
			}
			if hostile {
				b.Forge, b.Skip = add.Forge, slices.Concat(b.Skip, add.Skip)
				h.script.Hostile[name] = b
			}
		}
	}
}

// shown are the results of a unit that can be disputed.
func shown(l *job.Lease, unit int) (out []target) {
	for j, r := range l.Units[unit].Replicas {
		if l.Units[unit].Status == job.Assigned && r.Result > 0 && !r.Out {
			out = append(out, target{kind: ofResult, Index: unit, which: j})
		}
	}
	return out
}

// Duties.

// replicated reports whether several providers compute each unit of a lease.
func replicated(l *job.Lease) bool { return l.Order.Conditions.Replicas > 0 }

// seats are the places of replicas in the units of an order's lease.
type seats struct {
	*play
	o *order
	l *job.Lease
}

// placeable reports whether enough providers are left for another unit.
func placeable(l *job.Lease) bool {
	n, able, busy := l.Order.Conditions.Replicas, 0, 0
	for _, q := range l.Providers {
		if l.MayWork(q.Account) {
			able++
		}
	}
	for _, u := range l.RoundUnits() {
		if u.Status != job.Assigned {
			continue
		}
		if len(u.Replicas) == 0 {
			busy += n
		}
		for _, r := range u.Replicas {
			if r.Commit.IsZero() {
				busy++
			}
		}
	}
	return able-busy/l.Params.MaxOpen >= n
}

// judge looks for honest replicas that are fined: what they earn else would hide it.
func (p seats) judge() {
	if !replicated(p.l) || p.jumped || p.unjudged || p.outvoted() {
		return
	}
	for _, f := range p.l.Faults {
		if _, hostile := p.script.Hostile[nameOf(f.Provider)]; !hostile {
			p.fail("loss", "a replica, who is honest, was late")
		}
	}
}

// comparing is what replicas do: each commits, shows its result once all have, and disputes others
// that differ, and the merge from which it cannot start.
func (p seats) comparing(i int, add adder) {
	o, l, u := p.o, p.l, &p.l.Units[i]
	if u.Status != job.Assigned {
		return
	}
	for _, r := range u.Replicas {
		name := nameOf(r.Provider)
		_, hostile := p.script.Hostile[name]
		knows := hostile || o.checkpoints(false, i, l.RoundStart(l.Round)) != nil
		switch {
		case !knows && o.mind != nil && l.Round > 0: // nobody has what the last merge says
			if t := (target{kind: ofMerge, Index: l.Round - 1}); !p.disputes(l, r.Provider, t) {
				add(r.Provider, "dispute.MsgOpen", t.Index, t.pick(0))
			}
		case !knows || r.Out:
		case r.Commit.IsZero() && p.clock() >= p.computed(l, u):
			add(r.Provider, "work.MsgCommit", i, 0)
		case u.Sealed && r.Result == 0:
			add(r.Provider, "work.MsgReveal", i, 0)
		}
		for _, t := range l.Differs(i, r.Provider) {
			which := slices.IndexFunc(u.Replicas, func(x job.Replica) bool { return x.Provider == t.Account() })
			if !l.Disputed(r.Provider, t, u.Attempt) {
				add(r.Provider, "dispute.MsgOpen", i, target{kind: ofResult, Index: i, which: which}.pick(t.Segment()))
			}
		}
	}
}

// Composing.

func ofReplicas() map[string]func(*composer) any {
	return map[string]func(*composer) any{
		"MsgCommit.hash": func(c *composer) any {
			s := c.result()
			if s == nil {
				return nil
			}
			return proof.Commitment(s.Receipt.ID(), s.Inner, s.Salt)
		},
		"MsgReveal.receipt": func(c *composer) any {
			s := c.result()
			if s == nil {
				return nil
			}
			m := wire.ReceiptToProto(&s.Receipt)
			return &m
		},
		"MsgReveal.inner": func(c *composer) any {
			if s := c.result(); s != nil {
				return s.Inner
			}
			return nil
		},
		"salt": func(c *composer) any { return canon.Sum("salt", c.actor.Address) },
	}
}

// result is what the actor says that the unit gives; nil if it cannot compute it. A forger names one
// state otherwise: a checkpoint, or one within a segment.
func (c *composer) result() *job.Reveal {
	r := c.done()
	if r == nil || len(r.Checkpoints) == 0 {
		return nil
	}
	s := &job.Reveal{Receipt: *r, Salt: canon.Sum("salt", c.actor.Address)}
	if p := &c.o.Problem; p.Interval > 1 {
		for at := range p.Segments() {
			s.Inner = append(s.Inner, inner(c, r, at))
		}
	}
	said := slices.Clone(r.Checkpoints)
	if n := c.script.Hostile[c.By].Forge; n > 0 {
		states := [][]canon.Hash{said[1:], s.Inner}[(n-1)/2%2]
		if at := (n - 1) % 2; at < len(states) && !states[at].IsZero() {
			states[at] = canon.Sum("forged", states[at][:])
		}
	}
	s.Receipt.Checkpoints = said
	return s
}

// inner is the state within a segment, zero if it has none.
func inner(c *composer, r *job.Receipt, segment int) (root canon.Hash) {
	n := c.l.InnerStep(c.Unit, segment)
	switch {
	case n == 0:
	case c.o.mind == nil:
		root = canon.Sum("inner", r.Checkpoints[segment+1][:])
	default:
		first, _ := c.o.Problem.Segment(segment)
		if w := c.o.mind.stretch(c.lies(c.By), c.Unit, 0, c.o.Problem.Steps, r.Start); w != nil {
			root, _ = w.Root(first + n)
		}
	}
	return root
}

// signResult signs the receipt that a replica shows.
func signResult(c *composer, m sdk.Msg) {
	if s, ok := m.(*workv1.MsgReveal); ok {
		if r, err := wire.ReceiptFromProto(&s.Receipt); err == nil {
			s.Signature = ed25519.Sign(c.actor.Peer, r.SignBytes())
		}
	}
}

// Disputes.

// resultTarget names what a replica has shown of a segment.
func resultTarget(l *job.Lease, t target, segment int) job.Target {
	if t.Index < len(l.Units) && len(l.Units[t.Index].Replicas) > 0 {
		rs := l.Units[t.Index].Replicas
		return job.ResultTarget(t.Index, rs[t.which%len(rs)].Provider, segment%max(l.Order.Problem.Segments(), 1))
	}
	return job.UnitTarget(t.Index)
}

// openResult opens the part of a result's segment that does not hold, else the first.
func (o *order) openResult(l *job.Lease, t target, segment int) *dispute.Opening {
	name := resultTarget(l, t, segment)
	if name.Kind() != job.AboutResult {
		return o.opening(l, target{kind: ofUnit, Index: t.Index}, segment)
	}
	s, err := l.Subject(name, l.Units[t.Index].Attempt)
	if err != nil || len(s.Points) < 2 {
		return &dispute.Opening{}
	}
	if o.mind != nil {
		first, steps := o.mind.problem.Segment(name.Segment())
		if w := o.mind.stretch(false, t.Index, first, first+steps, s.Claim.Inputs[0]); w != nil {
			if open, err := dispute.Challenge(s.Claim, s.Points, w); err == nil {
				return &open
			}
		}
	}
	open := dispute.OpeningOf(s.Points, 0)
	return &open
}

// reached counts what histories came to of replicas.
type reached struct {
	shows, differ     int // results that were shown, and leases in which some differ
	upheld, convicted int // disputes of results that were decided
	settled           int // leases with such units, accepted
}

func (r *reached) sent(m sdk.Msg) {
	if _, ok := m.(*workv1.MsgReveal); ok {
		r.shows++
	}
}

func (r *reached) lease(l *job.Lease) {
	if !replicated(l) {
		return
	}
	if slices.ContainsFunc(l.Units, func(u job.Unit) bool { return len(u.Results) > 1 }) {
		r.differ++
	}
	if l.Phase == job.Settled && slices.ContainsFunc(l.Units, func(u job.Unit) bool { return u.Status == job.Accepted }) {
		r.settled++
	}
}

func (r *reached) game(g *game) {
	if t, err := wire.TargetFromProto(g.Parties.Target); err != nil || t.Kind() != job.AboutResult {
		return
	}
	switch g.Dispute.Loser {
	case disputev1.SIDE_DEFENDER:
		r.convicted++
	case disputev1.SIDE_CHALLENGER:
		r.upheld++
	}
}

// missing says what the histories of some worlds never came to.
//
//lint:ignore U1000 the tests ask, and another is in its place for chains of before
func missing(all worlds) (out []string) {
	var sum reached
	for _, w := range all {
		r := w.reached
		sum.shows, sum.differ, sum.settled = sum.shows+r.shows, sum.differ+r.differ, sum.settled+r.settled
		sum.upheld, sum.convicted = sum.upheld+r.upheld, sum.convicted+r.convicted
	}
	for _, x := range []struct {
		n    int
		what string
	}{
		{sum.shows, "a replica that shows its result"},
		{sum.differ, "replicas that differ"},
		{sum.upheld, "a result that was disputed and stands"},
		{sum.convicted, "a result that was refuted"},
		{sum.settled, "a settled unit of replicas"},
	} {
		if x.n == 0 {
			out = append(out, x.what)
		}
	}
	return out
}
