package work_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/store/v2/rootmulti"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/event"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	game "github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// retention is how long a settled lease stays in these tests.
const retention = time.Hour

func retain(g *app.Genesis) { g.Work.RetentionMs = retention.Milliseconds() }

// keysOf counts the keys in a store that have these bytes in them.
func keysOf(t testing.TB, c *chaintest.Chain, name string, part []byte) (n int) {
	t.Helper()
	store := c.CommitMultiStore().(*rootmulti.Store).GetStoreByName(name).(storetypes.KVStore)
	all := store.Iterator(nil, nil)
	defer all.Close()
	for ; all.Valid(); all.Next() {
		if bytes.Contains(all.Key(), part) {
			n++
		}
	}
	return n
}

// A settled lease leaves the state after its retention: its parts, its dispute, its order. What is
// kept of it is its place in the record, so that it is proved still, and nobody can post it again.
func TestSettledLeaseIsPruned(t *testing.T) {
	p := begin(t, retain)
	p.Compute(0, "p0")
	p.Deliver(worktest.Challenger, challenge(p))
	p.NextBlock(time.Hour) // nobody defends the unit
	p.Finish()
	settled := settlement(p)
	before, err := p.Work.Path(context.Background(), &workv1.QueryPathRequest{Order: p.ID.String()})
	if err != nil {
		t.Fatal(err)
	}
	p.NextBlock(retention - 2*time.Second)
	if p.Lease().Phase != workv1.PHASE_SETTLED {
		t.Fatal("pruned before its time")
	}
	done := p.NextBlock(2 * time.Second)
	if e := chaintest.Events[*workv1.EventPruned](t, done); len(e) != 1 || e[0].Order != p.ID.String() {
		t.Fatalf("pruned: %v", e)
	}
	for name, want := range map[string]int{work.Name: 1, market.Name: 0, dispute.Name: 0} {
		if n := keysOf(t, p.Chain, name, p.ID[:]); n != want {
			t.Errorf("%s has %d keys of the order, want %d", name, n, want)
		}
	}
	if _, err := disputev1.NewQueryClient(p.Chain).Dispute(p.Ctx(), &disputev1.QueryDisputeRequest{Dispute: 1}); status.Code(err) != codes.NotFound {
		t.Errorf("its dispute: %v", err)
	}
	fork := p.Chain.Fork() // what is known of it survives an export
	for _, c := range []*chaintest.Chain{p.Chain, fork} {
		after, err := workv1.NewQueryClient(c).Path(context.Background(), &workv1.QueryPathRequest{Order: p.ID.String()})
		if err != nil || after.String() != before.String() {
			t.Errorf("its path was %v, is %v: %v", before, after, err)
		}
		_, err = workv1.NewQueryClient(c).Settlement(context.Background(), &workv1.QuerySettlementRequest{Order: p.ID.String()})
		if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "pruned at 20") {
			t.Errorf("settlement: %v", err)
		}
		c.Refuse(market.ErrPosted, worktest.Consumer, worktest.Post(p.Order))
		child := p.Order
		child.Nonce, child.Problem.Parent = 1, job.Parent{Order: p.ID, Final: settled.Final}
		if said := c.Refuse(market.ErrOrder, worktest.Consumer, worktest.Post(child)); !strings.Contains(said, "pruned at") {
			t.Errorf("going on from it: %s", said)
		}
	}
}

// challenge disputes the first segment of unit 0.
func challenge(p *worktest.Play) *disputev1.MsgOpen {
	roots := p.State().Units[0].Receipt.Checkpoints
	tree := canon.NewTree(roots)
	o := game.Opening{From: roots[0], To: roots[1], FromPath: tree.Prove(0), ToPath: tree.Prove(1)}
	return &disputev1.MsgOpen{Challenger: worktest.Challenger.String(), Order: p.ID.String(), Target: wire.TargetToProto(job.UnitTarget(0)), Opening: canon.Marshal(&o)}
}

// Whatever somebody says about a pruned lease is refused, and says why.
func TestNothingIsSaidOfAPrunedLease(t *testing.T) {
	p := begin(t, retain)
	p.Compute(0, "p0")
	submit, open := p.SubmitMsg(*p.State().Units[0].Receipt), challenge(p)
	p.Finish()
	p.NextBlock(retention)
	custodian := worktest.Validators[1]
	for name, x := range map[string]struct {
		from chaintest.Account
		msg  sdk.Msg
	}{
		"a receipt":  {chaintest.Named("p0"), submit},
		"an attest":  {chaintest.Named(custodian), &workv1.MsgAttest{Custodian: chaintest.Named(custodian).String(), Order: p.ID.String()}},
		"a lead":     {chaintest.Named(custodian), &workv1.MsgTakeLead{Validator: chaintest.Named(custodian).String(), Order: p.ID.String()}},
		"a question": {worktest.Challenger, &workv1.MsgAsk{Sender: worktest.Challenger.String(), Order: p.ID.String(), Custodian: chaintest.Named(custodian).String()}},
		"a dispute":  {worktest.Challenger, open},
	} {
		if said := p.Refuse(work.ErrPruned, x.from, x.msg); !strings.Contains(said, "a proof bundle proves it still") {
			t.Errorf("%s: %s", name, said)
		}
	}
	p.Refuse(market.ErrNoOrder, worktest.Consumer, &marketv1.MsgCancelOrder{Consumer: worktest.Consumer.String(), Order: p.ID.String()})
}

// An order that ended without a lease leaves the book. Nothing was signed for it, so it may come back.
func TestOrderWithoutLeaseIsForgotten(t *testing.T) {
	c := chaintest.New(t, worktest.Network(retain)...)
	o := worktest.Order()
	cancel := &marketv1.MsgCancelOrder{Consumer: worktest.Consumer.String(), Order: o.ID().String()}
	c.Deliver(worktest.Consumer, worktest.Post(o))
	c.Deliver(worktest.Consumer, cancel)
	c = c.Fork()
	c.NextBlock(retention - time.Minute)
	c.Refuse(market.ErrPosted, worktest.Consumer, worktest.Post(o))
	c.NextBlock(time.Minute)
	id := o.ID()
	if n := keysOf(t, c, market.Name, id[:]); n != 0 {
		t.Errorf("%d keys of it are left", n)
	}
	c.Deliver(worktest.Consumer, worktest.Post(o))
}

// The largest leases take many blocks to prune, of which each does a bounded part; from the first on
// nobody can read them.
func TestPruningIsBoundedInABlock(t *testing.T) {
	k, l, ctx := done(t, 8, 128, 16)
	ctx = ctx.WithGasMeter(storetypes.NewInfiniteGasMeter())
	k.Tell(quiet{}, unheard)
	end := work.NewModule(k, nil, &neighbours{})
	id := l.Order.ID().String()
	for phase := job.Active; phase != job.Settled; {
		ctx = ctx.WithBlockTime(ctx.BlockTime().Add(24 * time.Hour))
		if err := end.EndBlock(ctx); err != nil {
			t.Fatal(err)
		}
		r, err := k.Queries().Lease(ctx, &workv1.QueryLeaseRequest{Order: id})
		if err != nil {
			t.Fatal(err)
		}
		phase = job.Phase(r.Lease.Phase)
	}
	ctx = ctx.WithBlockTime(ctx.BlockTime().Add(8 * 24 * time.Hour))
	blocks, pruned := 0, 0
	for left := 1; left > 0; blocks++ {
		before := k.Entries(ctx)
		later := ctx.WithEventManager(sdk.NewEventManager())
		if err := end.EndBlock(later); err != nil {
			t.Fatal(err)
		}
		left = before - k.Entries(ctx)
		if left > work.MaxPruned+50 {
			t.Fatalf("%d entries are gone in a block", left)
		}
		gone, err := event.Of[*workv1.EventPruned](later.EventManager().ABCIEvents())
		if err != nil {
			t.Fatal(err)
		}
		pruned += len(gone)
		_, err = k.Queries().Lease(ctx, &workv1.QueryLeaseRequest{Order: id})
		if status.Code(err) != codes.NotFound {
			t.Fatalf("it can be read: %v", err)
		}
		if err := k.Invariant(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	if blocks < 4 || pruned != 1 {
		t.Errorf("pruned %d leases in %d blocks", pruned, blocks)
	}
	if n := k.Entries(ctx); n > 20 {
		t.Errorf("%d entries are left", n)
	}
}

// quiet has no games.
type quiet struct{}

func (quiet) Drop(context.Context, uint64, string) error { return nil }

func (quiet) Forget(context.Context, canon.Hash, int) (int, error) { return 0, nil }

// Who knows the height at which it asked last learns what changed since: each lease once, of its own
// leases alone if it wants. Once a settled one is pruned, who was away for so long must read all again.
func TestChangesSinceAHeight(t *testing.T) {
	p := begin(t, retain)
	asked := func(since uint64, participant string, want ...bool) uint64 { // settled?
		t.Helper()
		r, err := p.Work.Changed(context.Background(), &workv1.QueryChangedRequest{Since: since, Participant: participant})
		if err != nil || len(r.Next) > 0 || len(r.Leases) != len(want) {
			t.Fatalf("changed since %d: %v, %v; want %v", since, r, err, want)
		}
		for i, l := range r.Leases {
			if l.Settled != want[i] || l.Order != p.ID.String() || l.Changed <= since || l.Changed > r.Height {
				t.Errorf("changed since %d: %v", since, l)
			}
		}
		return r.Height
	}
	p0, stranger := chaintest.Named("p0").String(), worktest.Challenger.String()
	begun := asked(0, "", false)
	asked(0, p.Lease().Lead, false)
	asked(0, p0)
	asked(0, stranger)
	asked(begun, "")
	p.Compute(0, "p0")
	asked(0, "", false) // once, whatever happened
	computed := asked(begun, p0, false)
	p.NextBlock(time.Second)
	asked(computed, "")
	p.Finish()
	ended := asked(computed, p0, true)
	asked(computed, stranger)
	p.NextBlock(retention)
	asked(ended, "")
	_, err := p.Work.Changed(context.Background(), &workv1.QueryChangedRequest{Since: computed})
	if status.Code(err) != codes.OutOfRange {
		t.Errorf("what is missing: %v", err)
	}
	for _, q := range []*workv1.QueryChangedRequest{{Participant: "bogus"}, {Since: ended, Next: []byte{1, 2}}, {Since: 1<<64 - 1}} {
		if _, err := p.Work.Changed(context.Background(), q); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", q, err)
		}
	}
}

// unheard hears of settled leases in vain.
func unheard(context.Context, *job.Lease) error { return nil }
