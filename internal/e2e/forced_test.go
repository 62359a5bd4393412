package e2e_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/role"
)

// often forces so many attempts that a small order has some, as far as the rules
// can be in equilibrium then.
func often(c *devnet.Config) {
	p := job.DefaultParams.Quick()
	p.ForcedBps, p.JackpotFactor, p.TaxBps, p.VerdictFactor = 4500, 0, 9000, 10
	c.Work = wire.ParamsToProto(p, wire.Sentences{Carelessness: time.Hour.Milliseconds(), Absence: time.Hour.Milliseconds()})
}

// lazy is a validator that attests to everything and passes everything without
// looking, with the best digest that can be had from what the receipt says.
func lazy(ctx context.Context, env *role.Env) error {
	me := env.Account.Address
	return env.EachBlock(ctx, func(ctx context.Context, _ client.Block) error {
		leases, err := env.Leases.Live(ctx, me)
		if err != nil {
			return err
		}
		for _, l := range leases {
			for i := range l.Units {
				u := &l.Units[i]
				if u.Status != job.Received && u.Status != job.Counted {
					continue
				}
				order := l.Order.ID().String()
				if l.MayAttest(i, me) {
					_, _ = env.Account.Send(ctx, &workv1.MsgAttest{Custodian: me, Order: order, Unit: uint32(i), Attempt: uint32(u.Attempt)})
				}
				if !slices.ContainsFunc(u.Audits, func(a job.Audit) bool { return a.Auditor == me && !a.Done && !a.Forfeit }) {
					continue
				}
				output, pi, err := vrf.Prove(env.Keys.VRF, proof.AuditInput(u.Receipt.ID(), me))
				if err != nil {
					return err
				}
				var outcomes []proof.Outcome
				for _, s := range proof.Segments(output[:], l.Order.Problem.Segments(), u.Audited) {
					outcomes = append(outcomes, proof.Outcome{Before: u.Receipt.Checkpoints[s], End: u.Receipt.Checkpoints[s+1]})
				}
				digest := proof.Digest(me, u.Receipt.ID(), outcomes)
				_, _ = env.Account.Send(ctx, &workv1.MsgReport{
					Auditor: me, Order: order, Unit: uint32(i), Attempt: uint32(u.Attempt), Proof: pi, Digest: digest[:], Pass: true,
				})
			}
		}
		return nil
	})
}

// Where attempts are forced, an auditor that passes what it has not looked at
// loses its bond; one that looks is paid, and so is the provider. What is trained
// is what an honest run gives.
func TestLazyAuditorIsFoundByForcedErrors(t *testing.T) {
	if os.Getenv(soak) == "" {
		t.Skip("takes minutes since draws come after receipts; make soak plays it")
	}
	t.Parallel()
	n := nettest.Start(t, nettest.Options{
		Config: func(c *devnet.Config) {
			c.Validators = 3
			often(c)
		},
		Spec: func(s *consume.Spec) {
			s.Problem.Rounds, s.Problem.Shards = 4, 4 // that nothing is forced has odds of 0.55¹⁶
			s.Problem.Steps = 6                       // segments of two
			s.Conditions.MaxPrice *= 100
			s.Conditions.UnitTimeout = consume.Duration(20 * time.Second) // a truth that contradicts the lazy holds the lease as long
			s.Conditions.Assurance.Audit, s.Conditions.Custodians = &consume.SpecAudit{Auditors: 2, Segments: 2}, 2
		},
		Play: map[string]func(context.Context, *role.Env) error{"validator-2": lazy},
		Idle: []string{"challenger-0"},
	})
	id := n.Post(nil)
	shown := n.Lease(id, "a forced attempt", func(l *job.Lease) bool { return len(l.Forced()) > 0 })
	for _, f := range shown.Forced() {
		for i := range f.Unit.Audits {
			a := &f.Unit.Audits[i]
			if diligent := n.Name(a.Auditor) == "validator-1"; a.Done && f.Right(a) != diligent {
				t.Errorf("attempt %d of unit %d: %s said %+v", f.Unit.Attempt, f.Index, n.Name(a.Auditor), a)
			}
		}
	}
	before := n.Config().Stake
	l := n.Settle(id)
	if d, z := stakeOf(t, n, "validator-1"), stakeOf(t, n, "validator-2"); d != before || z+l.Ledger.Slashed != before || l.Ledger.Slashed == 0 {
		t.Errorf("of %d utally the diligent auditor has %d, the lazy one %d; %d were slashed", before, d, z, l.Ledger.Slashed)
	}
	if d, z := paid(n, l.Ledger.Prizes, "validator-1"), paid(n, l.Ledger.Prizes, "validator-2"); d <= z { // both attest
		t.Errorf("prizes of %d for the diligent auditor, %d for the lazy one", d, z)
	}
	if paid(n, l.Ledger.SlashPaid, "provider-0")+paid(n, l.Ledger.SlashPaid, "provider-1") == 0 {
		t.Errorf("providers have nothing of what was slashed: %+v", l.Ledger.SlashPaid)
	}
	for i, u := range l.Units {
		for _, a := range u.Audits {
			if a.Wrong {
				t.Errorf("unit %d: the word of %s was refuted", i, n.Name(a.Auditor))
			}
		}
	}
}

func stakeOf(t *testing.T, n *nettest.Network, name string) uint64 {
	t.Helper()
	r, err := providerv1.NewQueryClient(n.Consumer.Env.Chain.Conn).Peer(t.Context(), &providerv1.QueryPeerRequest{Account: n.Member(name).Home.Address})
	if err != nil {
		t.Fatal(err)
	}
	return r.Peer.Stake
}
