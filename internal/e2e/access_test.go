package e2e_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/p2p"
)

// The blobs of a lease are for its parties and for registered challengers; nobody
// else gets them, nor blobs that are of no lease.
func TestBlobsAreForTheParties(t *testing.T) {
	t.Parallel()
	n := nettest.Start(t, nettest.Options{})
	id := n.Post(nil)
	l := n.Settle(id)
	file, _ := l.Order.Problem.File(replay.RoleModel)
	ref, err := blobs.RefOf(file)
	if err != nil {
		t.Fatal(err)
	}
	private, err := n.Member("provider-0").Env.Store.PutBytes("private", []byte("of no lease"))
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := p2p.New(p2p.Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	at := n.Member("provider-0").Env.Host
	for name, who := range map[string]*p2p.Host{
		"stranger": stranger, "provider-1": n.Member("provider-1").Env.Host, "validator-0": n.Member("validator-0").Env.Host,
		"validator-1": n.Member("validator-1").Env.Host, "challenger-0": n.Member("challenger-0").Env.Host, "consumer": n.Consumer.Env.Host,
	} {
		if err := who.SetAddrs(at.ID(), at.Addrs()); err != nil {
			t.Fatal(err)
		}
		b, err := who.Source(at.ID()).For(id).Block(t.Context(), ref.CID)
		switch {
		case name == "stranger" && !errors.Is(err, p2p.ErrRefused):
			t.Errorf("a stranger got %d bytes, %v", len(b), err)
		case name != "stranger" && (err != nil || !bytes.Contains(b, []byte("embedding"))):
			t.Errorf("%s got %d bytes, %v", name, len(b), err)
		}
		if b, err := who.Source(at.ID()).For(id).Block(t.Context(), private.CID); !errors.Is(err, p2p.ErrRefused) {
			t.Errorf("%s got %d bytes of no lease, %v", name, len(b), err)
		}
	}
}

// A provider takes units from the lead of a lease alone, and only those that are
// to be given out at the time.
func TestOffersThatAreNotTaken(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	gate := nettest.NewGate()
	n := nettest.Start(t, nettest.Options{Bend: holdRound(0, gate)})
	id := n.Post(nil)
	offer := func(from string, o role.UnitOffer) string {
		env := n.Member(from).Env
		to, err := env.Peers.Reach(t.Context(), n.Member("provider-0").Home.Address)
		if err != nil {
			t.Fatal(err)
		}
		a, err := role.Offers.Call(t.Context(), env.Host, to, o)
		switch {
		case err != nil:
			return err.Error()
		case len(a.Signature) > 0:
			return "taken"
		}
		return a.Reason
	}
	n.Lease(id, "the first round given out", func(l *job.Lease) bool {
		return l.Units[0].Status == job.Assigned && l.Units[1].Status == job.Assigned
	})
	for name, c := range map[string]struct {
		from  string
		offer role.UnitOffer
		words string
	}{
		"no order":        {"validator-0", role.UnitOffer{Order: canon.Sum("none")}, "lease of order"},
		"given out":       {"validator-0", role.UnitOffer{Order: id}, "not to be given out"},
		"later attempt":   {"validator-0", role.UnitOffer{Order: id, Attempt: 1}, "not to be given out"},
		"later round":     {"validator-0", role.UnitOffer{Order: id, Unit: 2}, "not to be given out"},
		"no unit":         {"validator-0", role.UnitOffer{Order: id, Unit: 4}, "not to be given out"},
		"after all units": {"validator-0", role.UnitOffer{Order: id, Unit: 1 << 19}, "not to be given out"},
	} {
		if got := offer(c.from, c.offer); !strings.Contains(got, c.words) {
			t.Errorf("%s: %s", name, got)
		}
	}
	gate.Open()
	n.Settle(id)

	// A second order, whose units stay open while its lead does nothing.
	n.End("validator-0")
	second := n.Post(nil)
	n.Lease(second, "its files had", func(l *job.Lease) bool { return l.Files.Said == job.Had })
	for from, words := range map[string]string{
		"validator-1": "whose peer you are not", "provider-1": "refused", "challenger-0": "refused", "validator-0": "taken",
	} {
		if got := offer(from, role.UnitOffer{Order: second}); !strings.Contains(got, words) {
			t.Errorf("%s: %s", from, got)
		}
	}
}

// The list of a receipt's checkpoints is for who was drawn until the receipt counts. The
// consumer named it, by its CID in the receipt, as a file of a second order led by a custodian
// of the first. That one had it, kept it for both, and handed it over, and the checkpoints.
func TestListByASecondOrder(t *testing.T) {
	t.Parallel()
	var heard atomic.Pointer[canon.Hash]
	mute := func(ctx context.Context, env *role.Env) error { // keeps its word of files alone, so that no receipt of x counts
		return env.EachBlock(ctx, func(ctx context.Context, _ client.Block) error {
			leases, err := env.Leases.Live(ctx, env.Account.Address)
			for _, l := range leases {
				id, says := l.Order.ID(), workv1.WORD_MISSING
				if x := heard.Load(); x != nil && id == *x {
					says = workv1.WORD_HAD
				}
				if l.Phase == job.Active && l.Files.Owes(env.Account.Address) {
					_, _ = env.Account.Send(ctx, &workv1.MsgAttestFiles{Custodian: env.Account.Address, Order: id.String(), Draw: uint32(l.Files.Draws), Says: says})
				}
			}
			return err
		})
	}
	n := nettest.Start(t, nettest.Options{
		Config: func(c *devnet.Config) { c.Validators, c.Providers, c.Spread = 4, 2, 2 },
		Spec: func(s *consume.Spec) {
			s.Problem.Rounds, s.Problem.Shards, s.Conditions.Providers, s.Conditions.Custodians = 1, 1, 1, 3
			s.Conditions.UnitTimeout = consume.Duration(90 * time.Second)
		},
		Play: map[string]func(context.Context, *role.Env) error{"validator-2": mute, "validator-3": mute},
	})
	custodian, c := n.Member("validator-1").Home.Address, n.Consumer.Env
	first := n.Order()
	first.Conditions.Validator = n.Member("validator-0").Home.Address
	x := first.ID()
	heard.Store(&x)
	if got := n.Post(func(o *job.Order) { *o = first }); got != x {
		t.Fatalf("order %v was posted, want %v", got, x)
	}
	l := n.Lease(x, "a custodian's word", func(l *job.Lease) bool {
		return l.Units[0].Status == job.Received && l.Units[0].Keeps(custodian)
	})
	list, err := blobs.RefOf(l.Units[0].Receipt.Data)
	if err != nil {
		t.Fatal(err)
	}
	second := n.Order()
	second.Nonce, second.Conditions.Validator = first.Nonce+1, custodian
	second.Problem.Files = slices.Clone(second.Problem.Files)
	for i, f := range second.Problem.Files {
		if f.Role == job.RoleHeldOut {
			second.Problem.Files[i] = blobs.File(f.Role, list)
		}
	}
	y := second.ID()
	for _, f := range second.Problem.Files {
		if ref, err := blobs.RefOf(f); err == nil && c.Store.Has(ref) {
			if err := c.Store.Pin(blobs.Pin(y), ref); err != nil {
				t.Fatal(err)
			}
		}
	}
	m, err := consume.Message(c, &second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Account.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	c.Blobs.Serve(leases.Lease{Lease: n.Lease(y, "a lease", func(*job.Lease) bool { return true })})
	n.Lease(y, "its end", func(l *job.Lease) bool { return l.Phase == job.Settled })
	id, err := c.Peers.Reach(t.Context(), custodian)
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range []canon.Hash{x, y, {}} {
		if b, err := c.Host.Source(id).For(order).Block(t.Context(), list.CID); !errors.Is(err, p2p.ErrRefused) {
			t.Errorf("for the sake of %v: %d bytes of the list, %v", order.Short(), len(b), err)
		}
	}
	if s := n.Lease(x, "the first order", func(*job.Lease) bool { return true }).Units[0].Status; s != job.Received {
		t.Errorf("its unit is %v: the list may be had", s)
	}
}
