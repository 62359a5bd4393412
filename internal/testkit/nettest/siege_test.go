package nettest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ipfs/go-cid"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/events"
)

// strangers is how many besiege a network: more where make siege asks for it, as many as leave its processors to it.
func strangers() int {
	if os.Getenv("TALLY_SIEGE") != "" {
		return 24
	}
	return 8
}

// What the network's own order must come out as, whatever is done to its peers: settled
// with the root of an honest run, and nobody slashed or turned out.
func TestSieges(t *testing.T) {
	everybody := []string{"validator-0", "validator-1", "provider-0", "provider-1", "challenger-0", "consumer"}
	for _, s := range []struct {
		name string
		long bool // make siege alone plays it
		play func(n *Network)
	}{
		{"strangers at every door", false, func(n *Network) { n.Besiege(strangers(), everybody...) }},
		{"spam in every block", true, func(n *Network) { n.Spam() }},
		{"a provider is eclipsed", true, func(n *Network) { n.Besiege(4*strangers(), "provider-0") }},
		{"the lead is eclipsed", true, func(n *Network) { n.Besiege(4*strangers(), "validator-0") }},
	} {
		t.Run(s.name, func(t *testing.T) {
			skipUnless(t, s.long)
			n := Start(t, Options{})
			s.play(n)
			wantUnharmed(t, n, n.Post(nil))
		})
	}
}

// A custodian answers its peers with what is wrong, or not at all. Others have what it keeps,
// so nobody depends on it, even where it is the only one.
func TestLyingCustodians(t *testing.T) {
	for _, s := range []struct {
		name  string
		long  bool
		blobs func(truth Blobs) Blobs
	}{
		{"wrong bytes", false, func(truth Blobs) Blobs {
			return func(ctx context.Context, c cid.Cid) ([]byte, error) {
				b, err := truth(ctx, c)
				for i := range b {
					b[i] ^= 1
				}
				return b, err
			}
		}},
		{"half a block", true, func(truth Blobs) Blobs {
			return func(ctx context.Context, c cid.Cid) ([]byte, error) {
				b, err := truth(ctx, c)
				return b[:len(b)/2], err
			}
		}},
		{"never", true, func(Blobs) Blobs {
			return func(ctx context.Context, c cid.Cid) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
		}},
		{"late", true, func(truth Blobs) Blobs {
			return func(ctx context.Context, c cid.Cid) ([]byte, error) {
				select {
				case <-time.After(5 * time.Second):
				case <-ctx.Done():
				}
				return truth(ctx, c)
			}
		}},
	} {
		for _, custodians := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/%d", s.name, custodians), func(t *testing.T) {
				skipUnless(t, s.long || custodians > 1)
				n := Start(t, Options{
					Config: func(c *devnet.Config) { c.Validators = 1 + custodians },
					Spec:   func(s *consume.Spec) { s.Conditions.Custodians = custodians },
				})
				id := n.Post(nil)
				n.Await("an attestation", func(e events.Event) bool { return e.Role == "validator-1" && e.Kind == events.Attested })
				n.Lie("validator-1", s.blobs(n.Member("validator-1").Env.Store.Block))
				wantUnharmed(t, n, id)
			})
		}
	}
}

// An honest provider is disputed falsely while strangers hold its peer: it defends
// itself on the chain, which they do not reach, and loses nothing.
func TestDefenderUnderSiege(t *testing.T) {
	skipUnless(t, true)
	n := Start(t, Options{
		Bend: map[string]Bend{"challenger-0": {Wrong: func(r Run) bool { return !r.Merge && r.Round == 0 && r.Shard == 0 && r.Step == 1 }}},
		Spec: func(s *consume.Spec) { s.Conditions.UnitWindow = consume.Duration(10 * time.Second) },
	})
	id := n.Post(nil)
	n.Besiege(strangers(), "provider-0", "provider-1")
	n.Await("a challenge", func(e events.Event) bool { return e.Role == "challenger-0" && e.Kind == events.Found && e.Unit == 0 })
	wantUnharmed(t, n, id)
}

func skipUnless(t *testing.T, long bool) {
	if long && os.Getenv("TALLY_SIEGE") == "" {
		t.Skip("make siege plays it")
	}
}

// wantUnharmed waits until an order is settled, and wants the root of an honest run,
// and that nobody honest has lost stake or work.
func wantUnharmed(t *testing.T, n *Network, id canon.Hash) {
	t.Helper()
	l := n.Lease(id, "settlement", func(l *job.Lease) bool { return l.Phase == job.Settled })
	if l.Reason != "" || l.Ledger.Slashed != 0 || len(l.Barred) != 0 {
		t.Errorf("ended early: %q; slashed %d, barred %v\n%s", l.Reason, l.Ledger.Slashed, l.Barred, describe(l))
	}
	if err := n.checkHonest(); err != nil {
		t.Error(err)
	}
	want, err := n.Draft.Honest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := l.FinalRoot(); got != want {
		t.Errorf("the final root is %v, want %v", got.Short(), want.Short())
	}
}
