package supply_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	sdkmath "cosmossdk.io/math"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/supply"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// bank is the harness's, with a supply of its own that a test may falsify.
type bank struct {
	*chaintest.Bank
	hidden uint64 // utally that exist without a balance
}

func (b *bank) GetSupply(context.Context, string) sdk.Coin {
	return sdk.NewCoin(coin.Denom, sdkmath.NewIntFromUint64(b.Total()+b.hidden))
}

func (b *bank) IterateAllBalances(_ context.Context, stop func(sdk.AccAddress, sdk.Coin) bool) {
	for a := range b.Balances {
		if stop(sdk.AccAddress(a), b.GetBalance(context.Background(), sdk.AccAddress(a), coin.Denom)) {
			return
		}
	}
}

func newKeeper(t testing.TB, g *supplyv1.GenesisState) (*supply.Keeper, *bank, sdk.Context) {
	t.Helper()
	ctx, svc, _ := chaintest.Store(t)
	b := &bank{Bank: chaintest.NewBank()}
	b.Give(chaintest.Named("alice").Address, 900)
	if err := b.SendCoinsFromAccountToModule(ctx, chaintest.Named("alice").Address, "market", coin.Of(400)); err != nil {
		t.Fatal(err)
	}
	k := supply.NewKeeper(svc, b)
	if err := errors.Join(supply.ValidateGenesis(g), k.InitGenesis(ctx, g)); err != nil {
		t.Fatal(err)
	}
	return k, b, ctx
}

func TestBurn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		before := rapid.Uint64Range(0, 50).Draw(rt, "burnt before genesis")
		k, b, ctx := newKeeper(t, &supplyv1.GenesisState{Burnt: before})
		for _, n := range rapid.SliceOfN(rapid.Uint64Range(0, 300), 1, 5).Draw(rt, "amounts") {
			have := b.Module("market")
			if err := k.Burn(ctx, "market", n); (err == nil) != (n <= have) {
				rt.Fatalf("burn %d of %d: %v", n, have, err)
			}
			burnt, err := k.Burnt(ctx)
			if err != nil || burnt != before+b.Bank.Burnt || b.Total()+b.Bank.Burnt != 900 {
				rt.Fatalf("%d burnt, %d left, %v", burnt, b.Total(), err)
			}
			if err := k.Invariant(ctx); err != nil {
				rt.Fatal(err)
			}
		}
		g, err := k.ExportGenesis(ctx)
		if err != nil || g.Burnt != before+b.Bank.Burnt {
			rt.Fatal(g, err)
		}
	})
}

func TestInvariantSeesFaults(t *testing.T) {
	for name, fault := range map[string]func(*bank){
		"money from nothing":       func(b *bank) { b.Give(chaintest.Named("bob").Address, 1) },
		"money lost":               func(b *bank) { b.Balances[string(chaintest.Named("alice").Address)]-- },
		"supply without a balance": func(b *bank) { b.Balances[string(chaintest.Named("alice").Address)]--; b.hidden++ },
	} {
		k, b, ctx := newKeeper(t, supply.DefaultGenesis())
		if err := k.Invariant(ctx); err != nil {
			t.Fatal(err)
		}
		fault(b)
		if err := k.Invariant(ctx); err == nil {
			t.Errorf("%s: not seen", name)
		}
	}
}

func TestGenesisRefuses(t *testing.T) {
	if err := supply.ValidateGenesis(&supplyv1.GenesisState{Burnt: coin.MaxSupply + 1}); err == nil {
		t.Fatal("more was burnt than may exist")
	}
	ctx, svc, _ := chaintest.Store(t)
	b := &bank{Bank: chaintest.NewBank(), hidden: coin.MaxSupply}
	if err := supply.NewKeeper(svc, b).InitGenesis(ctx, &supplyv1.GenesisState{Burnt: 1}); err == nil {
		t.Fatal("more was minted than may exist")
	}
}

func TestCheckQuery(t *testing.T) {
	c := chaintest.New(t, chaintest.Fund(5, "alice"))
	q := supplyv1.NewQueryClient(c)
	if r, err := q.Check(context.Background(), &supplyv1.QueryCheckRequest{}); err != nil || !r.Ok {
		t.Fatalf("%v, %v", r, err)
	}
	if r, err := q.Supply(context.Background(), &supplyv1.QuerySupplyRequest{}); err != nil || r.Minted != r.Supply || r.Supply < 5 || r.Burnt != 0 {
		t.Fatalf("%v, %v", r, err)
	}
}
