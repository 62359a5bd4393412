package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/demo"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/store"
)

// paid returns what a role got out of some shares.
func paid(n *nettest.Network, shares []job.Share, name string) uint64 {
	for _, s := range shares {
		if n.Name(s.Account) == name {
			return s.Amount
		}
	}
	return 0
}

func barred(n *nettest.Network, l *job.Lease) (names []string) {
	for _, account := range l.Barred {
		names = append(names, n.Name(account))
	}
	return names
}

// disputes returns those that somebody lost: two who find the same fraud at once
// both dispute it, and the first conviction ends the other.
func disputes(t *testing.T, n *nettest.Network) []disputev1.Dispute {
	t.Helper()
	r, err := disputev1.NewQueryClient(n.Consumer.Env.Chain.Conn).Disputes(t.Context(), &disputev1.QueryDisputesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(r.Disputes, func(d disputev1.Dispute) bool {
		return d.Stage == "over" && d.Loser == disputev1.SIDE_UNSPECIFIED
	})
}

// short gives units so little time that a test can wait for them to be late.
func short(s *consume.Spec) { s.Conditions.UnitTimeout = consume.Duration(8 * time.Second) }

// As demo-check has it: one accumulator that is wrong by one unit in the last place is found by the
// auditor, who re-executes every segment; the cheater defends it to the end.
func TestCheaterIsConvicted(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	n := nettest.Start(t, nettest.Options{
		// Products over a batch of 8 have two fold blocks.
		Spec: func(s *consume.Spec) {
			s.Conditions.Assurance.Audit, s.Problem.Batch = &consume.SpecAudit{Auditors: 1, Segments: 2}, 8
		},
		Env: func(env *role.Env) {
			if env.Name == "provider-1" {
				env.Jobs.Exec, _ = demo.CheatULP.Executor(env.Jobs.Exec, job.Training, 4)
			}
		},
	})
	l := n.Settle(n.Post(nil))
	ds := disputes(t, n)
	if len(ds) != 1 || ds[0].Loser != disputev1.SIDE_DEFENDER || n.Name(ds[0].Parties.Defender) != "provider-1" || ds[0].Op != "MatMul" || ds[0].FoldFrom < 1 {
		t.Fatalf("disputes %+v", ds)
	}
	if got := barred(n, l); !slices.Equal(got, []string{"provider-1"}) || paid(n, l.Ledger.Paid, "provider-1") != 0 {
		t.Errorf("barred %v, paid %+v", got, l.Ledger.Paid)
	}
	challenger := n.Name(ds[0].Parties.Challenger)
	if paid(n, l.Ledger.SlashPaid, challenger) == 0 || paid(n, l.Ledger.SlashPaid, job.Insurance) == 0 {
		t.Errorf("%s convicted it; the slash went to %+v", challenger, l.Ledger.SlashPaid)
	}
}

func TestVanishedProviderIsReplaced(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	n := nettest.Start(t, nettest.Options{
		Spec: short,
		Bend: map[string]nettest.Bend{"provider-1": {Before: func(ctx context.Context, r nettest.Run) error {
			if r.Step == 2 {
				<-ctx.Done()
			}
			return ctx.Err()
		}}},
	})
	id := n.Post(nil)
	n.Await("a unit half done", func(e events.Event) bool { return e.Role == "provider-1" && e.Kind == events.Computed && e.Step == 2 })
	n.End("provider-1")
	if err := n.Member("provider-1").Env.Host.Close(); err != nil {
		t.Fatal(err)
	}
	l := n.Settle(id)
	if paid(n, l.Ledger.Paid, "provider-1") != 0 || l.Ledger.Slashed == 0 || len(disputes(t, n)) != 0 {
		t.Errorf("paid %+v, slashed %d", l.Ledger.Paid, l.Ledger.Slashed)
	}
	if most := uint64(l.Params.MaxLate+1) * l.Quote.Unit; l.Ledger.Slashed > most {
		t.Errorf("a late unit cost %d utally, more than the pay for it", l.Ledger.Slashed)
	}
}

// With one unit a round the lead would always choose the same provider. The other
// asks the chain for a unit, and gets the next.
func TestPassedOverProviderGetsAUnit(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	gate := nettest.NewGate()
	n := nettest.Start(t, nettest.Options{
		Config: func(c *devnet.Config) {
			c.Work.LeadTimeoutMs = 20_000 // of which a lead on a busy machine may need a part to do what is due
		},
		Spec: func(s *consume.Spec) { s.Problem.Shards, s.Problem.Rounds = 1, 3 },
		Bend: holdRound(0, gate),
	})
	id := n.Post(nil)
	idle := n.Await("a provider that asks for a unit", func(e events.Event) bool { return e.Kind == events.Ready }).Role
	gate.Open()
	l := n.Settle(id)
	var did []string
	for _, u := range l.Units {
		did = append(did, n.Name(u.Provider))
	}
	if did[0] == idle || did[1] != idle || l.LeadIndex != 0 {
		t.Fatalf("%s asked for a unit, which were done by %v", idle, did)
	}
}

// A provider that begins again goes on from its last checkpoint, or from the
// start of the unit if that was lost.
func TestProviderResumes(t *testing.T) {
	for name, c := range map[string]struct {
		lose  func(env *role.Env, order canon.Hash) error
		times []int // that each step is computed
	}{
		"from its checkpoint": {func(*role.Env, canon.Hash) error { return nil }, []int{1: 1, 2: 1, 3: 2, 4: 1}},
		"with damaged notes": {func(env *role.Env, order canon.Hash) error {
			files, err := filepath.Glob(filepath.Join(env.Notes.Of(order, "units"), "*"))
			if err != nil || len(files) != 1 {
				return fmt.Errorf("notes %v, %v", files, err)
			}
			return os.WriteFile(files[0], nil, 0o600)
		}, []int{1: 2, 2: 2, 3: 2, 4: 1}},
		"without its checkpoint": {func(env *role.Env, order canon.Hash) error {
			return os.RemoveAll(env.Notes.Of(order, "states"))
		}, []int{1: 2, 2: 2, 3: 2, 4: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := nettest.NewGate()
			n := nettest.Start(t, nettest.Options{
				Bend: map[string]nettest.Bend{"provider-1": {Before: func(ctx context.Context, r nettest.Run) error {
					if r.Step == 3 { // of the first unit that it is given
						return gate.Wait(ctx)
					}
					return nil
				}}},
			})
			id := n.Post(nil)
			at := func(step int) func(e events.Event) bool {
				return func(e events.Event) bool {
					return e.Role == "provider-1" && e.Kind == events.Computed && e.Step == step
				}
			}
			unit := n.Await("three of four steps", at(3)).Unit
			n.End("provider-1")
			if err := c.lose(n.Member("provider-1").Env, id); err != nil {
				t.Fatal(err)
			}
			gate.Open()
			n.Begin("provider-1")
			l := n.Settle(id)
			for step, times := range c.times {
				if got := n.Count(func(e events.Event) bool { return e.Unit == unit && at(step)(e) }); got != times {
					t.Errorf("step %d was computed %d times, want %d", step, got, times)
				}
			}
			for i, u := range l.Units {
				if u.Attempt != 0 {
					t.Errorf("unit %d was given to somebody else", i)
				}
			}
		})
	}
}

// corrupt serves every block with one bit changed.
type corrupt struct{ *store.Store }

func (c corrupt) Block(ctx context.Context, id cid.Cid) ([]byte, error) {
	b, err := c.Store.Block(ctx, id)
	if err == nil {
		b = slices.Clone(b)
		b[len(b)/2] ^= 1
	}
	return b, err
}

// A provider whose data nobody can get earns nothing, and the work goes on with
// others.
func TestDataThatCannotBeHad(t *testing.T) {
	for name, serve := range map[string]func(*role.Env){
		"withheld": func(env *role.Env) {
			env.Host.ServeBlocks(env.Store, func(peer.ID, canon.Hash, cid.Cid) bool { return false })
		},
		"corrupt": func(env *role.Env) {
			env.Host.ServeBlocks(corrupt{env.Store}, func(peer.ID, canon.Hash, cid.Cid) bool { return true })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cheater *role.Env
			n := nettest.Start(t, nettest.Options{
				Spec: short,
				Env: func(env *role.Env) {
					if env.Name == "provider-1" {
						cheater = env
					}
				},
				// When it computes it has begun to serve its leases.
				Bend: map[string]nettest.Bend{"provider-1": {Before: func(context.Context, nettest.Run) error {
					serve(cheater)
					return nil
				}}},
			})
			l := n.Settle(n.Post(nil))
			// It is paid nothing, and pays for each attempt that nobody could attest to.
			if paid(n, l.Ledger.Paid, "provider-1") != 0 || l.Ledger.Slashed == 0 {
				t.Errorf("paid %+v, slashed %d", l.Ledger.Paid, l.Ledger.Slashed)
			}
			for i, u := range l.Units {
				if u.Attempt > 3 {
					t.Errorf("unit %d took %d attempts", i, u.Attempt+1)
				}
			}
		})
	}
}
