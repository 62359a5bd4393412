package work_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/core/canon"
	game "github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// history makes random transactions about a few orders, sensible ones more often
// than not. Many are refused; whatever happens, every block of the harness
// checks all invariants.
type history struct {
	*chaintest.Chain
	*rand.Rand
	t      *testing.T
	orders []*worktest.Play
	seen   map[string]int // what happened, in all histories
}

func (h *history) pick(names []string) chaintest.Account {
	return chaintest.Named(names[h.IntN(len(names))])
}

// act queues one transaction.
func (h *history) act() {
	if len(h.orders) < 3 && h.IntN(10) == 0 {
		o := worktest.Order()
		o.Nonce = uint64(len(h.orders))
		h.Queue(worktest.Consumer, worktest.Post(o))
		h.orders = append(h.orders, worktest.Join(h.t, h.Chain, o))
		return
	}
	if h.IntN(8) == 0 {
		h.aside()
		return
	}
	if len(h.orders) == 0 {
		return
	}
	p := h.orders[h.IntN(len(h.orders))]
	state, err := h.lease(p)
	if err != nil {
		if h.IntN(4) == 0 {
			h.Queue(worktest.Consumer, &marketv1.MsgCancelOrder{Consumer: worktest.Consumer.String(), Order: p.ID.String()})
		}
		return // not leased
	}
	if state.Phase == job.Settled {
		return
	}
	h.work(p, state)
}

func (h *history) lease(p *worktest.Play) (*job.Lease, error) {
	r, err := p.Work.State(h.Ctx(), &workv1.QueryStateRequest{Order: p.ID.String()})
	if err != nil {
		return nil, err
	}
	l := &job.Lease{}
	return l, canon.Unmarshal(r.Lease, l)
}

// aside does what has nothing to do with an order.
func (h *history) aside() {
	peer := h.pick(append(worktest.Providers, worktest.Validators...))
	v := h.pick(worktest.Validators[:2])
	amount := h.Uint64N(600 * worktest.Tally)
	messages := []struct {
		from chaintest.Account
		msg  sdk.Msg
	}{
		{v, &marketv1.MsgPostOffer{Validator: v.String(), FeeBps: h.Uint32N(1000), MaxLeases: 1 + h.Uint32N(3)}},
		{v, &marketv1.MsgPostOffer{Validator: v.String(), FeeBps: h.Uint32N(1000), MaxLeases: 1 + h.Uint32N(3)}},
		{v, &marketv1.MsgWithdrawOffer{Validator: v.String()}},
		{peer, &providerv1.MsgWithdraw{Account: peer.String(), Amount: amount}},
		{peer, &providerv1.MsgDeposit{Account: peer.String(), Amount: amount}},
	}
	m := messages[h.IntN(len(messages))]
	h.Queue(m.from, m.msg)
}

// work moves one lease on, or tries to.
func (h *history) work(p *worktest.Play, l *job.Lease) {
	unit := l.Unit(min(l.Round, l.Order.Problem.Rounds-1), h.IntN(l.Order.Problem.Shards))
	u := &l.Units[unit]
	if h.IntN(6) == 0 { // whatever stands where
		h.dispute(p, l, h.target(len(l.Units)))
		return
	}
	if l.Lead() == "" || h.IntN(20) == 0 {
		v := h.pick(worktest.Validators)
		h.Queue(v, &workv1.MsgTakeLead{Validator: v.String(), Order: p.ID.String()})
		return
	}
	if l.Files.Said == job.Silent {
		v := h.pick(worktest.Validators)
		says := []workv1.Word{workv1.WORD_HAD, workv1.WORD_HAD, workv1.WORD_MISSING}[h.IntN(3)]
		h.Queue(v, p.FilesMsg(v.String(), says))
		return
	}
	switch u.Status {
	case job.Open:
		h.Queue(p.Lead(), p.AssignMsg(unit, h.pick(worktest.Providers).Name))
	case job.Assigned:
		p.Computer = worktest.Fabricated{Problem: &p.Order.Problem, Lie: []string{"", "", "lie"}[h.IntN(3)]}
		r := p.Receipt(unit)
		h.Queue(worktest.Named(h.t, r.Provider), p.SubmitMsg(r))
	case job.Received, job.Counted:
		v := h.pick(worktest.Validators)
		if h.IntN(3) == 0 {
			for _, a := range u.Audits {
				v = worktest.Named(h.t, a.Auditor)
			}
			h.Queue(v, p.ReportMsg(unit, v, h.IntN(4) > 0))
		} else {
			h.Queue(v, &workv1.MsgAttest{Custodian: v.String(), Order: p.ID.String(), Unit: uint32(unit), Attempt: uint32(u.Attempt)})
		}
	case job.Accepted:
		for s := range l.Order.Problem.Shards {
			if l.Round == l.Order.Problem.Rounds || l.Units[l.Unit(l.Round, s)].Receipt == nil {
				return
			}
		}
		h.Queue(p.Lead(), p.MergeMsg())
	}
}

func (h *history) target(n int) job.Target {
	if h.IntN(3) == 0 {
		return job.MergeTarget(h.IntN(n))
	}
	return job.UnitTarget(h.IntN(n))
}

// dispute disputes what a target stands for, if anything. Nobody moves then, so
// the clock makes the defender lose; every other game it hands over to the
// challenger's clock first.
func (h *history) dispute(p *worktest.Play, l *job.Lease, t job.Target) {
	m := &disputev1.MsgOpen{Challenger: worktest.Challenger.String(), Order: p.ID.String(), Target: wire.TargetToProto(t)}
	var o game.Opening
	if t.Kind() == job.AboutUnit {
		r := l.Units[t.Index()].Receipt
		if r == nil || h.IntN(3) > 0 {
			return
		}
		tree, s := canon.NewTree(r.Checkpoints), h.IntN(len(r.Checkpoints)-1)
		o = game.Opening{Segment: s, From: r.Checkpoints[s], To: r.Checkpoints[s+1], FromPath: tree.Prove(s), ToPath: tree.Prove(s + 1)}
		m.Attempt = uint32(l.Units[t.Index()].Attempt)
	} else if t.Index() < l.Round {
		m.Attempt = uint32(l.Merges[t.Index()].Attempt)
	}
	m.Opening = canon.Marshal(&o)
	h.Queue(worktest.Challenger, m)
}

// move lets a defender post the two roots between which its challenger must pick,
// so that the challenger's clock runs.
func (h *history) move() {
	r, err := disputev1.NewQueryClient(h.Chain).Disputes(h.Ctx(), &disputev1.QueryDisputesRequest{Open: true})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, d := range r.Disputes {
		if d.Turn == disputev1.SIDE_DEFENDER && h.IntN(2) == 0 {
			g, _, err := h.Dispute.Game(h.Ctx(), d.Id)
			if err != nil {
				h.t.Fatal(err)
			}
			roots := &game.Roots{Roots: make([]canon.Hash, len(g.Cuts()))}
			who := worktest.Named(h.t, d.Parties.Defender)
			h.Queue(who, &disputev1.MsgMove{Player: who.String(), Dispute: d.Id, Move: game.EncodeMove(roots), Number: d.Moves})
			return
		}
	}
}

// block makes a block and counts what happened in it.
func (h *history) block(pause time.Duration) {
	b := h.NextBlock(pause)
	for _, e := range chaintest.Events[*workv1.EventProgress](h.t, b) {
		h.seen[e.What]++
	}
	for _, e := range chaintest.Events[*disputev1.EventClosed](h.t, b) {
		h.seen[fmt.Sprint(e.Dispute.Loser)]++
	}
	if stuck := chaintest.Events[*workv1.EventStuck](h.t, b); len(stuck) > 0 {
		h.t.Fatal(stuck)
	}
}

func TestAnyHistoryKeepsTheInvariants(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(8) {
		h := &history{
			Chain: chaintest.New(t, worktest.Network(func(g *app.Genesis) {
				g.Dispute = disputev1.Params{Depth: 6, ClockMs: 30_000, AnswerMs: 10_000, Parallel: 2}
			})...),
			Rand: rand.New(rand.NewPCG(seed, 1)), t: t, seen: seen,
		}
		worktest.Offer(h.Chain, "v0")
		for range 120 {
			for range h.IntN(8) {
				h.act()
			}
			if h.IntN(6) == 0 {
				h.move()
			}
			pause := time.Second
			switch h.IntN(60) {
			case 0, 1:
				pause = time.Duration(h.IntN(120)) * time.Second
			case 2:
				pause = worktest.LeadTimeout
			}
			h.block(pause)
		}
		h.end(seed)
	}
	t.Log(seen)
	for _, what := range []string{"assigned", "accepted", "merged", "voided", "late", "unattested", "convicted", "lead taken over", "settled", "audit failed", "SIDE_DEFENDER", "SIDE_CHALLENGER"} {
		if seen[what] == 0 {
			t.Errorf("no history has %q: this test is not random enough", what)
		}
	}
}

// end lets time pass until everything is over, and looks for what was lost.
func (h *history) end(seed uint64) {
	for range 60 {
		h.block(10 * time.Minute)
	}
	for _, p := range h.orders {
		if l, err := h.lease(p); err == nil && l.Phase != job.Settled {
			h.t.Fatalf("seed %d: a lease is still %v", seed, l.Phase)
		}
	}
	for _, name := range []string{market.Name, dispute.Name} {
		if left := h.Balance(authtypes.NewModuleAddress(name)); left != 0 {
			h.t.Fatalf("seed %d: %s still holds %d utally", seed, name, left)
		}
	}
	for _, role := range []providerv1.Role{providerv1.ROLE_PROVIDER, providerv1.ROLE_VALIDATOR} {
		peers, err := h.Provider.WithRole(h.Ctx(), role)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, p := range peers {
			if p.Reserved != 0 {
				h.t.Fatalf("seed %d: %s still has %d utally reserved", seed, p.Account, p.Reserved)
			}
		}
	}
}
