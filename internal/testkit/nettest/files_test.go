package nettest

import (
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/store"
)

// A consumer and its lead give the order's files to a provider alone. Before, no custodian
// could attest to what that computed, and the consumer had it for nothing. Now the custodians
// of the files say that they are missing: nobody is given a unit, and the deposit pays.
func TestFilesToProvidersAlone(t *testing.T) {
	n := Start(t, Options{
		Config: func(c *devnet.Config) {
			c.Validators = 3
			c.Work.AnswerMs = 12_000
		},
		Spec: func(s *consume.Spec) { s.Conditions.Custodians = 2 },
	})
	n.ServeOnly("consumer", "validator-0", "provider-0", "provider-1")
	n.ServeOnly("validator-0", "consumer", "provider-0", "provider-1")
	id := n.Post(nil)
	l := n.Lease(id, "a lease", func(*job.Lease) bool { return true })
	if led := n.Name(l.Lead()); led != "validator-0" {
		t.Fatalf("%s leads", led)
	}

	// They can hand the files over, and a unit with them: the chain does not take it.
	from, p := n.Consumer.Env.Host.ID(), n.Member("provider-0").Env
	if err := p.Host.SetAddrs(from, n.Consumer.Env.Host.Addrs()); err != nil {
		t.Fatal(err)
	}
	ref, err := blobs.RefOf(l.Order.Problem.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Store.Fetch(t.Context(), store.Request{Ref: ref, Pin: "friends", Sources: []store.Source{p.Host.Source(from)}}); err != nil {
		t.Fatalf("the provider has no files: %v", err)
	}
	a := job.Acceptance{Order: id, Provider: p.Account.Address}
	lead := n.Member("validator-0").Env.Account
	_, err = lead.Send(t.Context(), &workv1.MsgAssign{Lead: lead.Address, Order: id.String(), Units: []workv1.Assignment{
		{Provider: p.Account.Address, Signature: ed25519.Sign(p.Keys.Peer, a.SignBytes())},
	}})
	if err == nil || !strings.Contains(err.Error(), "no unit is given out before") {
		t.Fatalf("a unit was given out without the files: %v", err)
	}

	l = n.Lease(id, "settlement", func(l *job.Lease) bool { return l.Phase == job.Settled })
	if l.Files.Said != job.Missing || !strings.Contains(l.Reason, "cannot be had") || l.Begun() || l.Ledger.Slashed != 0 {
		t.Fatalf("files %v (%s), begun: %v\n%s", l.Files.Said, l.Reason, l.Begun(), describe(l))
	}
	each := l.Deposit / 3
	want := []job.Share{{Account: lead.Address, Amount: each}}
	for _, k := range l.Files.Custodians {
		want = append(want, job.Share{Account: k.Account, Amount: each})
	}
	order := func(a, b job.Share) int { return strings.Compare(a.Account, b.Account) }
	got := slices.SortedFunc(slices.Values(l.Ledger.Paid), order)
	if slices.SortFunc(want, order); each == 0 || !slices.Equal(got, want) || l.Ledger.Refund != l.Quote.Price+l.Deposit-3*each {
		t.Errorf("paid %+v, %d came back; want %+v", got, l.Ledger.Refund, want)
	}
	if n.Count(func(e events.Event) bool { return e.Kind == events.Computed }) != 0 {
		t.Error("a provider computed")
	}
}

// The only custodian of an order's files says that it has them, and has nothing. Providers
// have them from the lead; the challenger asks the custodian on chain, which convicts it; and
// the units that it was drawn to keep are kept by another.
func TestCustodianOfFilesThatHasNothing(t *testing.T) {
	skipUnless(t, true)
	names := []string{"validator-1", "validator-2"}
	n := Start(t, Options{
		Config: func(c *devnet.Config) {
			c.Validators = 3
			c.Work.AnswerMs = 3000
		},
		Spec: func(s *consume.Spec) {
			s.Conditions.Assurance.Audit = &consume.SpecAudit{}
			s.Conditions.Window = consume.Duration(3 * time.Second) // until then it is asked
		},
		Idle: names,
	})
	id := n.Post(nil)
	l := n.Lease(id, "a lease", func(*job.Lease) bool { return true })
	custodian := l.Files.Custodians[0]
	faker := n.Name(custodian.Account)
	_, err := n.Member(faker).Env.Account.Send(t.Context(), &workv1.MsgAttestFiles{
		Custodian: custodian.Account, Order: id.String(), Draw: uint32(l.Files.Draws), Says: workv1.WORD_HAD,
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Begin(names[1-slices.Index(names, faker)])
	l = n.Settle(id)
	fine := l.Quote.Unit * l.Params.LateBps / 10_000
	if l.Reason != "" || l.Ledger.Slashed != fine || !slices.Equal(l.Barred, []string{custodian.Account}) {
		t.Errorf("ended early: %q; %d of %d slashed, barred %v\n%s", l.Reason, l.Ledger.Slashed, fine, l.Barred, describe(l))
	}
	for i, u := range l.Units {
		if u.Attempt != 0 || len(u.Attested) != 1 || u.Attested[0].Custodian == custodian.Account {
			t.Errorf("unit %d, attempt %d: kept by %+v", i, u.Attempt, u.Attested)
		}
	}
}
