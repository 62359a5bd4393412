package chaintest

import (
	"context"

	dbm "github.com/cosmos/cosmos-db"

	"cosmossdk.io/log/v2"

	"github.com/cosmos/cosmos-sdk/baseapp"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
)

// Dearer is a version of the software that is rehearsed: gas costs thrice as much, and a store comes with it.
type Dearer struct{ Key *storetypes.KVStoreKey }

// NewDearer returns the version, with a key of its own to its store.
func NewDearer() Dearer { return Dearer{storetypes.NewKVStoreKey("later")} }

// Name is that of the upgrade which the version is for.
func (d Dearer) Name() string { return "dearer" }

// Upgrades are those that the version knows.
func (d Dearer) Upgrades() []app.Upgrade {
	return []app.Upgrade{{
		Name: d.Name(), Stores: storetypes.StoreUpgrades{Added: []string{d.Key.Name()}},
		Migrate: func(ctx context.Context, a *app.App) error {
			sdk.UnwrapSDKContext(ctx).KVStore(d.Key).Set([]byte("begun"), []byte{1})
			p, err := a.Block.Params(ctx)
			if err != nil {
				return err
			}
			p.GasPrice *= 3
			_, err = a.MsgServiceRouter().Handler(&blockv1.MsgUpdateParams{})(sdk.UnwrapSDKContext(ctx), &blockv1.MsgUpdateParams{Authority: address.Policy().String(), Params: p})
			return err
		},
	}}
}

// Open opens the application of a test's chain over db as this version.
func (d Dearer) Open(db dbm.DB) (*app.App, error) {
	return app.NewWith(d.Upgrades(), log.NewNopLogger(), db, ChainID, d.mount)
}

// Restart opens a chain's state as this version.
func (d Dearer) Restart(c *Chain, db dbm.DB) {
	c.t.Helper()
	c.RestartAs(d.Upgrades(), db, d.mount)
}

func (d Dearer) mount(a *baseapp.BaseApp) { a.MountStores(d.Key) }
