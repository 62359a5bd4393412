package power_test

import (
	"context"
	"math"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/x/power"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

var alice, bob = chaintest.Named("alice"), chaintest.Named("bob")

func set() *powerv1.GenesisState {
	return &powerv1.GenesisState{
		Validators: []powerv1.Validator{
			{Account: alice.String(), ConsensusKey: alice.PeerKey(), Power: 3},
			{Account: bob.String(), ConsensusKey: bob.PeerKey(), Power: 4},
		},
		Earned: []powerv1.Earned{{Account: bob.String(), MicroUt: 12}},
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

func TestCredit(t *testing.T) {
	k, ctx := newKeeper(t)
	for _, step := range []struct{ flops, total uint64 }{
		{0, 0},
		{power.FlopsPerMicroUT - 1, 0},
		{power.FlopsPerMicroUT, 1},
		{432_000_000_000, 1_000_001}, // one ut
		{2*power.FlopsPerMicroUT + 1, 1_000_003},
	} {
		if err := k.Credit(ctx, alice.Address, step.flops); err != nil {
			t.Fatal(err)
		}
		if got, err := k.Earned(ctx, alice.Address); err != nil || got != step.total {
			t.Fatalf("%d millionths of a ut after %d FLOP, want %d (%v)", got, step.flops, step.total, err)
		}
	}
	if got, _ := k.Earned(ctx, bob.Address); got != 12 {
		t.Fatalf("another account has %d", got)
	}
	full := set()
	full.Earned[0].MicroUt = math.MaxUint64
	if err := k.InitGenesis(ctx, full); err != nil {
		t.Fatal(err)
	}
	if err := k.Credit(ctx, bob.Address, power.FlopsPerMicroUT); err == nil {
		t.Fatal("the record overflowed")
	}
}

func TestGenesis(t *testing.T) {
	k, ctx := newKeeper(t)
	g, err := k.ExportGenesis(ctx)
	if err != nil || len(g.Validators) != 2 {
		t.Fatal(g, err)
	}
	updates, err := k.ValidatorUpdates(ctx)
	if err != nil || len(updates) != 2 || updates[0].Power+updates[1].Power != 7 {
		t.Fatalf("%v, %v", updates, err)
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
		"empty":          func(g *powerv1.GenesisState) { g.Validators = nil },
		"address":        func(g *powerv1.GenesisState) { g.Validators[0].Account = "x" },
		"key":            func(g *powerv1.GenesisState) { g.Validators[0].ConsensusKey = []byte{1} },
		"no power":       func(g *powerv1.GenesisState) { g.Validators[0].Power = 0 },
		"negative power": func(g *powerv1.GenesisState) { g.Validators[0].Power = -1 },
		"total":          func(g *powerv1.GenesisState) { g.Validators[0].Power = math.MaxInt64 / 8 },
		"same account":   func(g *powerv1.GenesisState) { g.Validators[0].Account = g.Validators[1].Account },
		"same key":       func(g *powerv1.GenesisState) { g.Validators[0].ConsensusKey = g.Validators[1].ConsensusKey },
		"earned nothing": func(g *powerv1.GenesisState) { g.Earned[0].MicroUt = 0 },
		"earned twice":   func(g *powerv1.GenesisState) { g.Earned = append(g.Earned, g.Earned[0]) },
		"earned by x":    func(g *powerv1.GenesisState) { g.Earned[0].Account = "x" },
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
			if err := c.Power.Credit(ctx, chaintest.Named(name).Address, uint64(i+1)*power.FlopsPerMicroUT); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	q, ctx := powerv1.NewQueryClient(c), context.Background()
	v, err := q.Validators(ctx, &powerv1.QueryValidatorsRequest{})
	if err != nil || len(v.Validators) != 1 || v.Validators[0].Account != chaintest.Named("producer").String() {
		t.Fatalf("%v, %v", v, err)
	}
	e, err := q.Earned(ctx, &powerv1.QueryEarnedRequest{Account: chaintest.Named("p3").String()})
	if err != nil || e.Earned.MicroUt != 3 {
		t.Fatalf("%v, %v", e, err)
	}
	if e, err := q.Earned(ctx, &powerv1.QueryEarnedRequest{Account: alice.String()}); err != nil || e.Earned.MicroUt != 0 {
		t.Fatalf("%v, %v", e, err)
	}
	if _, err := q.Earned(ctx, &powerv1.QueryEarnedRequest{Account: "x"}); err == nil {
		t.Fatal("a bad address was taken")
	}
	first, err := q.AllEarned(ctx, &powerv1.QueryAllEarnedRequest{Pagination: &query.PageRequest{Limit: 2}})
	if err != nil || len(first.Earned) != 2 {
		t.Fatalf("%v, %v", first, err)
	}
	rest, err := q.AllEarned(ctx, &powerv1.QueryAllEarnedRequest{Pagination: &query.PageRequest{Key: first.Pagination.NextKey}})
	if err != nil || len(rest.Earned) != 1 {
		t.Fatalf("%v, %v", rest, err)
	}
}
