package e2e_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine/cpu"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/evidence"
)

// answerTime is what custodians have for an answer in these scenarios.
func answerTime(d time.Duration) func(*devnet.Config) {
	return func(c *devnet.Config) {
		c.Validators = 3
		c.Work.AnswerMs = d.Milliseconds()
	}
}

// pause holds providers back when they have an order's files, and before they compute.
type pause struct {
	gate *nettest.Gate
	held chan string // who is
}

func newPause() *pause { return &pause{nettest.NewGate(), make(chan string, 2)} }

// bend is what the providers of a network with this pause do.
func (p *pause) bend() map[string]nettest.Bend {
	out := map[string]nettest.Bend{}
	for _, name := range []string{"provider-0", "provider-1"} {
		held := sync.OnceFunc(func() { p.held <- name })
		out[name] = nettest.Bend{Before: func(ctx context.Context, _ nettest.Run) error {
			held()
			return p.gate.Wait(ctx)
		}}
	}
	return out
}

// end ends the duties of custodians once so many providers have the files from them, and
// lets the providers go on. So nobody keeps what they compute.
func (p *pause) end(t *testing.T, n *nettest.Network, providers int, custodians ...string) {
	t.Helper()
	for range providers {
		select {
		case <-p.held:
		case <-time.After(nettest.Patience):
			t.Fatal("a provider does not begin")
		}
	}
	for _, name := range custodians {
		n.End(name)
	}
	p.gate.Open()
}

// A custodian that attests and keeps nothing hands nothing over. The challenger asks it
// on chain; it loses its bond and its place, and who is drawn in its place attests
// and is paid.
func TestCustodianThatKeepsNothing(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	names, held := []string{"validator-1", "validator-2"}, newPause()
	n := nettest.Start(t, nettest.Options{
		Config: answerTime(3 * time.Second),
		Bend:   held.bend(),
		Spec: func(s *consume.Spec) {
			s.Problem.Shards, s.Conditions.Providers = 1, 1 // no other unit has the faker as custodian
			s.Conditions.Assurance.Audit = &consume.SpecAudit{}
			s.Conditions.UnitWindow = consume.Duration(20 * time.Second) // until then it is asked
		},
	})
	id := n.Post(nil)
	held.end(t, n, 1, names...)
	l := n.Lease(id, "a drawn custodian", func(l *job.Lease) bool { return len(l.Units[0].Attested) > 0 })
	drawn := l.Units[0].Attested[0].Custodian
	faker := n.Name(drawn)
	_, err := n.Member(faker).Env.Account.Send(t.Context(), &workv1.MsgAttest{Custodian: drawn, Order: id.String()})
	if err != nil {
		t.Fatal(err)
	}
	honest := names[1-slices.Index(names, faker)]
	n.Begin(honest)
	l = n.Settle(id)
	bond := l.Params.KeepFactor * (l.Quote.Unit + l.Quote.Keep)
	if l.Ledger.Slashed != bond || !slices.Equal(barred(n, l), []string{faker}) {
		t.Errorf("%d utally of %d were slashed, barred are %v", l.Ledger.Slashed, bond, barred(n, l))
	}
	if paid(n, l.Ledger.Paid, faker) != 0 || paid(n, l.Ledger.Paid, honest) < 2*l.Quote.Keep || l.Units[0].Attempt != 0 || paid(n, l.Ledger.SlashPaid, "challenger-0") == 0 {
		t.Errorf("paid %+v, out of slashes %+v", l.Ledger.Paid, l.Ledger.SlashPaid)
	}
	for i, u := range l.Units {
		if !u.Keeps(n.Member(honest).Home.Address) {
			t.Errorf("unit %d, attempt %d: attested %+v", i, u.Attempt, u.Attested)
		}
	}
}

// A custodian that was stopped and begun again answers what it was asked meanwhile,
// and earns the fee.
func TestCustodianAnswersAfterARestart(t *testing.T) {
	t.Parallel()
	gate := nettest.NewGate()
	n := nettest.Start(t, nettest.Options{
		Config: answerTime(nettest.Patience),
		Bend:   holdRound(1, gate),
	})
	id := n.Post(nil)
	l := n.Lease(id, "an accepted round", nettest.MergedBy(1))
	drawn := [2]string{l.Units[0].Attested[0].Custodian, l.Units[1].Attested[0].Custodian}
	custodians := slices.Compact([]string{n.Name(drawn[0]), n.Name(drawn[1])})
	for _, custodian := range custodians {
		n.End(custodian)
	}
	for unit := range 2 {
		_, err := n.Consumer.Env.Account.Send(t.Context(), &workv1.MsgAsk{
			Sender: n.Consumer.Home.Address, Order: id.String(), Unit: uint32(unit), Custodian: drawn[unit],
		})
		if err != nil {
			t.Fatal(err)
		}
		n.Moved("consumer", -int64(l.Params.AskFee))
		n.Moved(n.Name(drawn[unit]), int64(l.Params.AskFee))
	}
	n.Lease(id, "both questions drawn", func(l *job.Lease) bool {
		return len(l.Questions()) == 2 && !slices.ContainsFunc(l.Questions(), func(r *job.Question) bool { return r.Due == 0 })
	})
	for _, custodian := range custodians {
		n.Begin(custodian)
	}
	n.Lease(id, "both answers", func(l *job.Lease) bool { return len(l.Questions()) == 0 })
	for unit := range 2 {
		n.Await("an answer", func(e events.Event) bool {
			return e.Role == n.Name(drawn[unit]) && e.Kind == events.Answered && e.Unit == unit
		})
	}
	gate.Open()
	if l = n.Settle(id); l.Ledger.Slashed != 0 {
		t.Errorf("%d utally were slashed", l.Ledger.Slashed)
	}
}

// When provider, lead and consumer are gone, the custodians have all that a proof
// needs.
func TestBundleFromCustodiansAlone(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	n := nettest.Start(t, nettest.Options{
		Config: func(c *devnet.Config) { c.Validators = 3 },
		Spec:   func(s *consume.Spec) { s.Conditions.Custodians = 2 },
		Idle:   []string{"challenger-0"}, // has seen nothing
	})
	l := n.Settle(n.Post(nil))
	for _, name := range []string{"validator-0", "provider-0", "provider-1", "consumer"} {
		if slices.ContainsFunc(l.Files.Custodians, func(p job.FileCustodian) bool { return n.Name(p.Account) == name }) {
			t.Fatalf("%s keeps", name)
		}
		if err := n.Member(name).Env.Host.Close(); err != nil {
			t.Fatal(err)
		}
	}
	collected(t, n, l)
}

// collected collects a proof of a settled lease, for a challenger that has seen nothing of
// it, and checks it.
func collected(t *testing.T, n *nettest.Network, l *job.Lease) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "proof.bundle")
	trust, err := evidence.Collect(t.Context(), n.Member("challenger-0").Env, l, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := evidence.Check(t.Context(), bytes.NewReader(b), int64(len(b)), trust.Is, cpu.New(1)); err != nil {
		t.Fatal(err)
	}
}
