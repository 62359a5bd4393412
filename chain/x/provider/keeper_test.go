package provider_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/x/provider"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

func sign(a chaintest.Account, statement []byte) []byte { return ed25519.Sign(a.Peer, statement) }

// newKeeper returns a keeper alone, with alice as a challenger without stake and
// with money, and the given peers.
func newKeeper(t testing.TB, peers ...providerv1.Peer) (*provider.Keeper, *chaintest.Bank, sdk.Context) {
	t.Helper()
	ctx, svc, cdc := chaintest.Store(t)
	bank := chaintest.NewBank()
	k := provider.NewKeeper(cdc, svc, bank)
	bank.Give(alice.Address, 1_000)
	g := provider.DefaultGenesis()
	g.Peers = append(peers, providerv1.Peer{Account: alice.String(), Roles: []providerv1.Role{providerv1.ROLE_CHALLENGER}, PeerKey: alice.PeerKey(), VrfKey: alice.VRFKey()})
	if err := provider.ValidateGenesis(g); err != nil {
		t.Fatal(err)
	}
	if err := k.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	return k, bank, ctx
}

// The ledger against a model: some numbers for one peer, and what it has withdrawn.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k, bank, ctx := newKeeper(t)
		free, reserved, purse, forfeit, insurance, paid := uint64(0), uint64(0), uint64(1_000), uint64(0), uint64(0), uint64(0)
		const day = 24 * time.Hour
		now, held := time.UnixMilli(0), map[int]uint64{} // by the hours after which it comes back
		ctx = ctx.WithBlockTime(now)
		amount := func(label string) uint64 { return rapid.Uint64Range(0, 400).Draw(rt, label) }
		// expect: a call succeeds exactly when the model allows it.
		expect := func(err error, allowed bool, effect func()) {
			if (err == nil) != allowed {
				rt.Fatalf("got %v; allowed: %v", err, allowed)
			}
			if allowed {
				effect()
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"deposit": func(*rapid.T) {
				n := amount("n")
				expect(k.Deposit(ctx, alice.Address, n), n <= purse, func() { purse -= n; free += n })
			},
			"withdraw": func(*rapid.T) {
				n := amount("n")
				expect(k.Withdraw(ctx, alice.Address, n), n <= free, func() { held[int(now.Add(day).Sub(time.UnixMilli(0)).Hours())] += n; free -= n })
			},
			"reserve": func(*rapid.T) {
				n := amount("n")
				expect(k.Reserve(ctx, alice.Address, n), n <= free, func() { free -= n; reserved += n })
			},
			"release": func(*rapid.T) {
				n := amount("n")
				expect(k.Release(ctx, alice.Address, n), n <= reserved, func() { free += n; reserved -= n })
			},
			"slash": func(*rapid.T) {
				r, f := min(amount("reserved"), reserved), min(amount("free"), free)
				pay := min(amount("pay"), r+f)
				err := k.Slash(ctx, alice.Address, r, f, []providerv1.Payout{{Account: bob.String(), Amount: pay}})
				expect(err, true, func() { reserved -= r; free -= f; paid += pay; forfeit += r + f - pay })
			},
			"slash too much": func(*rapid.T) {
				n := amount("n")
				expect(k.Slash(ctx, alice.Address, reserved+1+n, 0, nil), false, nil)
				expect(k.Slash(ctx, alice.Address, 0, free+1+n, nil), false, nil)
			},
			"end of a block": func(*rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(rt, "hours")) * time.Hour)
				ctx = ctx.WithBlockTime(now)
				expect(provider.NewModule(k).EndBlock(ctx), true, func() {
					insurance, forfeit = insurance+forfeit, 0
					for hour, n := range held { // order: a sum
						if float64(hour) <= now.Sub(time.UnixMilli(0)).Hours() {
							purse += n
							delete(held, hour)
						}
					}
				})
			},
			"insure": func(*rapid.T) {
				n := amount("n")
				insurance, forfeit = insurance+forfeit, 0
				expect(k.Insure(ctx, bob.Address, n), n <= insurance, func() { paid += n; insurance -= n })
			},
			"": func(*rapid.T) {
				p, err := k.Get(ctx, alice.Address)
				if err != nil || p.Stake != free+reserved || p.Reserved != reserved {
					rt.Fatalf("%v, %v; want %d free, %d reserved", p, err, free, reserved)
				}
				if bank.Balances[string(alice.Address)] != purse || bank.Balances[string(bob.Address)] != paid || bank.Module(provider.Insurance) != insurance || bank.Total() != 1_000 {
					rt.Fatalf("balances %v", bank.Balances)
				}
				if err := k.Invariant(ctx); err != nil {
					rt.Fatal(err)
				}
			},
		})
	})
}

func TestSlashRefuses(t *testing.T) {
	k, _, ctx := newKeeper(t)
	if err := k.Deposit(ctx, alice.Address, 100); err != nil {
		t.Fatal(err)
	}
	if err := k.Reserve(ctx, alice.Address, 60); err != nil {
		t.Fatal(err)
	}
	pay := func(amounts ...uint64) (out []providerv1.Payout) {
		for _, n := range amounts {
			out = append(out, providerv1.Payout{Account: bob.String(), Amount: n})
		}
		return out
	}
	for name, x := range map[string]struct {
		account        chaintest.Account
		reserved, free uint64
		payouts        []providerv1.Payout
		want           error
	}{
		"stranger":        {bob, 1, 0, nil, provider.ErrNotRegistered},
		"reserved":        {alice, 61, 0, nil, provider.ErrReserved},
		"free":            {alice, 0, 41, nil, provider.ErrFreeStake},
		"wraps around":    {alice, 60, 1<<64 - 60, nil, provider.ErrFreeStake},
		"payout":          {alice, 10, 5, pay(16), provider.ErrPayout},
		"payouts":         {alice, 10, 5, pay(10, 5, 1), provider.ErrPayout},
		"payouts overrun": {alice, 10, 5, pay(1, 1<<64-1), provider.ErrPayout},
		"payout to none":  {alice, 10, 5, []providerv1.Payout{{Amount: 1}}, nil},
	} {
		ctx, _ := ctx.CacheContext()
		err := k.Slash(ctx, x.account.Address, x.reserved, x.free, x.payouts)
		if err == nil || x.want != nil && !errors.Is(err, x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Reserved stake keeps a provider where its work is.
func TestOpenWorkKeepsTheValidator(t *testing.T) {
	validator := func(a chaintest.Account) providerv1.Peer {
		return providerv1.Peer{Account: a.String(), Roles: []providerv1.Role{providerv1.ROLE_VALIDATOR}, PeerKey: a.PeerKey(), VrfKey: a.VRFKey()}
	}
	p := chaintest.Named("p")
	k, bank, ctx := newKeeper(t, validator(lead), validator(other), providerv1.Peer{
		Account: p.String(), Roles: []providerv1.Role{providerv1.ROLE_PROVIDER}, PeerKey: p.PeerKey(), VrfKey: p.VRFKey(), Listing: providerv1.Listing{Validator: lead.String()},
	})
	bank.Give(p.Address, 100)
	if err := errors.Join(k.Deposit(ctx, p.Address, 100), k.Reserve(ctx, p.Address, 70)); err != nil {
		t.Fatal(err)
	}
	moved := providerv1.Listing{Validator: other.String()}
	if err := k.Update(ctx, p.Address, moved, []providerv1.Role{providerv1.ROLE_PROVIDER}); !errors.Is(err, provider.ErrOpenWork) {
		t.Fatal(err)
	}
	if err := k.Withdraw(ctx, p.Address, 31); !errors.Is(err, provider.ErrFreeStake) {
		t.Fatal(err)
	}
	if err := errors.Join(k.Release(ctx, p.Address, 70), k.Update(ctx, p.Address, moved, []providerv1.Role{providerv1.ROLE_PROVIDER}), k.Withdraw(ctx, p.Address, 100)); err != nil {
		t.Fatal(err)
	}
}

// Of many validators those with the most stake judge, whatever their accounts are and whatever of it is
// reserved.
func TestValidatorsByStake(t *testing.T) {
	var peers []providerv1.Peer
	for i := range 5 {
		a := chaintest.Named(fmt.Sprint("w", i))
		peers = append(peers, providerv1.Peer{Account: a.String(), Roles: []providerv1.Role{providerv1.ROLE_VALIDATOR}, PeerKey: a.PeerKey(), VrfKey: a.VRFKey()})
	}
	k, bank, ctx := newKeeper(t, peers...)
	judges := func(want ...int) {
		t.Helper()
		all, err := k.Validators(ctx, 3)
		if err != nil || len(all) != len(want) || k.Invariant(ctx) != nil {
			t.Fatalf("%v, %v, want %v: %v", all, err, want, k.Invariant(ctx))
		}
		for i, n := range want {
			if all[i].Account != peers[n].Account {
				t.Fatalf("place %d has %s with %d, want validator %d", i, all[i].Account, all[i].Stake, n)
			}
		}
	}
	at := func(i int) sdk.AccAddress { return chaintest.Named(fmt.Sprint("w", i)).Address }
	judges()
	for i, stake := range []uint64{1200, 1100, 1500, 999, 1300} {
		bank.Give(at(i), 9_000_000_000)
		if err := k.Deposit(ctx, at(i), stake*1_000_000); err != nil {
			t.Fatal(err)
		}
	}
	judges(2, 4, 0) // the fourth has less than the least stake
	if err := errors.Join(k.Deposit(ctx, at(1), 900_000_000), k.Reserve(ctx, at(2), 600_000_000), k.Withdraw(ctx, at(4), 300_000_001)); err != nil {
		t.Fatal(err)
	}
	judges(1, 2, 0)
}

func TestGroupsAreInAccountOrder(t *testing.T) {
	peers := []providerv1.Peer{{
		Account: lead.String(), Roles: []providerv1.Role{providerv1.ROLE_VALIDATOR}, PeerKey: lead.PeerKey(), VrfKey: lead.VRFKey(),
	}}
	for _, name := range []string{"p1", "p2", "p3", "p4", "p5"} {
		a := chaintest.Named(name)
		peers = append(peers, providerv1.Peer{
			Account: a.String(), Roles: []providerv1.Role{providerv1.ROLE_PROVIDER}, PeerKey: a.PeerKey(), VrfKey: a.VRFKey(), Listing: providerv1.Listing{Validator: lead.String()},
		})
	}
	k, bank, ctx := newKeeper(t, peers...)
	if none, err := k.Providers(ctx, lead.Address, nil, 9); err != nil || len(none) != 0 {
		t.Fatalf("providers without stake are among those of a block: %v, %v", none, err)
	}
	for _, p := range peers {
		at, _ := sdk.AccAddressFromBech32(p.Account)
		bank.Give(at, 1_000_000_000)
		if err := k.Deposit(ctx, at, 1_000_000_000); err != nil {
			t.Fatal(err)
		}
	}
	all, err := k.Providers(ctx, lead.Address, nil, 9)
	if err != nil || len(all) != 5 {
		t.Fatalf("%v, %v", all, err)
	}
	third, _ := sdk.AccAddressFromBech32(all[3].Account)
	if part, err := k.Providers(ctx, lead.Address, third, 3); err != nil || len(part) != 3 || part[0].Account != all[0].Account || part[2].Account != all[4].Account {
		t.Fatalf("three from the fourth on: %v, %v", part, err)
	}
	if err := errors.Join(k.Withdraw(ctx, third, 950_000_000), k.Invariant(ctx)); err != nil {
		t.Fatal(err)
	}
	if left, err := k.Providers(ctx, lead.Address, nil, 9); err != nil || len(left) != 4 {
		t.Fatalf("who has withdrawn its stake is still there: %v, %v", left, err)
	}
	if leads, err := k.Validators(ctx, 9); err != nil || len(leads) != 1 {
		t.Fatalf("%v, %v", leads, err)
	}
	role, err := k.WithRole(ctx, providerv1.ROLE_PROVIDER)
	if err != nil || len(role) != 5 {
		t.Fatalf("%v, %v", role, err)
	}
	accounts := map[string][]string{}
	for _, p := range role {
		accounts["of a role"] = append(accounts["of a role"], p.Account)
	}
	for _, c := range all {
		accounts["with their stake"] = append(accounts["with their stake"], c.Account)
	}
	for name, got := range accounts {
		for i := 1; i < len(got); i++ {
			a, _ := sdk.AccAddressFromBech32(got[i-1])
			b, _ := sdk.AccAddressFromBech32(got[i])
			if string(a) >= string(b) {
				t.Errorf("providers %s: %s before %s", name, a, b)
			}
		}
	}
	if none, err := k.Providers(ctx, alice.Address, nil, 9); err != nil || len(none) != 0 {
		t.Fatalf("%v, %v", none, err)
	}
}

func TestGenesisRoundTrip(t *testing.T) {
	k, bank, ctx := newKeeper(t)
	if err := errors.Join(
		k.Deposit(ctx, alice.Address, 500), k.Reserve(ctx, alice.Address, 200), k.Jail(ctx, alice.Address, 9),
	); err != nil {
		t.Fatal(err)
	}
	g, err := k.ExportGenesis(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ctx2, svc, cdc := chaintest.Store(t)
	again := provider.NewKeeper(cdc, svc, bank)
	if err := errors.Join(provider.ValidateGenesis(g), again.InitGenesis(ctx2, g)); err != nil {
		t.Fatal(err)
	}
	if back, err := again.ExportGenesis(ctx2); err != nil || back.String() != g.String() {
		t.Fatalf("%v, %v; want %v", back, err, g)
	}
	bank.Give(alice.Address, 1)
	_ = bank.SendCoinsFromAccountToModule(ctx, alice.Address, provider.Name, sdk.NewCoins(sdk.NewInt64Coin("utally", 1)))
	ctx3, svc, cdc := chaintest.Store(t)
	if err := provider.NewKeeper(cdc, svc, bank).InitGenesis(ctx3, g); err == nil {
		t.Fatal("imported a ledger that the bank contradicts")
	}
}

// A record grows with valid units and is gone with one failure; who owes an answer
// gets no work.
func TestRecordAndSuspension(t *testing.T) {
	p := providerv1.Peer{Account: chaintest.Named("bob").String(), Roles: []providerv1.Role{providerv1.ROLE_CHALLENGER}, PeerKey: chaintest.Named("bob").PeerKey(), VrfKey: chaintest.Named("bob").VRFKey(), Record: 3}
	k, _, ctx := newKeeper(t, p)
	bob := chaintest.Named("bob").Address
	peer := func() providerv1.Peer {
		t.Helper()
		p, err := k.Get(ctx, bob)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(k.Vouch(ctx, bob, 2))
	if got := peer().Record; got != 5 {
		t.Fatalf("a record of %d", got)
	}
	do(k.Discredit(ctx, bob))
	do(k.Suspend(ctx, bob))
	do(k.Suspend(ctx, bob))
	do(k.Resume(ctx, bob))
	if p := peer(); p.Record != 0 || p.Unanswered != 1 {
		t.Fatalf("%+v", p)
	}
	rich := peer()
	rich.Stake = 1 << 40
	if active, err := k.Active(ctx, rich); err != nil || active {
		t.Fatalf("who owes an answer is active: %v", err)
	}
	rich.Unanswered = 0
	if active, err := k.Active(ctx, rich); err != nil || !active {
		t.Fatalf("who owes nothing is not active: %v", err)
	}
}

// A peer is able since its free stake last rose, or it last answered: what it could not take before, no
// lead has withheld from it.
func TestAbleSince(t *testing.T) {
	k, _, ctx := newKeeper(t)
	for i, step := range []struct {
		do   func(context.Context) error
		rose bool
	}{
		{func(ctx context.Context) error { return k.Deposit(ctx, alice.Address, 100) }, true},
		{func(ctx context.Context) error { return k.Reserve(ctx, alice.Address, 60) }, false},
		{func(ctx context.Context) error { return k.Release(ctx, alice.Address, 20) }, true},
		{func(ctx context.Context) error { return k.Withdraw(ctx, alice.Address, 60) }, false},
		{func(ctx context.Context) error { return k.Deposit(ctx, alice.Address, 60) }, true},
		{func(ctx context.Context) error { return k.Slash(ctx, alice.Address, 40, 0, nil) }, false},
		{func(ctx context.Context) error { return k.Suspend(ctx, alice.Address) }, false},
		{func(ctx context.Context) error { return k.Resume(ctx, alice.Address) }, true},
	} {
		now := time.UnixMilli(int64(1000 * (i + 1)))
		if err := step.do(ctx.WithBlockTime(now)); err != nil {
			t.Fatal(err)
		}
		p, err := k.Get(ctx, alice.Address)
		if err != nil {
			t.Fatal(err)
		}
		if since := p.AbleSince == now.UnixMilli(); since != step.rose {
			t.Errorf("step %d at %d: able since %d", i, now.UnixMilli(), p.AbleSince)
		}
	}
}

// Stake that was withdrawn weighs nothing at once, and comes back after its time, across an export.
func TestUnbonding(t *testing.T) {
	k, bank, ctx := newKeeper(t)
	at := func(hours int) sdk.Context {
		return ctx.WithBlockTime(time.UnixMilli(0).Add(time.Duration(hours) * time.Hour))
	}
	if err := errors.Join(k.Deposit(at(0), alice.Address, 100), k.Withdraw(at(0), alice.Address, 30), k.Withdraw(at(0), alice.Address, 10), k.Withdraw(at(2), alice.Address, 5)); err != nil {
		t.Fatal(err)
	}
	g, err := k.ExportGenesis(at(2))
	if err != nil || len(g.Unbonding) != 2 || g.Unbonding[0].Amount != 40 || provider.ValidateGenesis(g) != nil {
		t.Fatalf("%v, %v", g.Unbonding, err)
	}
	g.Peers, g.Unbonding = nil, g.Unbonding[:1]
	again, other, fresh := newKeeper(t)
	other.Give(authtypes.NewModuleAddress(provider.Name), 40)
	if err := again.InitGenesis(fresh, g); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		hours int
		want  uint64
	}{{23, 900}, {24, 940}, {25, 940}, {26, 945}, {50, 945}} {
		if err := errors.Join(provider.NewModule(k).EndBlock(at(c.hours)), k.Invariant(ctx)); err != nil {
			t.Fatal(err)
		}
		if have := bank.Balances[string(alice.Address)]; have != c.want {
			t.Errorf("after %d hours it has %d utally, want %d", c.hours, have, c.want)
		}
	}
	if err := provider.NewModule(again).EndBlock(fresh.WithBlockTime(time.UnixMilli(0).Add(24 * time.Hour))); err != nil || other.Balances[string(alice.Address)] != 1040 {
		t.Errorf("after an export it has %d utally, %v", other.Balances[string(alice.Address)], err)
	}
	for name, bad := range map[string]providerv1.Unbonding{
		"twice":   g.Unbonding[0],
		"nothing": {Account: alice.String(), Until: 1},
		"nobody":  {Account: "tally1", Until: 1, Amount: 1},
	} {
		h := *g
		h.Unbonding = append(slices.Clone(g.Unbonding), bad)
		if provider.ValidateGenesis(&h) == nil {
			t.Errorf("%s: such a genesis was taken", name)
		}
	}
}

// However many take their stake out at once, a block pays a bounded number back.
func TestUnbondingIsBounded(t *testing.T) {
	k, bank, ctx := newKeeper(t)
	if err := k.Deposit(ctx, alice.Address, 1000); err != nil {
		t.Fatal(err)
	}
	for i := range 250 {
		if err := k.Withdraw(ctx.WithBlockTime(time.UnixMilli(int64(i))), alice.Address, 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []uint64{100, 200, 250, 250} {
		if err := provider.NewModule(k).EndBlock(ctx.WithBlockTime(time.UnixMilli(0).Add(48 * time.Hour))); err != nil {
			t.Fatal(err)
		}
		if have := bank.Balances[string(alice.Address)]; have != want {
			t.Errorf("%d utally are back, want %d", have, want)
		}
	}
}
