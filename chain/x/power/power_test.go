package power_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/x/power"
	core "github.com/tally-network/tally/core/power"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

var alice, bob = chaintest.Named("alice"), chaintest.Named("bob")

func set() *powerv1.GenesisState {
	return &powerv1.GenesisState{
		Records: []powerv1.Record{{Account: bob.String(), Drilling: powerv1.Work{Total: 12, Grown: []byte{12, 0, 0, 0, 0}}}},
	}
}

func newKeeper(t *testing.T) (*power.Keeper, sdk.Context) {
	t.Helper()
	ctx, svc, cdc := chaintest.Store(t)
	k := power.NewKeeper(cdc, svc)
	if err := k.InitGenesis(ctx, set()); err != nil {
		t.Fatal(err)
	}
	return k, ctx
}

// account returns what an account's power is worth in a context.
func account(t *testing.T, k *power.Keeper, ctx sdk.Context, who chaintest.Account) powerv1.Power {
	t.Helper()
	r, err := power.NewQueryServer(k).Account(ctx, &powerv1.QueryAccountRequest{Account: who.String()})
	if err != nil {
		t.Fatal(err)
	}
	return r.Power
}

func total(t *testing.T, k *power.Keeper, ctx sdk.Context) powerv1.QueryTotalResponse {
	t.Helper()
	r, err := power.NewQueryServer(k).Total(ctx, &powerv1.QueryTotalRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return *r
}

func TestCredit(t *testing.T) {
	k, ctx := newKeeper(t)
	for _, step := range []struct{ flops, total uint64 }{
		{0, 0},
		{core.MicroUT - 1, 0},
		{core.MicroUT, 1},
		{core.UT, 1_000_001},
		{2*core.MicroUT + 1, 1_000_003},
	} {
		if err := k.Credit(ctx, alice.Address, step.flops); err != nil {
			t.Fatal(err)
		}
		if got := account(t, k, ctx, alice); got.TrainingTotal != step.total || got.Training != step.total || got.Effective != step.total/10*6+step.total%10*6/10 {
			t.Fatalf("%v after %d FLOP, want %d", got, step.flops, step.total)
		}
	}
	if got := account(t, k, ctx, bob); got.DrillingTotal != 12 || got.Effective != 4 {
		t.Fatalf("another account has %v", got)
	}
	if err := k.Invariant(ctx); err != nil {
		t.Fatal(err)
	}
}

// Half of it counts a week later, whether or not anybody has looked meanwhile.
func TestPowerHalves(t *testing.T) {
	k, ctx := newKeeper(t)
	lazy, eager := chaintest.Named("lazy"), chaintest.Named("eager")
	for _, who := range []chaintest.Account{lazy, eager} {
		if err := k.Credit(ctx, who.Address, core.UT); err != nil {
			t.Fatal(err)
		}
	}
	for range 168 {
		ctx = ctx.WithBlockTime(ctx.BlockTime().Add(time.Hour))
		if err := errors.Join(k.Credit(ctx, eager.Address, 0), k.Invariant(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	for _, who := range []chaintest.Account{lazy, eager} {
		if got := account(t, k, ctx, who); got.Effective != 300_000 || got.TrainingTotal != 1_000_000 {
			t.Errorf("%v", got)
		}
	}
	if got := total(t, k, ctx); got.Power.Effective != 600_000+2 || got.Third != 500_002 { // bob's drilling beside it
		t.Errorf("%v", got)
	}
}

func TestForfeit(t *testing.T) {
	k, ctx := newKeeper(t)
	if err := k.Credit(ctx, alice.Address, core.UT); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(k.Forfeit(ctx, alice.Address), k.Forfeit(ctx, chaintest.Named("nobody").Address), k.Invariant(ctx)); err != nil {
		t.Fatal(err)
	}
	if got := account(t, k, ctx, alice); got.Effective != 0 || got.Training != 0 || got.TrainingTotal != 1_000_000 {
		t.Errorf("a convict has %v", got)
	}
	if got := total(t, k, ctx); got.Power.Effective != 4 || got.Power.TrainingTotal != 1_000_000 {
		t.Errorf("all have %v", got)
	}
	if err := k.Credit(ctx, alice.Address, core.UT); err != nil {
		t.Fatal(err)
	}
	if got := account(t, k, ctx, alice); got.Effective != 600_000 {
		t.Errorf("later work counts for %d", got.Effective)
	}
}

// What does not fit, and time before the chain began, is refused; nothing is stored.
func TestCreditIsRefused(t *testing.T) {
	k, ctx := newKeeper(t)
	g := set()
	g.Records[0].Training.Total = math.MaxUint64
	if err := k.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"a full record": k.Credit(ctx, bob.Address, core.MicroUT),
		"all full":      k.Credit(ctx, alice.Address, core.MicroUT),
		"too early":     k.Credit(ctx.WithBlockTime(ctx.BlockTime().Add(-time.Hour)), alice.Address, core.MicroUT),
	} {
		if err == nil {
			t.Errorf("%s: it was credited", name)
		}
	}
	if got := account(t, k, ctx, alice); got.TrainingTotal != 0 {
		t.Errorf("%v", got)
	}
}

func TestGenesis(t *testing.T) {
	k, ctx := newKeeper(t)
	g, err := k.ExportGenesis(ctx)
	if err != nil || len(g.Records) != 1 {
		t.Fatal(g, err)
	}
	ctx2, svc, cdc := chaintest.Store(t)
	again := power.NewKeeper(cdc, svc)
	if err := again.InitGenesis(ctx2, g); err != nil {
		t.Fatal(err)
	}
	if back, err := again.ExportGenesis(ctx2); err != nil || back.String() != g.String() {
		t.Fatalf("%v, %v", back, err)
	}
}

func TestValidateGenesis(t *testing.T) {
	if err := power.ValidateGenesis(set()); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*powerv1.GenesisState){
		"two records": func(g *powerv1.GenesisState) { g.Records = append(g.Records, g.Records[0]) },
		"record of x": func(g *powerv1.GenesisState) { g.Records[0].Account = "x" },
	} {
		g := set()
		bend(g)
		if err := power.ValidateGenesis(g); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

func TestQueries(t *testing.T) {
	c := chaintest.New(t, chaintest.Fund(1, "p1", "p2", "p3"))
	if err := c.Do(func(ctx sdk.Context) error {
		for i, name := range []string{"p1", "p2", "p3"} {
			if err := c.Power.Credit(ctx, chaintest.Named(name).Address, uint64(i+1)*core.MicroUT); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	q, ctx := powerv1.NewQueryClient(c), context.Background()
	e, err := q.Account(ctx, &powerv1.QueryAccountRequest{Account: chaintest.Named("p3").String()})
	if err != nil || e.Power.TrainingTotal != 3 || e.Power.Effective != 1 {
		t.Fatalf("%v, %v", e, err)
	}
	if e, err := q.Account(ctx, &powerv1.QueryAccountRequest{Account: alice.String()}); err != nil || e.Power.TrainingTotal != 0 {
		t.Fatalf("%v, %v", e, err)
	}
	if _, err := q.Account(ctx, &powerv1.QueryAccountRequest{Account: "x"}); err == nil {
		t.Fatal("a bad address was taken")
	}
	first, err := q.Accounts(ctx, &powerv1.QueryAccountsRequest{Pagination: &query.PageRequest{Limit: 2}})
	if err != nil || len(first.Powers) != 2 {
		t.Fatalf("%v, %v", first, err)
	}
	rest, err := q.Accounts(ctx, &powerv1.QueryAccountsRequest{Pagination: &query.PageRequest{Key: first.Pagination.NextKey}})
	if err != nil || len(rest.Powers) != 1 {
		t.Fatalf("%v, %v", rest, err)
	}
	sum, err := q.Total(ctx, &powerv1.QueryTotalRequest{})
	if err != nil || sum.Power.TrainingTotal != 6 || sum.Power.Effective != 3 || sum.Third != 4 {
		t.Fatalf("%v, %v", sum, err)
	}
}

// A genesis in which more counts than was ever computed is refused.
func TestGenesisOfTooMuchPower(t *testing.T) {
	k, ctx := newKeeper(t)
	for _, grown := range [][]byte{{13, 0, 0, 0, 0}, {0, 1}, make([]byte, 4096)} {
		g := set()
		g.Records[0].Drilling.Grown = grown
		if err := k.InitGenesis(ctx, g); err == nil {
			t.Errorf("%x was taken", grown)
		}
	}
}
