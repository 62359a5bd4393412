package work_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cometbft/cometbft/crypto/merkle"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/cosmos/cosmos-sdk/store/v2/rootmulti"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/power"
	"github.com/tally-network/tally/core/tensor"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

func begin(t testing.TB, more ...chaintest.Option) *worktest.Play {
	t.Helper()
	return worktest.Begin(t, chaintest.New(t, worktest.Network(more...)...), worktest.Order())
}

// settlement returns the stored record, proved against the app hash by way of the accumulator.
func settlement(p *worktest.Play) job.Settlement {
	p.T.Helper()
	r, err := p.Work.Settlement(context.Background(), &workv1.QuerySettlementRequest{Order: p.ID.String()})
	if err != nil {
		p.T.Fatal(err)
	}
	key := wire.AccumulatorKey()
	res, err := p.Query(context.Background(), &abci.RequestQuery{Path: "/store/" + work.Name + "/key", Data: key, Prove: true})
	if err != nil {
		p.T.Fatal(err)
	}
	keys := merkle.KeyPath{}.AppendKey([]byte(work.Name), merkle.KeyEncodingURL).AppendKey(key, merkle.KeyEncodingURL).String()
	if err := rootmulti.DefaultProofRuntime().VerifyValue(res.ProofOps, p.LastCommitID().Hash, keys, res.Value); err != nil {
		p.T.Fatal(err)
	}
	path, err := p.Work.Path(context.Background(), &workv1.QueryPathRequest{Order: p.ID.String()})
	if err != nil {
		p.T.Fatal(err)
	}
	at := canon.Position{Index: path.Index}
	for _, h := range path.Path {
		at.Path = append(at.Path, canon.Hash(h))
	}
	var all canon.Accumulator
	if err := canon.Unmarshal(res.Value, &all); err != nil || all.N != path.Count {
		p.T.Fatalf("%d settlements, the path is among %d: %v", all.N, path.Count, err)
	}
	if err := all.Verify(wire.SettlementLeaf(r.Value), at); err != nil {
		p.T.Fatal(err)
	}
	var s job.Settlement
	if err := canon.Unmarshal(r.Value, &s); err != nil {
		p.T.Fatal(err)
	}
	state, err := p.Work.State(context.Background(), &workv1.QueryStateRequest{Order: p.ID.String()})
	if err != nil || canon.Sum(canon.DomainRecord, state.Lease) != s.Record {
		p.T.Fatalf("the settlement binds another record than the lease: %v", err)
	}
	return s
}

func TestOrderFromPostToSettlement(t *testing.T) {
	p := begin(t)
	q := p.Lease().Quote
	before := map[string]uint64{}
	for _, n := range append(worktest.Providers, worktest.Validators...) {
		before[n] = p.Balance(chaintest.Named(n).Address)
	}
	burnt, err := p.Supply.Burnt(p.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	p.Finish()
	l, s := p.Lease(), settlement(p)
	if l.Phase != workv1.PHASE_SETTLED || l.Reason != "" || l.Round != 2 || len(l.Merges) != 2 {
		t.Fatalf("the lease is %v at round %d: %s", l.Phase, l.Round, l.Reason)
	}
	if s.Order != p.ID || !bytes.Equal(s.Final[:], l.Merges[1].Root) || s.Start != p.Order.Problem.Start || s.Price != q.Price {
		t.Fatalf("%+v", s)
	}
	var paid uint64
	for _, share := range s.Ledger.Paid {
		paid += share.Amount
		a := worktest.Named(t, share.Account)
		if got := p.Balance(a.Address) - before[a.Name]; got != share.Amount {
			t.Errorf("%s got %d, the ledger says %d", a.Name, got, share.Amount)
		}
	}
	if paid+s.Ledger.Refund+s.Ledger.Burnt != q.Price+s.Deposit || s.Ledger.Escrow != 0 {
		t.Fatalf("%d paid, %d back, %d burnt of %d", paid, s.Ledger.Refund, s.Ledger.Burnt, q.Price)
	}
	if left := p.Balance(worktest.Consumer.Address); left != worktest.Purse-q.Price-s.Deposit+s.Ledger.Refund {
		t.Errorf("the consumer has %d", left)
	}
	// The fees of the transactions are burnt too.
	if now, err := p.Supply.Burnt(p.Ctx()); err != nil || now-burnt <= s.Ledger.Burnt || (now-burnt-s.Ledger.Burnt)%p.Fee() != 0 {
		t.Errorf("%d burnt: %v", now-burnt, err)
	}
	// p0 and p1 computed two units each.
	for _, n := range worktest.Providers[:2] {
		got, err := powerv1.NewQueryClient(p.Chain).Account(context.Background(), &powerv1.QueryAccountRequest{Account: chaintest.Named(n).String()})
		if want := 2 * p.Order.Problem.UnitFLOPs() / power.MicroUT; err != nil || got.Power.TrainingTotal != want || got.Power.Effective != want/10*6+want%10*6/10 {
			t.Errorf("%s has %v, want %d: %v", n, got, want, err)
		}
	}
	booked, err := marketv1.NewQueryClient(p.Chain).Order(context.Background(), &marketv1.QueryOrderRequest{Order: p.ID.String()})
	if err != nil || booked.Order.Posting.Status != marketv1.STATUS_SETTLED {
		t.Fatalf("%v, %v", booked, err)
	}
}

func TestEventsTellTheStory(t *testing.T) {
	p := begin(t)
	var whats []string
	var phases []workv1.Phase
	see := func(b chaintest.Block) {
		for _, e := range chaintest.Events[*workv1.EventProgress](t, b) {
			whats = append(whats, e.What)
		}
		for _, e := range chaintest.Events[*workv1.EventPhase](t, b) {
			phases = append(phases, e.Phase)
		}
	}
	see(p.Assign(0, "p0"))
	see(p.Submit(0))
	see(p.Attest(0))
	see(p.Audit(0, true))
	p.Compute(1, "p1")
	see(p.NextBlock(worktest.UnitWindow))
	see(p.Deliver(p.Lead(), p.MergeMsg()))
	p.FinishRound()
	b := p.NextBlock(worktest.Window)
	see(b)
	want := []string{"assigned", "received", "counted", "audit passed", "accepted", "accepted", "merged", "settled"}
	if len(whats) != len(want) {
		t.Fatalf("%q, want %q", whats, want)
	}
	for i := range want {
		if whats[i] != want[i] {
			t.Fatalf("%q, want %q", whats, want)
		}
	}
	if len(phases) != 1 || phases[0] != workv1.PHASE_SETTLED {
		t.Fatalf("phases %v", phases)
	}
	// One event for each provider, however many units it computed.
	if len(chaintest.Events[*marketv1.EventPaid](t, b)) == 0 || len(chaintest.Events[*powerv1.EventCredited](t, b)) != 2 {
		t.Fatal("the end does not pay and credit everybody once")
	}
}

// A chain with leases under way on which nothing is due writes nothing.
func TestWaitingLeaseWritesNothing(t *testing.T) {
	p := begin(t)
	p.Assign(0, "p0")
	p.Submit(0)
	last := p.NextBlock(time.Second).AppHash
	for range 5 {
		if b := p.NextBlock(time.Second); !bytes.Equal(b.AppHash, last) {
			t.Fatal("an empty block changed the app hash")
		}
	}
	if b := p.NextBlock(worktest.UnitTimeout); bytes.Equal(b.AppHash, last) {
		t.Fatal("a deadline passed and nothing happened")
	}
	if u := p.Unit(0); u.Status != workv1.UNIT_STATUS_OPEN || u.Attempt != 1 {
		t.Fatalf("%+v", u)
	}
}

func TestLateProviderLosesTheUnitAndLittleElse(t *testing.T) {
	p := begin(t)
	insurance := func() uint64 { return p.Balance(moduleAddress(provider.Insurance)) }
	p.Assign(0, "p0")
	r := p.Receipt(0)
	p.NextBlock(worktest.UnitTimeout + time.Second)
	u := p.Unit(0)
	if u.Status != workv1.UNIT_STATUS_OPEN || u.Attempt != 1 || insurance() == 0 {
		t.Fatalf("%+v, %d in the fund", u, insurance())
	}
	peer, err := p.Provider.Get(p.Ctx(), chaintest.Named("p0").Address)
	if err != nil || peer.Reserved != 0 || peer.Stake != 1_000*worktest.Tally-insurance() {
		t.Fatalf("%+v, %v", peer, err)
	}
	p.Refuse(work.ErrRefused, chaintest.Named("p0"), p.SubmitMsg(r))
	p.Finish()
	if f := p.Lease().Faults; len(f) != 1 || f[0].Late != 1 {
		t.Fatalf("%v", f)
	}
}

func TestUnattestedReceiptDoesNotCount(t *testing.T) {
	p := begin(t)
	p.Assign(0, "p0")
	p.Submit(0)
	p.NextBlock(worktest.UnitTimeout + time.Second)
	if u := p.Unit(0); u.Status != workv1.UNIT_STATUS_OPEN || u.Attempt != 1 {
		t.Fatalf("%+v", u)
	}
	p.Finish()
}

func TestIdleLeadIsReplaced(t *testing.T) {
	p := begin(t)
	next := worktest.Named(t, p.Lease().Leads[1].Account)
	take := &workv1.MsgTakeLead{Validator: next.String(), Order: p.ID.String()}
	p.Refuse(work.ErrRefused, next, take)
	idle := chaintest.Named("p2")
	p.Deliver(idle, &workv1.MsgReady{Provider: idle.String(), Order: p.ID.String()})
	p.NextBlock(worktest.LeadTimeout)
	p.Deliver(next, take)
	p.Deliver(idle, &workv1.MsgReady{Provider: idle.String(), Order: p.ID.String(), Withdraw: true})
	l := p.Lease()
	if l.Lead != next.String() || l.Ledger.Slashed == 0 {
		t.Fatalf("%s leads, %d slashed", l.Lead, l.Ledger.Slashed)
	}
	for name, want := range map[string]int{"v0": 0, next.Name: 1} {
		if n, worth, err := p.Chain.Work.Leading(p.Ctx(), chaintest.Named(name).String()); err != nil || n != want || worth != uint64(n)*l.Quote.Price {
			t.Errorf("%s leads %d leases, worth %d utally, want %d: %v", name, n, worth, want, err)
		}
	}
	lapse := func(a chaintest.Account) uint32 {
		peer, err := p.Provider.Get(p.Ctx(), a.Address)
		if err != nil {
			t.Fatal(err)
		}
		return peer.Lapsed
	}
	if old := lapse(chaintest.Named("v0")); old != 500_000_000 || lapse(next) != 0 {
		t.Errorf("who was idle has lapsed by %d, who took over by %d", old, lapse(next))
	}
	p.Finish()
	if n, worth, err := p.Chain.Work.Leading(p.Ctx(), next.String()); err != nil || n != 0 || worth != 0 {
		t.Errorf("%d leases, worth %d utally, are led after the end: %v", n, worth, err)
	}
}

// Proofs stack: an order may begin in the state that a settled one ended in, and
// in no other if it says so.
func TestOrderContinuesAnother(t *testing.T) {
	p := begin(t)
	next := func(base canon.Hash) *marketv1.MsgPostOrder {
		o := p.Order
		o.Nonce, o.Problem.Parent = 2, job.Parent{Order: p.ID, Final: base} // what it starts in follows from that, and the chain need not know how
		return worktest.Post(o)
	}
	p.Refuse(market.ErrOrder, worktest.Consumer, next(p.Order.Problem.Start)) // it is not settled
	p.Finish()
	final := settlement(p).Final
	p.Refuse(market.ErrOrder, worktest.Consumer, next(p.Order.Problem.Start))
	p.Refuse(market.ErrOrder, worktest.Consumer, next(canon.Hash{})) // which state that was must be said
	m := next(final)
	m.Order.Problem.Parent = "00"
	p.Refuse(market.ErrOrder, worktest.Consumer, m)
	m.Order.Problem.Parent = final.String() // no order
	p.Refuse(market.ErrOrder, worktest.Consumer, m)
	p.Deliver(worktest.Consumer, next(final))
}

// Who waits for a unit is served before others, unless it may get no work now.
func TestWaitingProviderIsServedFirst(t *testing.T) {
	p := begin(t)
	p0, v0 := chaintest.Named("p0"), chaintest.Named("v0")
	ready := &workv1.MsgReady{Provider: p0.String(), Order: p.ID.String()}
	p.Deliver(p0, ready)
	p.Refuse(work.ErrRefused, p0, ready)
	p.Refuse(work.ErrRefused, v0, &workv1.MsgReady{Provider: v0.String(), Order: p.ID.String()})
	p.NextBlock(time.Second)
	if q := p.Lease().Queue; len(q) != 1 || q[0].Provider != p0.String() {
		t.Fatalf("%+v", q)
	}
	p.Refuse(work.ErrRefused, v0, p.AssignMsg(0, "p1"))
	m := p.AssignMsg(0, "p0")
	m.Units[0].Signature = nil
	p.Deliver(v0, m)
	p.Submit(0)
	p.Deliver(p0, ready)
	p.NextBlock(time.Second)
	if err := p.Do(func(ctx sdk.Context) error {
		return p.Provider.Jail(ctx, p0.Address, p.Now().Add(time.Hour).UnixMilli())
	}); err != nil {
		t.Fatal(err)
	}
	p.Deliver(v0, p.AssignMsg(1, "p1"))
	p.Deliver(p0, &workv1.MsgReady{Provider: p0.String(), Order: p.ID.String(), Withdraw: true})
	p.Refuse(work.ErrInactive, p0, ready)
}

func TestAbandonedOrderIsRefunded(t *testing.T) {
	p := begin(t)
	p.FinishRound()
	p.NextBlock(4 * worktest.LeadTimeout)
	p.NextBlock(worktest.Window)
	l := p.Lease()
	if l.Phase != workv1.PHASE_SETTLED || l.Reason == "" || l.Ledger.Refund < l.Quote.Price/3 || len(l.Ledger.Paid) == 0 {
		t.Fatalf("%v (%s): %+v", l.Phase, l.Reason, l.Ledger)
	}
}

func TestDeclinedOrderIsRefunded(t *testing.T) {
	p := begin(t)
	p.Deliver(p.Lead(), &workv1.MsgDecline{Lead: p.Lease().Lead, Order: p.ID.String(), Reason: "the model cannot be had"})
	p.NextBlock(time.Second)
	l := p.Lease()
	if l.Phase != workv1.PHASE_SETTLED || l.Reason != "declined: the model cannot be had" || l.Ledger.Slashed == 0 || p.Balance(worktest.Consumer.Address) != worktest.Purse {
		t.Fatalf("%v (%s), the consumer has %d", l.Phase, l.Reason, p.Balance(worktest.Consumer.Address))
	}
	settlement(p)
}

func TestHaltWhenTheLossIsNoNumber(t *testing.T) {
	for name, x := range map[string]struct {
		loss []byte
		want bool
	}{"infinite": {[]byte{0, 0, 0x80, 0x7f}, true}, "2": {[]byte{0, 0, 0, 0x40}, false}} {
		p := begin(t)
		state := lossState(t, x.loss)
		m := &workv1.MsgHalt{Sender: worktest.Challenger.String(), Order: p.ID.String(), Opening: wire.OpeningToProto(state.Open(1)), Loss: x.loss}
		p.Refuse(work.ErrRefused, worktest.Challenger, m)
		p.Compute(0, "p0")
		p.Compute(1, "p1")
		p.NextBlock(worktest.UnitWindow)
		merge := p.MergeMsg()
		root := state.Root()
		merge.Root = root[:]
		p.Deliver(p.Lead(), merge)
		if !x.want {
			p.Refuse(work.ErrRefused, worktest.Challenger, m)
			continue
		}
		p.Deliver(worktest.Challenger, m)
		p.NextBlock(worktest.Window)
		p.NextBlock(worktest.Window)
		if l := p.Lease(); l.Phase != workv1.PHASE_SETTLED || l.Reason == "" {
			t.Errorf("%s: the lease is %v", name, l.Phase)
		}
	}
}

func TestConsumerStopsItsOrder(t *testing.T) {
	p := begin(t)
	m := &workv1.MsgStop{Consumer: worktest.Consumer.String(), Order: p.ID.String()}
	p.Refuse(work.ErrRefused, worktest.Consumer, m)
	p.FinishRound()
	p.Refuse(work.ErrRefused, worktest.Challenger, &workv1.MsgStop{Consumer: worktest.Challenger.String(), Order: p.ID.String()})
	p.Deliver(worktest.Consumer, m)
	p.NextBlock(worktest.Window)
	p.NextBlock(worktest.Window)
	if l := p.Lease(); l.Phase != workv1.PHASE_SETTLED || !strings.Contains(l.Reason, "consumer") || l.Ledger.Refund == 0 {
		t.Errorf("the lease is %v (%s), %d came back", l.Phase, l.Reason, l.Ledger.Refund)
	}
	settlement(p)
}

// In the middle of a lease the chain is restarted, and exported and imported;
// all three go on to the same end.
func TestLeaseSurvivesRestartAndExport(t *testing.T) {
	db := dbm.NewMemDB()
	c := chaintest.Open(t, db, worktest.Network()...)
	p := worktest.Begin(t, c, worktest.Order())
	p.FinishRound()
	p.Compute(2, "p2")
	p.Assign(3, "p1")
	c.Restart(db)
	fork := worktest.Join(t, c.Fork(), p.Order)
	if a, b := p.Lease(), fork.Lease(); a.String() != b.String() {
		t.Fatalf("%v\nwas imported as\n%v", a, b)
	}
	for _, x := range []*worktest.Play{p, fork} {
		x.Submit(3)
		x.Attest(3)
		x.Audit(3, true)
		x.Finish()
	}
	// The blocks are others, and so is who is drawn.
	if a, b := settlement(p), settlement(fork); a.Final != b.Final || a.Price != b.Price || a.Ledger.Refund != b.Ledger.Refund || a.Ledger.Burnt != b.Ledger.Burnt {
		t.Fatalf("%+v\nafter an import\n%+v", a, b)
	}
	again := worktest.Join(t, fork.Chain.Fork(), p.Order) // an ended lease too
	again.NextBlock(time.Second)
	settlement(again)
}

func moduleAddress(name string) sdk.AccAddress { return authtypes.NewModuleAddress(name) }

// lossState is a state of two tensors of which the second is the loss.
func lossState(t *testing.T, loss []byte) *canon.Keyed {
	t.Helper()
	v, err := tensor.FromBytes(tensor.Float32, tensor.Shape{}, loss)
	if err != nil {
		t.Fatal(err)
	}
	k, err := canon.NewKeyed([]canon.Entry{{Key: "a", Value: canon.Sum("a")}, {Key: job.LossSlot, Value: v.Root()}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Through the whole chain: a provider is late, the lease is abandoned, and its consumer,
// who has paid for one round, is paid out of the fund that the penalty went to.
func TestFundPaysTheConsumerOfAFailedLease(t *testing.T) {
	p := begin(t)
	p.FinishRound()
	p.Assign(p.Order.Problem.Shards, "p0")
	p.NextBlock(worktest.UnitTimeout + time.Second)
	fund := p.Balance(moduleAddress(provider.Insurance))
	consumer := p.Balance(worktest.Consumer.Address)
	p.NextBlock(4 * worktest.LeadTimeout)
	p.NextBlock(worktest.Window + time.Second)
	l := p.Lease()
	if l.Phase != workv1.PHASE_SETTLED || l.Reason == "" || l.Ledger.Insured != fund/2 || fund == 0 {
		t.Fatalf("%v (%s): %+v, the fund had %d", l.Phase, l.Reason, l.Ledger, fund)
	}
	if got := p.Balance(worktest.Consumer.Address) - consumer; got != l.Ledger.Refund+l.Ledger.Insured {
		t.Errorf("the consumer got %d, want %d and %d", got, l.Ledger.Refund, l.Ledger.Insured)
	}
	if left := p.Balance(moduleAddress(provider.Insurance)); left != fund-l.Ledger.Insured {
		t.Errorf("the fund has %d of %d", left, fund)
	}
}
