package e2e_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/store"
)

// holdRound lets providers wait before a round until the gate opens.
func holdRound(round int, gate *nettest.Gate) map[string]nettest.Bend {
	b := nettest.Bend{Before: func(ctx context.Context, r nettest.Run) error {
		if r.Round == round {
			return gate.Wait(ctx)
		}
		return nil
	}}
	return map[string]nettest.Bend{"provider-0": b, "provider-1": b}
}

func ledBy(n *nettest.Network, l *job.Lease) string { return n.Name(l.Lead()) }

// A wrong merge is found before the next round is done; the lead loses its
// office and its bond, and the next in line merges what was accepted.
func TestWrongMergeCostsTheLead(t *testing.T) {
	t.Parallel()
	gate := nettest.NewGate()
	bend := holdRound(1, gate)
	bend["validator-0"] = nettest.Bend{Wrong: func(r nettest.Run) bool { return r.Merge && r.Round == 0 }}
	n := nettest.Start(t, nettest.Options{Config: func(c *devnet.Config) { c.Validators = 3 }, Bend: bend})
	id := n.Post(nil)
	n.Lease(id, "another lead", func(l *job.Lease) bool { return l.LeadIndex > 0 })
	gate.Open()
	l := n.Settle(id)
	ds := disputes(t, n)
	if len(ds) != 1 || about(ds[0]).Kind() != job.AboutMerge || ds[0].Loser != disputev1.SIDE_DEFENDER || n.Name(ds[0].Parties.Defender) != "validator-0" {
		t.Fatalf("disputes %+v", ds)
	}
	if !l.Leads[0].Gone || paid(n, l.Ledger.Paid, "validator-0") != 0 || paid(n, l.Ledger.SlashPaid, n.Name(ds[0].Parties.Challenger)) == 0 {
		t.Errorf("leads %+v, paid %+v, slash paid %+v", l.Leads, l.Ledger.Paid, l.Ledger.SlashPaid)
	}
	for i, u := range l.Units[:2] {
		if u.Attempt != 0 {
			t.Errorf("unit %d was computed again, though nobody disputed it", i)
		}
	}
}

func TestIdleLeadIsTakenOver(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	gate := nettest.NewGate()
	n := nettest.Start(t, nettest.Options{
		// On a busy machine no lead would merge the first round in less.
		Config: func(c *devnet.Config) { c.Validators = 3; c.Work.LeadTimeoutMs = 10_000 },
		Bend:   holdRound(1, gate),
	})
	id := n.Post(nil)
	n.Lease(id, "units of the second round", func(l *job.Lease) bool {
		return l.Round == 1 && l.Units[2].Status == job.Assigned && l.Units[3].Status == job.Assigned
	})
	n.End("validator-0")
	gate.Open()
	l := n.Settle(id)
	if l.LeadIndex == 0 || ledBy(n, l) == "validator-0" || paid(n, l.Ledger.Paid, ledBy(n, l)) == 0 {
		t.Errorf("%s leads, paid %+v", ledBy(n, l), l.Ledger.Paid)
	}
	if paid(n, l.Ledger.SlashPaid, job.Insurance) == 0 {
		t.Error("the idle lead lost nothing")
	}
}

// missing checks a lease whose files could not be had: its deposit paid who waited for
// them, and nothing else was lost.
func missing(t *testing.T, n *nettest.Network, l *job.Lease) {
	t.Helper()
	if !strings.Contains(l.Reason, "cannot be had") || l.Ledger.Refund < l.Quote.Price || paid(n, l.Ledger.Paid, "validator-0") == 0 || l.Ledger.Slashed != 0 || l.Begun() {
		t.Fatalf("it ended with %q, refunded %d of %d; %+v", l.Reason, l.Ledger.Refund, l.Quote.Price, l.Ledger)
	}
}

// An order that says a step costs a thousand times what it does, so that accomplices are
// credited with as much power, costs its deposit. Either its custodians say first that the files
// do not make it up, or a challenger has shown what they say.
func TestOrderThatOverstatesItsCost(t *testing.T) {
	t.Parallel()
	n := nettest.Start(t, nettest.Options{})
	l := n.Settle(n.Post(func(o *job.Order) { o.Problem.StepFLOPs *= 1000; o.Conditions.MaxPrice *= 1000 }))
	if l.Ledger.Refuter == "" {
		missing(t, n, l)
		return
	}
	if !strings.Contains(l.Reason, "a step takes") || l.Ledger.Refund != l.Quote.Price || paid(n, l.Ledger.Paid, "challenger-0") == 0 || l.Ledger.Slashed != 0 || l.Begun() {
		t.Fatalf("it ended with %q, refunded %d of %d; %+v", l.Reason, l.Ledger.Refund, l.Quote.Price, l.Ledger)
	}
}

// An order whose files are those of another costs its deposit.
func TestOrderThatItsFilesDoNotMake(t *testing.T) {
	t.Parallel()
	n := nettest.Start(t, nettest.Options{})
	id := n.Post(func(o *job.Order) {
		data := n.Draft.Job.Data.Clone()
		data.Set(5, data.At(5)^1)
		ref, err := n.Consumer.Env.Store.PutBytes("other", canon.Encode(data.Encode))
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range o.Problem.Files {
			if f.Role == replay.RoleData {
				o.Problem.Files[i] = blobs.File(f.Role, ref)
			}
		}
	})
	missing(t, n, n.Settle(id))
}

// Custodians with less memory than an honest order needs said that its files are missing, and
// shared its deposit with the lead. Now they say that they cannot keep it: all is returned.
func TestCustodiansTooSmall(t *testing.T) {
	t.Parallel()
	n := nettest.Start(t, nettest.Options{Env: func(env *role.Env) {
		if strings.HasPrefix(env.Name, "validator") {
			env.Jobs.Exec = engine.Bounded(env.Jobs.Exec, 1<<10)
		}
	}})
	l := n.Settle(n.Post(nil))
	if l.Files.Said == job.Missing || len(l.Ledger.Paid) != 0 || l.Ledger.Slashed != 0 || l.Ledger.Refund != l.Quote.Price+l.Deposit {
		t.Errorf("files %v (%s): %+v paid, %d slashed, %d of %d returned", l.Files.Said, l.Reason, l.Ledger.Paid, l.Ledger.Slashed, l.Ledger.Refund, l.Quote.Price+l.Deposit)
	}
}

// A consumer that does not hand over its files loses its deposit.
func TestOrderWithoutItsFiles(t *testing.T) {
	t.Parallel()
	n := nettest.Start(t, nettest.Options{
		Config: func(c *devnet.Config) { c.Work.AnswerMs = 20_000 }, // a slow machine answers in a quarter of it,
	})
	o := n.Order()
	id, err := consume.Post(t.Context(), n.Consumer.Env, &o) // and serves nothing
	if err != nil {
		t.Fatal(err)
	}
	missing(t, n, n.Settle(id))
}

// hanging serves blocks, but one of them never.
type hanging struct {
	*store.Store
	never cid.Cid
}

func (h hanging) Block(ctx context.Context, id cid.Cid) ([]byte, error) {
	if id == h.never {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Store.Block(ctx, id)
}

// A consumer that hands over a file of one order at a crawl does not hold up
// other orders.
func TestSlowConsumerHoldsUpNobody(t *testing.T) {
	t.Parallel()
	n := nettest.Start(t, nettest.Options{Config: func(c *devnet.Config) {
		c.Work.AnswerMs = nettest.Patience.Milliseconds() // so that the slow order ends after all else that is waited for
	}})
	env := n.Consumer.Env
	ref, err := env.Store.PutBytes("slow", []byte("never to be had"))
	if err != nil {
		t.Fatal(err)
	}
	slow := n.Order()
	for i, f := range slow.Problem.Files {
		if f.Role == replay.RoleModel {
			slow.Problem.Files[i] = blobs.File(f.Role, ref)
		}
	}
	first, err := consume.Post(t.Context(), env, &slow)
	if err != nil {
		t.Fatal(err)
	}
	l := n.Lease(first, "the lease", func(*job.Lease) bool { return true })
	asked := make(chan struct{})
	waiting := sync.OnceFunc(func() { close(asked) })
	lead := n.Member("validator-0").Env.Host.ID()
	env.Blobs.Serve(leases.Lease{Lease: l})
	env.Host.ServeBlocks(hanging{env.Store, ref.CID}, func(who peer.ID, _ canon.Hash, id cid.Cid) bool {
		if who == lead && id == ref.CID {
			waiting()
		}
		return true
	})
	<-asked
	second := n.Post(nil)
	n.Lease(second, "settlement", func(l *job.Lease) bool { return l.Phase == job.Settled })
	if l, err := env.Leases.Get(t.Context(), first); err != nil || l.Phase != job.Active || l.Begun() {
		t.Fatalf("%v, %v: the slow order was over before the other", l, err)
	}
}

// Training whose loss becomes no number ends after the round in which it does;
// what was computed is paid, the rest refunded.
func TestLossThatIsNoNumber(t *testing.T) {
	t.Parallel()
	n := nettest.Start(t, nettest.Options{Spec: func(s *consume.Spec) {
		s.Problem.Rounds, s.Problem.Steps, s.Problem.Interval = 3, 16, 8
		s.Problem.Optimizer = consume.SpecOptimizer{Name: "sgd", LearningRate: 1e6}
	}})
	id := n.Post(nil)
	l := n.Settle(id)
	if !strings.Contains(l.Reason, "loss is not a finite number") || l.Round != 1 || l.Ledger.Refund < l.Quote.Price/2 || len(l.Ledger.Paid) == 0 {
		t.Fatalf("it ended after round %d with %q, ledger %+v", l.Round, l.Reason, l.Ledger)
	}
	s, err := n.Consumer.Env.States.Get(t.Context(), l, l.FinalRoot())
	if err != nil || replay.Finite(replay.LossOf(s)) || s.Find(job.LossSlot).Type != tensor.Float32 {
		t.Fatalf("the state says %v, %v", replay.LossOf(s), err)
	}
	d, err := consume.Deliver(t.Context(), n.Consumer.Env, l, t.TempDir(), nil)
	if err != nil || d.Diverged == nil || d.Diverged.Round != 1 || !d.ModelDiverged() {
		t.Fatalf("it is delivered as %+v, %v", d, err)
	}
}

// Training of which no round is better than the first ends by itself, and delivers that round; the rest of the price comes back.
func TestOrderEndsWhenItIsEnough(t *testing.T) {
	t.Parallel()
	n := nettest.Start(t, nettest.Options{Spec: func(s *consume.Spec) {
		s.Problem.Rounds, s.Problem.Best = 8, consume.SpecBest{Metric: "loss", Patience: 1}
		s.Problem.Optimizer = consume.SpecOptimizer{Name: "sgd", LearningRate: 1e-9} // it learns nothing
	}})
	l := n.Settle(n.Post(nil))
	if !strings.Contains(l.Reason, "its consumer has stopped it") || l.Round < 2 || l.Round == 8 || l.Ledger.Refund == 0 {
		t.Fatalf("it ended after round %d with %q, refund %d", l.Round, l.Reason, l.Ledger.Refund)
	}
	d, err := consume.Deliver(t.Context(), n.Consumer.Env, l, t.TempDir(), nil)
	if err != nil || d.Round != 1 || len(d.Losses) != l.Round || d.Metrics["loss"] == 0 || len(d.Scores) != l.Round || d.Diverged != nil || !strings.Contains(d.Enough, "after round 1 was the best") {
		t.Fatalf("of %d rounds the model is of %d: %+v, %v", l.Round, d.Round, d, err)
	}
	if got, err := d.Result.State.Root(); err != nil || got != l.Merges[0].Root {
		t.Fatalf("the model is of another state, %v", err)
	}
}

func TestOrderThatNobodyTakes(t *testing.T) {
	t.Parallel()
	n := nettest.Start(t, nettest.Options{})
	funds := n.Config().Funds

	t.Run("too dear for the consumer", func(t *testing.T) {
		o := n.Order()
		o.Conditions.MaxPrice = funds + 1
		if _, err := consume.Post(t.Context(), n.Consumer.Env, &o); err == nil || !strings.Contains(err.Error(), "balance") {
			t.Fatal(err)
		}
	})
	t.Run("conditions that no offer meets", func(t *testing.T) {
		o := n.Order()
		o.Conditions.MinProviders, o.Conditions.Expires = 9, 500
		id, err := consume.Post(t.Context(), n.Consumer.Env, &o)
		if err != nil {
			t.Fatal(err)
		}
		q, err := consume.Quote(t.Context(), n.Consumer.Env, &o)
		if err != nil || !strings.Contains(consume.Obstacles(q.Bids), "provider") {
			t.Fatalf("%v, %v", q, err)
		}
		p, err := consume.Follow(t.Context(), n.Consumer.Env, id, func(consume.Progress) bool { return false })
		if !errors.Is(err, consume.ErrUnmet) || p.Lease != nil {
			t.Fatalf("%+v, %v", p, err)
		}
	})
	// Nothing is missing: the whole purse can be spent, but for fees and a deposit of 1 %.
	o := n.Order()
	o.Conditions.MaxPrice = (funds - 20_000) / 101 * 100
	if _, err := consume.Post(t.Context(), n.Consumer.Env, &o); err != nil {
		t.Fatal(err)
	}
	if err := n.EachBlock(func(client.Block) (bool, error) { return false, nil }); err != nil {
		t.Fatal(err)
	}

}
