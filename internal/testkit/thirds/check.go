package thirds

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/power"
	"github.com/tally-network/tally/core/sortition"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
	"github.com/tally-network/tally/node/seat"
)

// judge is what the checks have seen.
type judge struct {
	ends   map[uint64]*power.Record // by epoch: what counted for honest members at its end
	next   int                      // of the crowd: whom the next check begins with
	seated int
	kept   map[string]int // draws that were kept, by reason
	most   float64        // largest part of the votes that a step has moved
	least  float64        // least part of the votes that honest members had, of what they should have
	away   int            // times that the adversary's were found away
}

// look checks what the last block tells of.
func (w *World) look() {
	b := w.Last()
	for _, e := range chaintest.Events[*seatsv1.EventMember](w.t, b) {
		p := w.byName[e.Account]
		if e.Status == seatsv1.STATUS_AWAY && p.team != nil {
			w.judge.away++
		}
		if p.team == nil && e.Status != seatsv1.STATUS_PRESENT {
			w.t.Errorf("height %d: %s, who is honest, is %v", b.Height, p.Name, e.Status)
		}
	}
	for _, e := range chaintest.Events[*seatsv1.EventSignedTwice](w.t, b) {
		if w.byName[e.Account].team.convicted++; !w.guilty[e.Account] {
			w.t.Errorf("height %d: %s is convicted, and has not signed twice", b.Height, w.byName[e.Account].Name)
		}
	}
	for _, e := range chaintest.Events[*powerv1.EventForfeited](w.t, b) {
		if !w.guilty[e.Account] {
			w.t.Errorf("height %d: %s has lost its power, and neither signed twice nor lost a dispute", b.Height, e.Account)
		}
	}
	for _, e := range chaintest.Events[*seatsv1.EventKept](w.t, b) {
		reason, _, _ := strings.Cut(e.Reason, ":")
		w.judge.kept[strings.TrimLeft(reason, "0123456789 ")]++
		if !strings.Contains(e.Reason, "would") {
			w.t.Errorf("height %d: a draw breaks: %s", b.Height, e.Reason)
		}
	}
	for _, e := range chaintest.Events[*seatsv1.EventSeated](w.t, b) {
		w.stepped(e)
	}
	if w.calendar.At(b.Height+1) != w.calendar.At(b.Height) {
		w.judge.ends[w.epoch()] = w.counting()
	}
}

// counting returns what counts for honest members: the sum of their own records and of those that delegate to them.
func (w *World) counting() *power.Record {
	sum := &power.Record{}
	for _, p := range slices.Concat(w.honest, w.crowd) {
		if p.to == nil {
			continue
		}
		if err := sum.Join(p.sum); err != nil {
			w.t.Fatal(err)
		}
	}
	return sum
}

// stepped checks a step of the set. In the draw honest members have ⌊seats · weight / all⌋ each, so all together less than a seat
// for each of them less than their part of the weight. A step has no less than the lesser of this and the set before, but
// for a part in 2²⁰ of each member.
func (w *World) stepped(e *seatsv1.EventSeated) {
	var set []sortition.Seat
	for _, s := range e.Seats {
		set = append(set, sortition.Seat{Member: s.Member, Votes: s.Votes})
	}
	if !sortition.Within(w.last, set) {
		w.t.Errorf("epoch %d: more than a quarter of the votes moves", e.Epoch)
	}
	had, has := w.share(w.last), w.share(set)
	w.judge.most = max(w.judge.most, moved(w.last, set))
	w.judge.seated++
	w.last = set
	counted := w.judge.ends[e.Epoch-2]
	if e.Epoch < 2 || counted == nil {
		return
	}
	h, err := w.Power.Hour(w.Ctx())
	if err != nil {
		w.t.Fatal(err)
	}
	due := float64(counted.Effective(h)) / float64(e.Weight)
	rounding := float64(len(w.honest))/10_000 + float64(len(set))/(1<<20)
	w.judge.least = min(w.judge.least, has/due)
	if has < min(had, due-rounding)-float64(len(set))/(1<<20) {
		w.t.Errorf("epoch %d: honest members have %.5f of the votes by %.5f of what counts, and had %.5f", e.Epoch, has, due, had)
	}
}

// share returns the part of a set's votes that honest members have.
func (w *World) share(set []sortition.Seat) float64 {
	honest, all := uint64(0), uint64(0)
	for _, s := range set {
		if all += s.Votes; w.byName[s.Member].team == nil {
			honest += s.Votes
		}
	}
	return float64(honest) / float64(all)
}

// moved returns what part of the votes moves between two sets.
func moved(from, to []sortition.Seat) (sum float64) {
	a, b, had := 0.0, 0.0, map[string]float64{}
	for _, s := range from {
		a += float64(s.Votes)
		had[s.Member] = float64(s.Votes)
	}
	for _, s := range to {
		b += float64(s.Votes)
	}
	for _, s := range to {
		sum += max(0, float64(s.Votes)/b-had[s.Member]/a)
	}
	return sum
}

// check checks the state at the end of an epoch: the application's invariants, all members, and a part of the crowd.
func (w *World) check() {
	if err := w.CheckInvariants(w.Ctx()); err != nil {
		w.t.Fatalf("height %d: %v", w.Height(), err)
	}
	for _, p := range w.honest {
		w.checkOne(p)
	}
	n := min(len(w.crowd), max(300, len(w.crowd)/10))
	for i := range n {
		w.checkOne(w.crowd[(w.judge.next+i)%len(w.crowd)])
	}
	w.judge.next += n
	for _, name := range slices.Concat(worktest.Validators, worktest.Providers, worktest.Rivals) {
		p := w.peer(name)
		if p.JailedUntil > 0 && !w.guilty[p.Account] {
			w.t.Errorf("height %d: %s is jailed, and is not guilty", w.Height(), name)
		}
	}
}

// checkAll checks everybody, and that the adversary has gained nothing.
func (w *World) checkAll() {
	for _, p := range slices.Concat(w.honest, w.crowd) {
		w.checkOne(p)
	}
	if profit := w.profit(w.teams...); profit.Sign() >= 0 {
		w.t.Errorf("the adversary has gained %v utally by cheating", profit)
	}
}

// checkOne checks that an honest account has lost nothing: neither money, nor power beyond what decays.
func (w *World) checkOne(p *person) {
	has := w.wealth(p)
	if has < p.had {
		w.t.Errorf("height %d: %s, who is honest, has %d utally, and had %d", w.Height(), p.Name, has, p.had)
	}
	p.had = has
	h, err := w.Power.Hour(w.Ctx())
	if err != nil {
		w.t.Fatal(err)
	}
	got, err := w.Power.Effective(w.Ctx(), p.Address)
	if want := p.sum.Effective(h); err != nil || got != want {
		w.t.Errorf("height %d: %s has a power of %d, want %d (%v)", w.Height(), p.Name, got, want, err)
	}
}

// wealth returns what an account owns: free, bonded, coming back, and earned.
func (w *World) wealth(p *person) uint64 {
	sum := w.Balance(p.Address)
	earned, err := reservev1.NewQueryClient(w).Account(w.t.Context(), &reservev1.QueryAccountRequest{Account: p.String()})
	if err != nil {
		w.t.Fatal(err)
	}
	sum += earned.Due
	if p.to != p {
		return sum
	}
	m, err := seatsv1.NewQueryClient(w).Member(w.t.Context(), &seatsv1.QueryMemberRequest{Account: p.String()})
	if err != nil { // it is no member
		return sum
	}
	return sum + m.Member.Bond + m.Unbonding
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
	earned, uts := uint64(0), uint64(0)
	for _, p := range slices.Concat(w.honest, w.crowd) {
		if p.to != nil {
			earned, uts = earned+p.had-p.first, uts+p.uts
		}
	}
	for _, t := range teams {
		own := uint64(0)
		for _, p := range t.all {
			sum.Add(sum, new(big.Int).SetUint64(w.wealth(p)))
			own += p.uts
		}
		sum.Sub(sum, new(big.Int).SetUint64(t.had))
		sum.Sub(sum, new(big.Int).SetUint64(money.ScaleClamped(earned, own, uts)))
	}
	return sum
}

// progress tells how far a long play is.
func (w *World) progress(begun time.Time) {
	if w.scale.Epochs > 20 {
		w.t.Logf("epoch %d, %.0f s: honest members have %.4f of the votes of %d", w.epoch(), time.Since(begun).Seconds(), w.share(w.last), len(w.last))
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
	fmt.Fprintf(&b, "%d sets, the largest step %.4f of the votes; draws kept: %v\n", j.seated, j.most, j.kept)
	fmt.Fprintf(&b, "honest members have %.4f of the votes, and had %.5f of what counts at least; %d times somebody was away\n", w.share(w.last), j.least, j.away)
	fmt.Fprintf(&b, "%d turns let pass, %d votes left out; %d orders\n", w.comet.passed, w.comet.out, w.orders)
	if v, err := seat.Look(w.t.Context(), w); err == nil {
		fmt.Fprintf(&b, "a third of the votes costs %.0f TALLY of bonds and %.0f burnt for power; %.0f are in escrow: k = %.3g\n",
			float64(v.Third.Bond)/tally, float64(v.Third.Burn)/tally, float64(v.Third.Escrow)/tally, v.Third.Times)
	}
	return b.String()
}

func amount(utally *big.Int) string {
	f, _ := new(big.Float).SetInt(utally).Float64()
	return fmt.Sprintf("%.3f", f/tally)
}
