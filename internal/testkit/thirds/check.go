package thirds

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

// judge is what the checks have seen.
type judge struct {
	*World
	ends   map[uint64]*power.Record // by epoch: what counted for honest members at its end
	next   int                      // of the crowd: whom the next check begins with
	seated int
	kept   map[string]int // draws that were kept, by reason
	most   float64        // largest part of the votes that a step has moved
	theirs float64        // largest part of the votes that the adversary had
	least  float64        // least part of the votes that honest members had, of what they should have
	away   int            // times that the adversary's were found away

	earned, uts uint64 // of honest accounts whose power counts, at the end
}

// look checks what the last block tells of.
func (j *judge) look(b chaintest.Block) {
	for _, e := range chaintest.Events[*seatsv1.EventMember](j.t, b) {
		p := j.byName[e.Account]
		if e.Status == seatsv1.STATUS_AWAY && p.team != nil {
			j.away++
		}
		if p.team == nil && e.Status != seatsv1.STATUS_PRESENT {
			j.t.Errorf("height %d: %s, who is honest, is %v", b.Height, p.Name, e.Status)
		}
	}
	for _, e := range chaintest.Events[*seatsv1.EventSignedTwice](j.t, b) {
		if j.byName[e.Account].team.convicted++; !j.guilty[e.Account] {
			j.t.Errorf("height %d: %s is convicted, and has not signed twice", b.Height, j.byName[e.Account].Name)
		}
	}
	for _, e := range chaintest.Events[*powerv1.EventForfeited](j.t, b) {
		if !j.guilty[e.Account] {
			j.t.Errorf("height %d: %s has lost its power, and neither signed twice nor lost a dispute", b.Height, e.Account)
		}
	}
	for _, e := range chaintest.Events[*seatsv1.EventKept](j.t, b) {
		reason, _, _ := strings.Cut(e.Reason, ":")
		j.kept[strings.TrimLeft(reason, "0123456789 ")]++
		if !strings.Contains(e.Reason, "would") {
			j.t.Errorf("height %d: a draw breaks: %s", b.Height, e.Reason)
		}
	}
	for _, e := range chaintest.Events[*seatsv1.EventSeated](j.t, b) {
		j.stepped(e)
	}
	if j.calendar.At(b.Height+1) != j.calendar.At(b.Height) {
		j.ends[j.epoch()] = j.counting()
	}
}

// counting returns what counts for honest members: the sum of their own records and of those that delegate to them.
func (j *judge) counting() *power.Record {
	sum := &power.Record{}
	for _, p := range slices.Concat(j.honest, j.crowd) {
		if p.to == nil {
			continue
		}
		if err := sum.Join(p.sum); err != nil {
			j.t.Fatal(err)
		}
	}
	return sum
}

// stepped checks a step of the set. In the draw honest members have ⌊seats · weight / all⌋ each, so all together less than a seat
// for each of them less than their part of the weight. A step has no less than the lesser of this and the set before, but
// for a part in 2²⁰ of each member.
func (j *judge) stepped(e *seatsv1.EventSeated) {
	var set []sortition.Seat
	for _, s := range e.Seats {
		set = append(set, sortition.Seat{Member: s.Member, Votes: s.Votes})
	}
	if !sortition.Within(j.last, set) {
		j.t.Errorf("epoch %d: more than a quarter of the votes moves", e.Epoch)
	}
	had, has := j.share(j.last), j.share(set)
	j.theirs = max(j.theirs, 1-has)
	j.most = max(j.most, moved(j.last, set))
	j.seated++
	j.last = set
	counted := j.ends[e.Epoch-2]
	if e.Epoch < 2 || counted == nil {
		return
	}
	h, err := j.Power.Hour(j.Ctx())
	if err != nil {
		j.t.Fatal(err)
	}
	due := float64(counted.Effective(h)) / float64(e.Weight)
	rounding := float64(len(j.honest))/10_000 + float64(len(set))/(1<<20)
	j.least = min(j.least, has/due)
	if has < min(had, due-rounding)-float64(len(set))/(1<<20) {
		j.t.Errorf("epoch %d: honest members have %.5f of the votes by %.5f of what counts, and had %.5f", e.Epoch, has, due, had)
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

// checkAll checks everybody, and that the adversary has gained nothing.
func (j *judge) checkAll() {
	for _, p := range slices.Concat(j.honest, j.crowd) {
		j.checkOne(p)
		if p.to != nil {
			j.earned, j.uts = j.earned+j.wealth(p)-p.first, j.uts+p.uts
		}
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
	fmt.Fprintf(&b, "%d sets, the largest step %.4f of the votes; draws kept: %v\n", j.seated, j.most, j.kept)
	fmt.Fprintf(&b, "the adversary had %.4f of the votes at most; honest members had %.5f of their part of what counts at least; %d times somebody was away\n",
		j.theirs, j.least, j.away)
	fmt.Fprintf(&b, "%d turns let pass, %d votes left out\n", w.comet.passed, w.comet.out)
	for _, x := range w.fouled {
		fmt.Fprintf(&b, "an order to %s: %s TALLY gained\n", x.foul, amount(x.gain))
	}
	fmt.Fprintf(&b, "a third of the votes cost %.0f TALLY of bonds and %.0f burnt for power; an order held %.3f in escrow: k = %.3g\n",
		float64(w.third.Bond)/tally, float64(w.third.Burn)/tally, float64(w.third.Escrow)/tally, w.third.Times)
	return b.String()
}

func amount(utally *big.Int) string {
	f, _ := new(big.Float).SetInt(utally).Float64()
	return fmt.Sprintf("%.3f", f/tally)
}
