package provider_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/provider"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// A fraud excludes its owner: every peer of it, those that it would add, and those that would leave it.
func TestExclusion(t *testing.T) {
	carol, owner := chaintest.Named("carol"), chaintest.Named("owner")
	c := chaintest.New(t,
		chaintest.Fund(2_000*tally, alice.Name, bob.Name, carol.Name, owner.Name),
		chaintest.Validator(lead.Name, 1_000*tally),
	)
	c.Deliver(alice, alice.Register(providerv1.ROLE_PROVIDER, 150*tally, listing))
	c.Deliver(bob, bob.Register(providerv1.ROLE_PROVIDER, 150*tally, listing))
	c.Deliver(carol, carol.Register(providerv1.ROLE_PROVIDER, 150*tally, listing))
	declare := func(peer, of chaintest.Account) error {
		return c.Do(func(ctx sdk.Context) error { return c.Provider.DeclareOwner(ctx, peer.Address, of.Address) })
	}
	for _, x := range []chaintest.Account{alice, bob} {
		if err := declare(x, owner); err != nil {
			t.Fatal(err)
		}
	}
	works := func(x chaintest.Account) bool {
		t.Helper()
		ctx := c.Ctx()
		active, err := c.Provider.Active(ctx, get(t, c, x))
		if err != nil {
			t.Fatal(err)
		}
		all, err := c.Provider.Providers(ctx, lead.Address, nil, 9)
		i := slices.IndexFunc(all, func(p providerv1.Candidate) bool { return p.Account == x.String() })
		if err != nil || i < 0 || c.Provider.Free(ctx, all[i]) != active {
			t.Fatalf("%s is active: %v, and is another as a candidate of %v, %v", x.Name, active, all, err)
		}
		return active
	}
	if err := c.Do(func(ctx sdk.Context) error { return c.Provider.Exclude(ctx, alice.Address, owner.Address) }); err != nil {
		t.Fatal(err)
	}
	c.NextBlock(400 * 24 * time.Hour) // longer than anybody is jailed
	if works(alice) || works(bob) || !works(carol) {
		t.Fatalf("alice, of an excluded owner, works: %v, bob, of the same: %v, carol, of none: %v", works(alice), works(bob), works(carol))
	}
	for name, err := range map[string]error{
		"it leaves its owner":      declare(bob, bob),
		"it goes to another owner": declare(bob, carol),
		"another comes":            declare(carol, owner),
	} {
		if !errors.Is(err, provider.ErrExcluded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.Refuse(provider.ErrExcluded, owner, owner.Register(providerv1.ROLE_CHALLENGER, 150*tally, providerv1.Listing{}))

	q := providerv1.NewQueryClient(c)
	one, err := q.Peer(t.Context(), &providerv1.QueryPeerRequest{Account: bob.String()})
	byKey, err2 := q.PeerByKey(t.Context(), &providerv1.QueryPeerByKeyRequest{PeerKey: bob.PeerKey()})
	all, err3 := q.Peers(t.Context(), &providerv1.QueryPeersRequest{Role: providerv1.ROLE_PROVIDER})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	shown := append(all.Peers, one.Peer, byKey.Peer)
	for _, p := range shown {
		if p.Account == bob.String() && p.JailedUntil != wire.Forever {
			t.Errorf("an excluded peer is shown as jailed until %d", p.JailedUntil)
		}
	}

	g, err := c.Provider.ExportGenesis(c.Ctx())
	if err != nil || !slices.Equal(g.Excluded, []string{owner.String()}) {
		t.Errorf("exported %v, %v", g.Excluded, err)
	}
	g.Excluded[0] = "nobody"
	if provider.ValidateGenesis(g) == nil {
		t.Error("a genesis excludes nobody's account")
	}
}

// A lead that fails may lead less, and gets it back by leading.
func TestLapse(t *testing.T) {
	c := newChain(t)
	c.Deliver(alice, alice.Register(providerv1.ROLE_VALIDATOR, 2_000*tally, providerv1.Listing{}))
	do := func(f func(ctx sdk.Context) error) uint32 {
		t.Helper()
		if err := c.Do(f); err != nil {
			t.Fatal(err)
		}
		x, err := c.Provider.Candidate(c.Ctx(), alice.Address)
		if p := get(t, c, alice); err != nil || p.Lapsed != x.Lapsed {
			t.Fatalf("the peer has lapsed by %d, the candidate by %d, %v", p.Lapsed, x.Lapsed, err)
		}
		return x.Lapsed
	}
	falter := func(ctx sdk.Context) error { return c.Provider.Falter(ctx, alice.Address) }
	led := func(paid uint64) func(sdk.Context) error {
		return func(ctx sdk.Context) error { return c.Provider.Mend(ctx, alice.Address, paid) }
	}
	for i, x := range []struct {
		what func(sdk.Context) error
		want uint32
	}{{led(7), 0}, {falter, 500_000_000}, {falter, 750_000_000}, {led(200 * tally), 650_000_000}, {led(math.MaxUint64), 0}} {
		if got := do(x.what); got != x.want {
			t.Errorf("step %d: a lapse of %d, want %d", i, got, x.want)
		}
	}
}
