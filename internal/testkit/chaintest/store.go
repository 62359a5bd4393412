package chaintest

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"cosmossdk.io/core/store"

	"github.com/cosmos/cosmos-sdk/codec"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/runtime"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	"github.com/cosmos/cosmos-sdk/testutil"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
)

// Store returns what a keeper needs to be tested alone: a context, an empty
// store and a codec.
func Store(t testing.TB) (sdk.Context, store.KVStoreService, codec.Codec) {
	t.Helper()
	key := storetypes.NewKVStoreKey("test")
	ctx := testutil.DefaultContextWithKeys(map[string]*storetypes.KVStoreKey{"test": key, "block": module.BlockStore}, nil, nil)
	ctx = ctx.WithChainID(ChainID).WithBlockTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return ctx, runtime.NewKVStoreService(key), codec.NewProtoCodec(codectypes.NewInterfaceRegistry())
}

// Bank is a bank of utally in memory, for keepers tested alone. It knows no
// contexts: what a failed call moved stays moved.
type Bank struct {
	Balances map[string]uint64 // by account bytes
	Burnt    uint64
}

// NewBank returns an empty bank.
func NewBank() *Bank { return &Bank{Balances: map[string]uint64{}} }

// Give creates utally.
func (b *Bank) Give(to sdk.AccAddress, amount uint64) { b.Balances[string(to)] += amount }

// Clone returns an independent copy.
func (b *Bank) Clone() *Bank { return &Bank{maps.Clone(b.Balances), b.Burnt} }

// Total returns the sum of all balances.
func (b *Bank) Total() (sum uint64) {
	for _, v := range b.Balances {
		sum += v
	}
	return sum
}

// Module returns the balance of a module's account.
func (b *Bank) Module(name string) uint64 { return b.Balances[string(account(name))] }

func account(name string) sdk.AccAddress { return authtypes.NewModuleAddress(name) }

func (b *Bank) move(from, to sdk.AccAddress, coins sdk.Coins) error {
	n := coins.AmountOf(coin.Denom)
	if !n.IsUint64() || n.Uint64() > b.Balances[string(from)] {
		return fmt.Errorf("%s has %d utally, needs %s", from, b.Balances[string(from)], coins)
	}
	b.Balances[string(from)] -= n.Uint64()
	b.Balances[string(to)] += n.Uint64()
	return nil
}

// GetBalance returns the balance of an account.
func (b *Bank) GetBalance(_ context.Context, a sdk.AccAddress, denom string) sdk.Coin {
	return sdk.NewCoin(denom, coin.Of(b.Balances[string(a)]).AmountOf(denom))
}

// SpendableCoin returns the balance of an account: nothing of it is locked.
func (b *Bank) SpendableCoin(ctx context.Context, a sdk.AccAddress, denom string) sdk.Coin {
	return b.GetBalance(ctx, a, denom)
}

// SendCoinsFromAccountToModule moves coins.
func (b *Bank) SendCoinsFromAccountToModule(_ context.Context, from sdk.AccAddress, to string, coins sdk.Coins) error {
	return b.move(from, account(to), coins)
}

// SendCoinsFromModuleToAccount moves coins.
func (b *Bank) SendCoinsFromModuleToAccount(_ context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error {
	return b.move(account(from), to, coins)
}

// SendCoinsFromModuleToModule moves coins.
func (b *Bank) SendCoinsFromModuleToModule(_ context.Context, from, to string, coins sdk.Coins) error {
	return b.move(account(from), account(to), coins)
}

// BurnCoins destroys coins of a module.
func (b *Bank) BurnCoins(_ context.Context, name string, coins sdk.Coins) error {
	if err := b.move(account(name), nil, coins); err != nil {
		return err
	}
	b.Burnt += b.Balances[""]
	delete(b.Balances, "")
	return nil
}
