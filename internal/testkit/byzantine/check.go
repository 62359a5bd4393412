package byzantine

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/power"
	"github.com/tally-network/tally/core/sortition"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// draws is the part of the votes up to which a step has arrived at its draw: others move a quarter, but for a 64th part.
const draws = 0.2

// judge is what the checks have seen.
type judge struct {
	*World
	ends      map[uint64]*counts // by epoch: what counted at its end
	next      int                // of the crowd: whom the next check begins with
	seated    int
	abandoned map[string]int // draws, by reason
	most      float64        // largest part of the votes that a step has moved
	theirs    float64        // largest part of the votes that the adversary had
	least     float64        // least part of the votes that an honest member had, of what it should have
	away      int            // times that the adversary's were found away

	paid        uint64 // utally of the reserve, for seats
	earned, uts uint64 // of honest accounts whose power counts, at the end
}

// counts is what counts at the end of an epoch.
type counts struct {
	honest map[string]*power.Record // of members, by address: their own, and that of those who delegate to them
	theirs *power.Record            // all that the adversary was credited with
}

// look checks what the last block tells of.
func (j *judge) look(b chaintest.Block) {
	for _, e := range chaintest.Events[*seatsv1.EventMember](j.t, b) {
		p := j.byName[e.Account]
		if e.Status == seatsv1.STATUS_JAILED && p.team != nil {
			j.away++
		}
		if p.team == nil && e.Status != seatsv1.STATUS_ACTIVE {
			j.t.Errorf("height %d: %s, who is honest, is %v", b.Height, p.Name, e.Status)
		}
	}
	for _, e := range chaintest.Events[*seatsv1.EventEquivocation](j.t, b) {
		p := j.byName[e.Account]
		if p.team != nil {
			p.team.convicted++
		}
		if !j.guilty[e.Account] {
			j.t.Errorf("height %d: %s is convicted, and has not signed twice", b.Height, p.Name)
		}
	}
	for _, e := range chaintest.Events[*powerv1.EventForfeited](j.t, b) {
		if !j.guilty[e.Account] {
			j.t.Errorf("height %d: %s has lost its power, and neither signed twice nor lost a dispute", b.Height, e.Account)
		}
	}
	for _, e := range chaintest.Events[*seatsv1.EventDrawAbandoned](j.t, b) {
		reason, _, _ := strings.Cut(e.Reason, ":")
		j.abandoned[strings.TrimLeft(reason, "0123456789 ")]++
		if !strings.Contains(e.Reason, "would") {
			j.t.Errorf("height %d: a draw breaks: %s", b.Height, e.Reason)
		}
	}
	for _, e := range chaintest.Events[*seatsv1.EventSeated](j.t, b) {
		j.stepped(e)
	}
	for _, e := range chaintest.Events[*reservev1.EventClosed](j.t, b) {
		j.paid += e.Seats
	}
	if j.calendar.At(b.Height+1) != j.calendar.At(b.Height) {
		j.ends[j.epoch()] = j.counting()
		delete(j.ends, j.epoch()-4)
	}
}

// counting returns what counts now.
func (j *judge) counting() *counts {
	out := &counts{map[string]*power.Record{}, &power.Record{}}
	for _, p := range j.everybody() {
		sum := out.theirs
		switch {
		case p.team == nil && p.to == nil:
			continue
		case p.team == nil:
			if sum = out.honest[p.to.String()]; sum == nil {
				sum = &power.Record{}
				out.honest[p.to.String()] = sum
			}
		}
		if err := sum.Join(p.sum); err != nil {
			j.t.Fatal(err)
		}
	}
	return out
}

// stepped checks a step of the set. A draw gives a member ⌊seats · weight / all⌋. A step that moves less than a quarter is a draw, and
// others are mixed: they have no less than the lesser of it and the set before, but for rounding. All is no more than the base, or what was credited to
// honest members and to the adversary.
func (j *judge) stepped(e *seatsv1.EventSeated) {
	var set []sortition.Seat
	for _, s := range e.Seats {
		set = append(set, sortition.Seat{Member: s.Member, Votes: s.Votes})
	}
	if !sortition.Within(j.last, set) {
		j.t.Errorf("epoch %d: more than a quarter of the votes moves", e.Epoch)
	}
	before, after, moves := parts(j.last), parts(set), moved(j.last, set)
	j.theirs, j.most = max(j.theirs, 1-j.share(set)), max(j.most, moves)
	j.seated++
	j.last = set
	if e.Epoch < 2 || j.ends[e.Epoch-2] == nil {
		return
	}
	counted := j.ends[e.Epoch-2]
	h, err := j.Power.Hour(j.Ctx())
	if err != nil {
		j.t.Fatal(err)
	}
	all := counted.theirs.Effective(h)
	for _, sum := range counted.honest {
		all += sum.Effective(h)
	}
	all = max(all, j.base)
	for _, p := range j.honest {
		name := p.String()
		had, has, due := before[name], after[name], float64(counted.honest[name].Effective(h))/float64(all)
		j.least = min(j.least, has/due)
		if moves > draws {
			due = min(had, due)
		}
		if has < due-2.0/10_000 {
			j.t.Errorf("epoch %d: %s, who is honest, has %.5f of the votes by %.5f of what counts, and had %.5f; the step moves %.3f", e.Epoch, p.Name, has, due, had, moves)
		}
	}
}

// parts returns what part of a set's votes each member has.
func parts(set []sortition.Seat) map[string]float64 {
	all, out := 0.0, map[string]float64{}
	for _, s := range set {
		all += float64(s.Votes)
	}
	for _, s := range set {
		out[s.Member] = float64(s.Votes) / all
	}
	return out
}

// share returns the part of a set's votes that honest members have.
func (w *World) share(set []sortition.Seat) (sum float64) {
	for name, part := range parts(set) {
		if w.byName[name].team == nil {
			sum += part
		}
	}
	return sum
}

// moved returns what part of the votes moves between two sets.
func moved(from, to []sortition.Seat) (sum float64) {
	had := parts(from)
	for name, part := range parts(to) {
		sum += max(0, part-had[name])
	}
	return sum
}

// check checks the state at the end of an epoch: the application's invariants, all members, and a part of the crowd.
func (j *judge) check() {
	if err := j.CheckInvariants(j.Ctx()); err != nil {
		j.t.Fatalf("height %d: %v", j.Height(), err)
	}
	for _, p := range j.honest {
		j.checkOne(p)
	}
	n := min(len(j.crowd), max(300, len(j.crowd)/50))
	for i := range n {
		j.checkOne(j.crowd[(j.next+i)%len(j.crowd)])
	}
	j.next += n
	for _, name := range slices.Concat(worktest.Validators, worktest.Providers, worktest.Rivals) {
		p := j.peer(name)
		if p.JailedUntil > 0 && !j.guilty[p.Account] {
			j.t.Errorf("height %d: %s is jailed, and is not guilty", j.Height(), name)
		}
	}
}

// count notes what everybody has once draws have counted its power, so that it earns.
func (j *judge) count() {
	for _, p := range j.everybody() {
		p.counted = j.wealth(p)
	}
}

// checkAll checks everybody: honest accounts have earned their part of what the reserve paid, each about the same for its power, and
// the adversary has gained nothing.
func (j *judge) checkAll() {
	since, all := map[*person]uint64{}, uint64(0)
	for _, p := range slices.Concat(j.honest, j.crowd) {
		j.checkOne(p)
		if has := j.wealth(p); p.to != nil {
			since[p] = has - min(p.counted, has)
			all, j.earned, j.uts = all+since[p], j.earned+has-min(p.first, has), j.uts+p.uts
		}
	}
	for _, p := range slices.Concat(j.honest, j.crowd) {
		if fair := money.ScaleClamped(all, p.uts, j.uts); p.to != nil && since[p] < fair/3 {
			j.t.Errorf("%s, who is honest, has earned %d utally, and %d are its part", p.Name, since[p], fair)
		}
	}
	if j.earned < j.paid/10*6 {
		j.t.Errorf("the reserve has paid %d utally for seats, and %d to honest accounts", j.paid, j.earned)
	}
	if profit := j.profit(j.teams...); profit.Sign() >= 0 {
		j.t.Errorf("the adversary has gained %v utally by cheating", profit)
	}
}

// checkOne checks that an honest account has lost nothing: neither money, nor power beyond what decays.
func (j *judge) checkOne(p *person) {
	has := j.safe(p)
	if has < p.had {
		j.t.Errorf("height %d: %s, who is honest, has %d utally, and had %d", j.Height(), p.Name, has, p.had)
	}
	p.had = has
	h, err := j.Power.Hour(j.Ctx())
	if err != nil {
		j.t.Fatal(err)
	}
	got, err := j.Power.Effective(j.Ctx(), p.Address)
	if want := p.sum.Effective(h); err != nil || got != want {
		j.t.Errorf("height %d: %s has a power of %d, want %d (%v)", j.Height(), p.Name, got, want, err)
	}
}

// wealth returns what an account owns: free, bonded, coming back, and earned.
func (w *World) wealth(p *person) uint64 {
	earned, err := reservev1.NewQueryClient(w).Account(w.t.Context(), &reservev1.QueryAccountRequest{Account: p.String()})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.free(p.Address) + w.bonded(p) + earned.Due
}

// free returns what an account may spend. chaintest's Balance walks through all denominations.
func (w *World) free(a sdk.AccAddress) uint64 {
	return w.Bank.GetBalance(w.Ctx(), a, coin.Denom).Amount.Uint64()
}

// safe is wealth without what may still be shared with others: of a member's last reward they have the more, the more power counts
// for it when it makes a block.
func (w *World) safe(p *person) uint64 {
	if p.to != p {
		return w.wealth(p)
	}
	due, err := w.Seats.Due(w.Ctx(), p.Address)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.free(p.Address) + w.bonded(p) + due
}

// bonded returns what of an account's money is in bonds, or comes back from one.
func (w *World) bonded(p *person) uint64 {
	if p.to != p {
		return 0
	}
	m, err := seatsv1.NewQueryClient(w).Member(w.t.Context(), &seatsv1.QueryMemberRequest{Account: p.String()})
	if err != nil { // it is no member
		return 0
	}
	return m.Member.Bond + m.Unbonding
}

func (w *World) peer(name string) providerv1.Peer {
	p, err := w.Provider.Get(w.Ctx(), chaintest.Named(name).Address)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// profit returns what teams have beyond what they had and what honest accounts of the same power have earned.
func (w *World) profit(teams ...*team) *big.Int {
	sum := new(big.Int)
	for _, t := range teams {
		own := uint64(0)
		for _, p := range t.all {
			sum.Add(sum, new(big.Int).SetUint64(w.wealth(p)))
			own += p.uts
		}
		sum.Sub(sum, new(big.Int).SetUint64(t.had))
		sum.Sub(sum, new(big.Int).SetUint64(money.ScaleClamped(w.judge.earned, own, w.judge.uts)))
	}
	return sum
}

// progress tells how far a long play is.
func (j *judge) progress(begun time.Time) {
	if j.scale.Epochs > 20 {
		j.t.Logf("epoch %d, %.0f s: honest members have %.4f of the votes of %d", j.epoch(), time.Since(begun).Seconds(), j.share(j.last), len(j.last))
	}
}

// Report returns a table of what each attack has tried and earned, and what a third of the seats costs.
func (w *World) Report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d accounts with power, %d blocks, %d epochs\n", len(w.everybody()), w.Height(), w.epoch())
	fmt.Fprintf(&b, "%-18s %8s %8s %9s %14s %14s\n", "attack", "tried", "taken", "convicted", "TALLY gained", "profit")
	for _, t := range w.teams {
		has := uint64(0)
		for _, p := range t.all {
			has += w.wealth(p)
		}
		fmt.Fprintf(&b, "%-18s %8d %8d %9d %14.3f %14s\n", t.name, t.sent, t.taken, t.convicted, (float64(has)-float64(t.had))/tally, amount(w.profit(t)))
	}
	fmt.Fprintf(&b, "%-18s %8s %8s %9s %14s %14s\n", "all", "", "", "", "", amount(w.profit(w.teams...)))
	j := &w.judge
	fmt.Fprintf(&b, "%d sets, the largest step %.4f of the votes; draws abandoned: %v\n", j.seated, j.most, j.abandoned)
	fmt.Fprintf(&b, "the adversary had %.4f of the votes at most; an honest member had %.5f of its part of what counts at least; %d times somebody was away\n",
		j.theirs, j.least, j.away)
	fmt.Fprintf(&b, "%d turns let pass, %d votes left out\n", w.comet.passed, w.comet.out)
	for _, x := range w.outcomes {
		fmt.Fprintf(&b, "an order to %s: %s TALLY gained\n", x.attack, amount(x.gain))
	}
	fmt.Fprintf(&b, "a third of the votes cost %.0f TALLY of bonds and %.0f burnt for power; an order held %.3f in escrow: k = %.3g\n",
		float64(w.third.Bond)/tally, float64(w.third.Burn)/tally, float64(w.third.Escrow)/tally, w.third.Times)
	return b.String()
}

func amount(utally *big.Int) string {
	f, _ := new(big.Float).SetInt(utally).Float64()
	return fmt.Sprintf("%.3f", f/tally)
}
