package provider_test

import (
	"context"
	"errors"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/provider"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// till is a bank that pays out to all but one.
type till struct {
	refuses sdk.AccAddress
	paid    map[string]uint64
}

func (b *till) SpendableCoin(context.Context, sdk.AccAddress, string) sdk.Coin {
	return sdk.NewInt64Coin(coin.Denom, 1<<40)
}

func (b *till) GetBalance(context.Context, sdk.AccAddress, string) sdk.Coin {
	return sdk.NewInt64Coin(coin.Denom, 0)
}

func (b *till) SendCoinsFromAccountToModule(context.Context, sdk.AccAddress, string, sdk.Coins) error {
	return nil
}

func (b *till) SendCoinsFromModuleToModule(context.Context, string, string, sdk.Coins) error {
	return nil
}

func (b *till) SendCoinsFromModuleToAccount(_ context.Context, _ string, to sdk.AccAddress, amount sdk.Coins) error {
	if to.Equals(b.refuses) {
		return errors.New("it takes no money")
	}
	b.paid[to.String()] += amount.AmountOf(coin.Denom).Uint64()
	return nil
}

// A withdrawal that cannot be paid back stops no block and no other withdrawal, and is tried again.
func TestWithdrawalThatCannotBePaid(t *testing.T) {
	ctx, svc, cdc := chaintest.Store(t)
	ctx = ctx.WithBlockTime(time.UnixMilli(1_764_000_000_000))
	bank := &till{refuses: alice.Address, paid: map[string]uint64{}}
	k := provider.NewKeeper(cdc, svc, bank)
	g := provider.DefaultGenesis()
	if err := k.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	for _, who := range []chaintest.Account{alice, bob} {
		peer := providerv1.Peer{Account: who.String(), PeerKey: who.PeerKey(), Roles: []providerv1.Role{providerv1.ROLE_CHALLENGER}}
		if err := errors.Join(k.Register(ctx, peer), k.Deposit(ctx, who.Address, 100), k.Withdraw(ctx, who.Address, 40)); err != nil {
			t.Fatal(err)
		}
	}
	end := func(after time.Duration) {
		t.Helper()
		ctx = ctx.WithBlockTime(ctx.BlockTime().Add(after)).WithEventManager(sdk.NewEventManager())
		if err := provider.NewModule(k).EndBlock(ctx); err != nil {
			t.Fatal(err)
		}
	}
	end(time.Duration(g.Params.UnbondingMs+1) * time.Millisecond)
	left, err := k.Unbonding.Of(ctx, alice.Address)
	if err != nil || left != 40 || bank.paid[bob.String()] != 40 || bank.paid[alice.String()] != 0 {
		t.Fatalf("%v were paid; %d wait, %v", bank.paid, left, err)
	}
	bank.refuses = nil
	if end(time.Minute); bank.paid[alice.String()] != 0 {
		t.Error("it was tried again at once")
	}
	if end(time.Hour); bank.paid[alice.String()] != 40 {
		t.Errorf("%v were paid", bank.paid)
	}
}
