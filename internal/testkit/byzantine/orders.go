package byzantine

import (
	"math/big"
	"slices"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
	"github.com/tally-network/tally/node/seat"
)

// The people of orders: peers of the adversary's, a forger among those of an honest owner, a challenger, and everybody else, who is honest.
var (
	mallory        = chaintest.Named("mallory")
	adversaryPeers = []string{"v1", "q0", "q1"}
	forger         = "p0"
	honestPeers    = []string{"v0", "v2", "v3", "p1", "p2"}
)

// orderAttack is what is done in an order.
type orderAttack struct {
	name string
	play func(w *World, o job.Order) *worktest.Play
}

// orderAttacks are done one in each order, by turns.
var orderAttacks = []orderAttack{
	{"forge, and lose the dispute", forge},
	{"order from oneself", wash},
	{"challenge honest work", misjudge},
	{"take a unit, and be silent", silence},
}

// order plays the next real order, in which somebody cheats. Whoever is honest loses nothing by it, but what it buys.
func (w *World) order(attack orderAttack) {
	w.orders++
	o := worktest.Order()
	o.Nonce = uint64(w.orders)
	before := map[string]uint64{}
	for _, name := range honestPeers {
		before[name] = w.owns(name)
	}
	buyer, theirs := w.owns(worktest.Consumer.Name), w.theirs()
	p := attack.play(w, o)
	s := p.Finish()
	for _, name := range honestPeers {
		if has := w.owns(name); has < before[name] {
			w.t.Errorf("%s: %s, who is honest, has %d utally, and had %d", attack.name, name, has, before[name])
		}
	}
	paid := uint64(0)
	if p.Order.Consumer == worktest.Consumer.String() {
		paid = s.Ledger.Burnt + s.Ledger.Tax
		for _, x := range s.Ledger.Paid {
			paid += x.Amount
		}
	}
	if has := w.owns(worktest.Consumer.Name); has+paid < buyer {
		w.t.Errorf("%s: the consumer paid %d utally, and lost %d", attack.name, paid, buyer-has)
	}
	w.outcomes = append(w.outcomes, outcome{attack.name, new(big.Int).Sub(w.theirs(), theirs)})
}

// outcome is what the adversary's people gained by an order.
type outcome struct {
	attack string
	gain   *big.Int
}

// owns returns what somebody of an order has, staked or free.
func (w *World) owns(name string) uint64 {
	a := chaintest.Named(name)
	earned, err := reservev1.NewQueryClient(w).Account(w.t.Context(), &reservev1.QueryAccountRequest{Account: a.String()})
	if err != nil {
		w.t.Fatal(err)
	}
	held, err := w.Provider.Unbonding.Of(w.Ctx(), a.Address)
	if err != nil {
		w.t.Fatal(err)
	}
	sum := w.Balance(a.Address) + earned.Due + held
	if peer, err := w.Provider.Get(w.Ctx(), a.Address); err == nil {
		sum += peer.Stake
	}
	return sum
}

// theirs returns what the adversary's people of orders have.
func (w *World) theirs() *big.Int {
	sum := new(big.Int)
	for _, name := range slices.Concat(adversaryPeers, []string{forger, mallory.Name, worktest.Challenger.Name}) {
		sum.Add(sum, new(big.Int).SetUint64(w.owns(name)))
	}
	return sum
}

// begin posts an order of somebody's, which a lead shall have, and lets them meet.
func (w *World) begin(o job.Order, by chaintest.Account, lead string) *worktest.Play {
	o.Consumer, o.Contact.Key = by.String(), by.PeerKey()
	o.Conditions.Validator = chaintest.Named(lead).String()
	worktest.Offer(w.Chain, lead)
	w.Deliver(by, worktest.PostOf(by, o))
	w.NextBlock(time.Second)
	p := worktest.Join(w.t, w.Chain, o)
	p.SayOfFiles(workv1.WORD_HAD)
	if v, err := seat.Look(w.t.Context(), w); err == nil {
		w.third = v.Third
	}
	return p
}

// computeAll computes what is open of the round under way and of all later ones.
func computeAll(p *worktest.Play, by ...string) {
	for p.Lease().Phase == workv1.PHASE_ACTIVE {
		first := int(p.Lease().Round) * p.Order.Problem.Shards
		for s := range p.Order.Problem.Shards {
			if p.Unit(first+s).Status == workv1.UNIT_STATUS_OPEN {
				p.Compute(first+s, by[s%len(by)])
			}
		}
		p.FinishRound()
	}
}

// forge has a provider forge a receipt. It is disputed to the end, and the provider loses its stake and its power.
func forge(w *World, o job.Order) *worktest.Play {
	if w.guilty[chaintest.Named(forger).String()] { // it is excluded for good
		return wash(w, o)
	}
	honest, cheat := worktest.NewTraining(w.t, nil), worktest.NewTraining(w.t, &worktest.Lie{Unit: 0, Step: 2, Element: 5})
	o.Problem = honest.Problem
	if err := w.Do(func(ctx sdk.Context) error { return w.Power.Credit(ctx, chaintest.Named(forger).Address, 1e15) }); err != nil {
		w.t.Fatal(err)
	}
	p := w.begin(o, worktest.Consumer, "v0")
	p.Computer = cheat
	p.Compute(0, forger)
	honest.Learn(cheat)
	p.Computer = honest
	start := honest.Problem.Start
	id := p.Dispute(job.UnitTarget(0), 0, honest.Unit(0, start))
	w.guilty[chaintest.Named(forger).String()] = true
	w.wantLoser(p, id, disputev1.SIDE_DEFENDER, cheat.Unit(0, start), honest.Unit(0, start))
	if got, err := w.Power.Effective(w.Ctx(), chaintest.Named(forger).Address); err != nil || got != 0 {
		w.t.Errorf("the forger has a power of %d (%v)", got, err)
	}
	computeAll(p, "p1", "p2")
	return p
}

// wash has the adversary order from its own peers, and be credited for it.
func wash(w *World, o job.Order) *worktest.Play {
	o.Conditions.Credit, o.Conditions.MaxPrice = true, 1_000*tally
	p := w.begin(o, mallory, "v1")
	computeAll(p, "q0", "q1")
	return p
}

// misjudge has a challenger dispute honest work, and lose its bond.
func misjudge(w *World, o job.Order) *worktest.Play {
	honest, wrong := worktest.NewTraining(w.t, nil), worktest.NewTraining(w.t, &worktest.Lie{Unit: 1, Step: 1, Element: 3})
	o.Problem = honest.Problem
	p := w.begin(o, worktest.Consumer, "v0")
	p.Computer = honest
	p.Compute(1, "p1")
	start := honest.Problem.Start
	id := p.Dispute(job.UnitTarget(1), 0, wrong.Unit(1, start))
	w.wantLoser(p, id, disputev1.SIDE_CHALLENGER, honest.Unit(1, start), wrong.Unit(1, start))
	computeAll(p, "p2", "p1")
	return p
}

// wantLoser plays a dispute to its end.
func (w *World) wantLoser(p *worktest.Play, id uint64, loser disputev1.Side, defender, challenger *worktest.Witness) {
	if d, _ := p.PlayOut(id, defender, challenger); d.Loser != loser {
		w.t.Errorf("height %d: %v loses the dispute: %s", w.Height(), d.Loser, d.Reason)
	}
}

// silence has a provider of the adversary's take a unit of an honest consumer's, and never answer.
func silence(w *World, o job.Order) *worktest.Play {
	p := w.begin(o, worktest.Consumer, "v1")
	p.Assign(0, "q0")
	p.NextBlock(worktest.UnitTimeout + time.Second)
	computeAll(p, "q1")
	return p
}
