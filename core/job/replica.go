package job

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/proof"
)

// Replicas: see docs/adr/0038-assurance.md. A unit is computed by several providers, whose
// places are drawn in a block after the lead has given the unit out. Each commits to its result.
// Once all have, each reveals it. Where all are equal, the unit is received; else its replicas
// dispute each other's results, and who loses is out, be it the majority.

// MaxReplicas bounds how often the units of an order may be computed.
const MaxReplicas = 8

// Replica is a provider in one place of a unit. Of a unit that is received it is one that
// has said what the unit's receipt says, and answers for that next.
type Replica struct {
	Provider string
	Out      bool       // it was convicted
	Commit   canon.Hash // fixes its result; zero before
	Result   int        // which of the unit's results it has revealed, from 1; 0: none yet
	Data     File       // its checkpoints' states
	Proof    []byte     // its peer key's signature of its receipt
}

// Result is what replicas say that a unit gives. Those that say the same share it.
type Result struct {
	Checkpoints []canon.Hash
	Inner       []canon.Hash // for each segment the state after InnerStep; none where each segment is one step
}

// output stands for all that a result says.
func (r *Result) output() canon.Hash {
	checkpoints, inner := canon.Root(r.Checkpoints), canon.Root(r.Inner)
	return canon.Root([]canon.Hash{checkpoints, inner})
}

// Replica returns the place that a provider has in a unit, nil if it has none.
func (u *Unit) Replica(provider string) *Replica {
	for j := range u.Replicas {
		if r := &u.Replicas[j]; r.Provider == provider {
			return r
		}
	}
	return nil
}

// replicated reports whether units of the lease are computed by several providers.
func (l *Lease) replicated() bool { return l.Order.Conditions.Replicas > 0 }

// InnerStep returns after how many steps of a segment the state is that a replica commits
// to beside its checkpoints, 0 if the segment has one step. It follows from the block in which the
// places were drawn, and lies in the second half of the segment: so one game can judge both parts.
func (l *Lease) InnerStep(unit, segment int) int {
	_, steps := l.Order.Problem.Segment(segment)
	if steps < 2 {
		return 0
	}
	u := &l.Units[unit]
	return steps - 1 - int(l.lots(u.Seed, beacon.Inner, unit, u.Attempt).Below(uint64(segment), uint64(steps/2)))
}

// Commit fixes what a replica will say of a unit (proof.Commitment).
type Commit struct {
	By            string
	Unit, Attempt int
	Hash          canon.Hash
}

func (e Commit) apply(l *Lease, now int64) ([]Effect, error) {
	u, err := l.current(e.Unit, e.Attempt, Assigned)
	if err != nil {
		return nil, err
	}
	r := u.Replica(e.By)
	switch {
	case r == nil:
		return nil, fmt.Errorf("%s was drawn for no place of unit %d", e.By, e.Unit)
	case !r.Commit.IsZero():
		return nil, fmt.Errorf("%s has committed to a result of unit %d already", e.By, e.Unit)
	case e.Hash.IsZero():
		return nil, fmt.Errorf("the commitment is empty")
	case now > u.Due:
		return nil, fmt.Errorf("the commitment is late: the unit's time ran out")
	}
	r.Commit = e.Hash
	open := func(r Replica) bool { return r.Commit.IsZero() }
	if len(u.Replicas) == l.Order.Conditions.Replicas && !slices.ContainsFunc(u.Replicas, open) {
		u.Sealed, u.Due = true, now+l.Order.Conditions.UnitTimeout
	}
	return []Effect{{Emit, e.By, uint64(e.Unit), "committed"}}, nil
}

// Reveal opens what a replica has committed to.
type Reveal struct {
	Receipt   Receipt
	Inner     []canon.Hash
	Salt      canon.Hash
	Signature []byte
}

func (e Reveal) apply(l *Lease, now int64) ([]Effect, error) {
	r := &e.Receipt
	u, err := l.current(r.Unit, r.Attempt, Assigned)
	if err != nil {
		return nil, err
	}
	x := u.Replica(r.Provider)
	switch {
	case x == nil:
		return nil, fmt.Errorf("%s was drawn for no place of unit %d", r.Provider, r.Unit)
	case !u.Sealed:
		return nil, fmt.Errorf("results of unit %d are shown once all its replicas have committed", r.Unit)
	case x.Result != 0:
		return nil, fmt.Errorf("%s has shown its result of unit %d already", r.Provider, r.Unit)
	}
	if err := l.checkReceipt(r, e.Signature, now); err != nil {
		return nil, err
	}
	if err := l.checkInner(r.Unit, e.Inner); err != nil {
		return nil, err
	}
	if proof.Commitment(r.ID(), e.Inner, e.Salt) != x.Commit {
		return nil, fmt.Errorf("this is not what %s has committed to", r.Provider)
	}
	shown := Result{r.Checkpoints, e.Inner}
	at := slices.IndexFunc(u.Results, func(x Result) bool { return x.output() == shown.output() })
	if at < 0 {
		at, u.Results = len(u.Results), append(u.Results, shown)
	}
	x.Result, x.Data, x.Proof = at+1, r.Data, e.Signature
	effects := []Effect{{Emit, r.Provider, uint64(r.Unit), "result shown"}}
	more, err := l.compare(r.Unit, now)
	return append(effects, more...), err
}

// checkInner returns an error unless there is an inner state for each segment that has one.
func (l *Lease) checkInner(unit int, inner []canon.Hash) error {
	want := l.Order.Problem.Segments()
	if l.Order.Problem.Interval == 1 {
		want = 0
	}
	if len(inner) != want {
		return fmt.Errorf("%d states within segments are shown, want %d", len(inner), want)
	}
	for s, h := range inner {
		if h.IsZero() != (l.InnerStep(unit, s) == 0) {
			return fmt.Errorf("segment %d has a state within it, or none: see InnerStep", s)
		}
	}
	return nil
}

// compare settles what the replicas of a unit have shown, once all that still have a place have
// shown something.
func (l *Lease) compare(i int, now int64) ([]Effect, error) {
	u := &l.Units[i]
	level := make([]proof.Replica, 0, len(u.Replicas)) // at least one: see expel
	stands := map[canon.Hash]bool{}                    // outputs of who was not convicted
	for _, r := range u.Replicas {
		if r.Result == 0 {
			return nil, nil
		}
		shown := &u.Results[r.Result-1]
		level = append(level, proof.Replica{Provider: r.Provider, Input: shown.Checkpoints[0], Output: shown.output()})
		if !r.Out {
			stands[shown.output()] = true
		}
	}
	f := proof.Compare(level[0].Input, [][]proof.Replica{level}, least, func(c proof.Claim) (right, known bool) {
		return stands[c.Output], !stands[c.Output] || len(stands) == 1
	})
	switch {
	case f.Accepted && stands[f.Output]:
		return l.present(i, f.Output, now), nil
	case len(f.Open) > 0:
		u.Due = now + l.Order.Conditions.UnitTimeout // in which they dispute each other
		return []Effect{{Emit, l.Order.Consumer, uint64(i), "replicas differ"}}, nil
	}
	effects, err := l.free(i)
	l.reopen(i)
	return effects, err
}

// least is how many replicas must show a result: of one alone nothing can be compared.
const least = 2

// present takes a result as the unit's receipt. The first replica that has given it answers for
// it, then the others.
func (l *Lease) present(i int, output canon.Hash, now int64) []Effect {
	u := &l.Units[i]
	shown := u.Results[slices.IndexFunc(u.Results, func(r Result) bool { return r.output() == output })]
	l.dropResultDisputes(i)
	u.Replicas = slices.DeleteFunc(u.Replicas, func(r Replica) bool { return r.Out })
	u.Receipt = &Receipt{
		Order: l.Order.ID(), Unit: i, Attempt: u.Attempt, Start: shown.Checkpoints[0], Checkpoints: shown.Checkpoints,
		FLOPs: l.Order.Problem.UnitFLOPs(),
	}
	u.Differed = len(u.Results) > 1
	u.Status, u.Results, u.Missed, u.Sealed = Received, nil, nil, false
	u.promote()
	u.Due = now + l.Order.Conditions.UnitTimeout // who keeps it is drawn by then
	l.await(i, now)
	return []Effect{{Emit, u.Provider, uint64(i), "received"}}
}

// promote lets the next replica answer for the receipt of a unit.
func (u *Unit) promote() {
	next, r := u.Replicas[0], *u.Receipt
	r.Provider, r.Data = next.Provider, next.Data
	u.Receipt, u.Provider, u.Proof = &r, next.Provider, next.Proof
	u.Replicas = slices.Clone(u.Replicas[1:])
	for j := range u.Replicas {
		u.Replicas[j].Commit, u.Replicas[j].Result = canon.Hash{}, 0
	}
}

// tickReplicas lets time pass for a unit whose replicas compute, reveal or differ.
func (l *Lease) tickReplicas(i int, now int64) ([]Effect, error) {
	u := &l.Units[i]
	if now <= u.Due || l.resultDisputed(i) {
		return nil, nil
	}
	late := func(r Replica) bool { return r.Commit.IsZero() || u.Sealed && r.Result == 0 }
	if u.Sealed && !slices.ContainsFunc(u.Replicas, late) { // nobody disputes what differs
		return l.forfeitPlaces(i, func(r Replica) bool { return !r.Out }, nil, true)
	}
	lost, err := l.lostWork(u, late)
	if err != nil {
		return nil, err
	}
	if !u.Sealed {
		reopen := len(u.Replicas) < l.Order.Conditions.Replicas || len(u.Missed) >= l.Params.MaxAttempts || !l.refillable(u, late)
		if !reopen {
			lost = nil // others take the empty places, and what was committed to stands
		}
		effects, err := l.forfeitPlaces(i, late, lost, reopen)
		if err == nil && u.Status == Assigned {
			u.Due = now + l.Order.Conditions.UnitTimeout
			l.await(i, now)
		}
		return effects, err
	}
	// Whoever comes now could copy what others have revealed. With enough of these the unit goes on; else
	// it begins again, and whoever was silent pays for the work that is lost.
	if len(lost) < least {
		return l.forfeitPlaces(i, late, lost, true)
	}
	effects, err := l.forfeitPlaces(i, late, nil, false)
	if err != nil {
		return nil, err
	}
	more, err := l.compare(i, now)
	return append(effects, more...), err
}

// lostWork returns the pay of those who have done what is due of a unit, if it begins again because others are late.
func (l *Lease) lostWork(u *Unit, late func(Replica) bool) (lost []Share, err error) {
	for _, r := range u.Replicas {
		if late(r) || r.Out {
			continue
		}
		pay, err := l.pay(r.Provider)
		if err != nil {
			return nil, err
		}
		lost = addShare(lost, Share{r.Provider, pay})
	}
	return lost, nil
}

// refillable reports whether, as far as the lease knows, others could take the places of those that are late.
// One that is busy now may be free later.
func (l *Lease) refillable(u *Unit, late func(Replica) bool) bool {
	var owners []string
	for _, r := range u.Replicas {
		if !late(r) {
			owners = append(owners, l.ownerOf(r.Provider))
		}
	}
	for _, p := range l.Providers {
		a, owner := p.Account, l.ownerOf(p.Account)
		if l.MayWork(a) && u.Replica(a) == nil && !slices.Contains(u.Missed, a) && !slices.Contains(owners, owner) {
			owners = append(owners, owner)
		}
	}
	return len(owners) >= l.Order.Conditions.Replicas
}

// forfeitPlaces takes the places of some replicas, with the penalty of being late. Work that is lost by
// them is paid out of their reserves. If the unit cannot go on, it is open again.
func (l *Lease) forfeitPlaces(i int, some func(Replica) bool, lost []Share, reopen bool) (effects []Effect, err error) {
	u := &l.Units[i]
	fee, err := l.lateFee()
	if err != nil {
		return nil, err
	}
	for _, r := range u.Replicas {
		if !some(r) {
			continue
		}
		bond := l.Reserve.Held(r.Provider, ForWork)
		left, shares := bond, []Share(nil)
		for j := range lost {
			n := min(lost[j].Amount, left)
			lost[j].Amount, left, shares = lost[j].Amount-n, left-n, addShare(shares, Share{lost[j].Account, n})
		}
		n := min(fee, left)
		left -= n
		effects = append(effects, l.slash(r.Provider, ForWork, bond-left, addShare(shares, Share{Insurance, n}))...)
		freed, err := l.freeOne(i, r.Provider)
		if err != nil {
			return nil, err
		}
		effects = append(append(effects, freed...), Effect{Emit, r.Provider, uint64(i), "late"})
		u.Missed = append(u.Missed, r.Provider)
		if l.countFault(r.Provider) > l.Params.MaxLate {
			l.bar(r.Provider)
		}
	}
	u.Replicas = slices.DeleteFunc(u.Replicas, some)
	if reopen {
		freed, err := l.free(i)
		if err != nil {
			return nil, err
		}
		effects = append(effects, freed...)
		l.reopen(i)
	}
	return effects, nil
}

// dropResultDisputes ends all disputes about results of a unit's replicas: nobody has lost them.
func (l *Lease) dropResultDisputes(i int) {
	l.Disputes = slices.DeleteFunc(l.Disputes, func(d Dispute) bool { return d.aboutResultOf(i) })
}

// aboutResultOf reports whether a dispute is about what a replica of a unit has shown in its
// attempt under way.
func (c *Dispute) aboutResultOf(unit int) bool {
	return c.Target.kind == AboutResult && c.Target.index == unit && !c.Void
}

// resultDisputed reports whether a dispute keeps the results of a unit's replicas from being compared.
func (l *Lease) resultDisputed(i int) bool {
	return slices.ContainsFunc(l.Disputes, func(d Dispute) bool { return d.aboutResultOf(i) })
}

// replicaSubject returns what a replica says of one segment: that it leads from its first
// checkpoint to its second, through the inner state.
func (l *Lease) replicaSubject(t Target, attempt int) (Subject, error) {
	if t.index >= len(l.Units) || t.segment >= l.Order.Problem.Segments() {
		return Subject{}, fmt.Errorf("the order has no %v", t)
	}
	u := &l.Units[t.index]
	x := u.Replica(t.account)
	if u.Status != Assigned || x == nil || x.Result == 0 || x.Out {
		return Subject{}, fmt.Errorf("%s has shown no result of unit %d that is not settled", t.account, t.index)
	}
	shown := &u.Results[x.Result-1]
	r := &Receipt{Unit: t.index, Provider: t.account, Start: shown.Checkpoints[0], Checkpoints: shown.Checkpoints}
	points := []canon.Hash{l.Order.Problem.Before(r, t.segment), shown.Checkpoints[t.segment+1]}
	at := l.InnerStep(t.index, t.segment)
	if at > 0 {
		points = slices.Insert(points, 1, shown.Inner[t.segment])
	}
	return l.segmentSubject(r, t.segment, at, points), stands(attempt, u.Attempt)
}

// Differs returns the replicas of a unit whose results differ from that of one of them, each with the
// first segment about which they do.
func (l *Lease) Differs(unit int, provider string) (out []Target) {
	u := &l.Units[unit]
	me := u.Replica(provider)
	if u.Status != Assigned || !u.Sealed || me == nil || me.Result == 0 || me.Out {
		return nil
	}
	mine := &u.Results[me.Result-1]
	for _, r := range u.Replicas {
		if r.Result == 0 || r.Result == me.Result || r.Out {
			continue
		}
		other := &u.Results[r.Result-1]
		for s := range l.Order.Problem.Segments() {
			if mine.Checkpoints[s+1] != other.Checkpoints[s+1] || s < len(mine.Inner) && mine.Inner[s] != other.Inner[s] {
				out = append(out, ResultTarget(unit, r.Provider, s))
				break
			}
		}
	}
	return out
}

// checkReplicas: the replicas of a unit fit what stands of it.
func (l *Lease) checkReplicas(i int) error {
	u := &l.Units[i]
	switch n := l.Order.Conditions.Replicas; {
	case len(u.Replicas) > n, !l.replicated() && (u.Sealed || u.Differed || len(u.Results)+len(u.Missed) > 0):
		return fmt.Errorf("%d replicas, %d results: the order wants %d", len(u.Replicas), len(u.Results), n)
	case u.Status != Assigned && (u.Sealed || len(u.Results) > 0), u.Status == Open && len(u.Replicas) > 0, u.Status < Received && u.Differed:
		return fmt.Errorf("the unit is %v with %d replicas and %d results", u.Status, len(u.Replicas), len(u.Results))
	}
	for j := range u.Replicas {
		r := &u.Replicas[j]
		switch {
		case r.Result > len(u.Results) || find(l.Providers, r.Provider) == nil || u.Replica(r.Provider) != r || r.Provider == u.Provider:
			return fmt.Errorf("%s has no place in the unit", r.Provider)
		case r.Out && u.Status != Assigned:
			return fmt.Errorf("%s was convicted, and answers for the unit", r.Provider)
		case u.Sealed && r.Commit.IsZero() || r.Result != 0 && !u.Sealed:
			return fmt.Errorf("%s has shown what it did not commit to", r.Provider)
		}
	}
	for _, r := range u.Results {
		if len(r.Checkpoints) != l.Order.Problem.Segments()+1 || l.checkInner(i, r.Inner) != nil {
			return fmt.Errorf("a result of the unit has %d checkpoints", len(r.Checkpoints))
		}
	}
	return nil
}

func codeReplica(w *canon.Codec, r *Replica) {
	w.String(&r.Provider, maxAccount)
	w.Bool(&r.Out)
	w.Hash(&r.Commit)
	w.Int(&r.Result, MaxReplicas)
	r.Data.Code(w)
	w.Blob(&r.Proof, 64)
}

func codeResult(w *canon.Codec, r *Result) {
	w.Hashes(&r.Checkpoints, MaxSegments+1)
	w.Hashes(&r.Inner, MaxSegments)
}
