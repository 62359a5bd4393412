package app

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	dbm "github.com/cosmos/cosmos-db"
	gateway "github.com/grpc-ecosystem/grpc-gateway/runtime"

	"cosmossdk.io/core/appmodule"
	"cosmossdk.io/core/store"

	"github.com/cosmos/cosmos-sdk/baseapp"
	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/codec"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"
	upgradekeeper "github.com/cosmos/cosmos-sdk/x/upgrade/keeper"
	upgradetypes "github.com/cosmos/cosmos-sdk/x/upgrade/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
)

// Upgrade is a step from an earlier version of this software to a later one, at a height that a vote sets: the earlier one
// makes no block from there on, and the later one none before.
type Upgrade struct {
	Name string // as in the plan that the vote decides
	// Stores come with it, or go.
	Stores storetypes.StoreUpgrades
	// Migrate changes the state before modules with a later version migrate theirs, and new ones begin with their default
	// genesis. It may be nil.
	Migrate func(context.Context, *App) error
}

// Upgrades are all that the chain may have applied, the earliest first; the last is the one that this version was released
// for. None is removed: a chain whose last upgrade is not listed needs a later version.
var Upgrades []Upgrade

// UpgradeError says that the chain needs another version of this software.
type UpgradeError struct {
	Plan  upgradetypes.Plan
	Early bool // this version is for the upgrade, whose height has not come
}

// Error implements error.
func (e *UpgradeError) Error() string {
	if e.Early {
		return fmt.Sprintf("this version is for the upgrade %q, which comes at height %d: run the version before it until then", e.Plan.Name, e.Plan.Height)
	}
	info := ""
	if e.Plan.Info != "" {
		info = fmt.Sprintf(" (%q)", e.Plan.Info)
	}
	return fmt.Sprintf("from height %d on the chain needs the version with the upgrade %q%s: install it and start again; nothing is lost", e.Plan.Height, e.Plan.Name, info)
}

// upgrades is the module of x/upgrade, with rules of our own for when a version may make a block. The SDK's writes a file for
// the version after it, and needs it there; here the state and the list of upgrades suffice. It fetches binaries too, for which
// it links the libraries of three clouds.
type upgrades struct {
	module.Base
	keeper   *upgradekeeper.Keeper
	store    store.KVStoreService
	db       dbm.DB
	known    []Upgrade
	versions func() sdkmodule.VersionMap // of all modules of this version

	added string // the upgrade whose stores were added when the state was loaded
}

// newUpgrades wires x/upgrade, whose plans the votes of policy decide.
func (a *App) newUpgrades(known []Upgrade, db dbm.DB) (*upgrades, error) {
	service := a.store(upgradetypes.StoreKey)
	// The version in headers stays: who syncs a state expects the one of the genesis.
	k := upgradekeeper.NewKeeper(nil, service, a.Codec, "", nil, address.Policy().String())
	u := &upgrades{Base: module.Named(upgradetypes.ModuleName, func(context.Context) error { return nil }), keeper: k, store: service, db: db, known: known, versions: a.ModuleManager.GetVersionMap}
	for _, one := range known {
		if k.HasHandler(one.Name) {
			return nil, fmt.Errorf("two upgrades are called %q", one.Name)
		}
		k.SetUpgradeHandler(one.Name, func(ctx context.Context, _ upgradetypes.Plan, from sdkmodule.VersionMap) (sdkmodule.VersionMap, error) {
			if one.Migrate != nil {
				if err := one.Migrate(ctx, a); err != nil {
					return nil, err
				}
			}
			return a.ModuleManager.RunMigrations(ctx, a.Configurator(), from)
		})
	}
	return u, a.RegisterModules(u)
}

// load opens the stores at the last block. Those of an upgrade that the block does not have yet are added.
func (u *upgrades) load(ms storetypes.CommitMultiStore) error {
	last := ms.LastCommitID().Version
	if last == 0 {
		return baseapp.DefaultStoreLoader(ms)
	}
	info, err := CommitInfo(ms, last)
	if err != nil {
		return fmt.Errorf("stores of block %d: %w", last, err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(info.StoreInfos, func(s storetypes.StoreInfo) bool { return s.Name == name })
	}
	for _, one := range slices.Backward(u.known) {
		changes := one.Stores
		if slices.ContainsFunc(changes.Added, has) || !slices.ContainsFunc(changes.Deleted, has) && len(changes.Added) == 0 {
			continue
		}
		u.added = one.Name
		for _, name := range changes.Added {
			if err := u.discard(name); err != nil {
				return err
			}
		}
		return ms.LoadLatestVersionAndUpgrade(&changes)
	}
	return baseapp.DefaultStoreLoader(ms)
}

// discard removes what a kill has left of a store that is added: part of it may be stored before the block is.
func (u *upgrades) discard(name string) error {
	from := []byte("s/k:" + name + "/") // as the SDK's store names it
	it, err := u.db.Iterator(from, storetypes.PrefixEndBytes(from))
	if err != nil {
		return err
	}
	var keys [][]byte
	for ; it.Valid(); it.Next() {
		keys = append(keys, bytes.Clone(it.Key()))
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return err
	}
	b := u.db.NewBatch()
	for _, key := range keys {
		if err := b.Delete(key); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	return errors.Join(b.WriteSync(), b.Close())
}

// CommitInfo returns what a store has committed at a height: which stores there were, and when.
func CommitInfo(ms storetypes.MultiStore, height int64) (*storetypes.CommitInfo, error) {
	commits, ok := ms.(interface {
		GetCommitInfo(height int64) (*storetypes.CommitInfo, error)
	})
	if !ok {
		return nil, fmt.Errorf("the store %T does not know its commits", ms)
	}
	return commits.GetCommitInfo(height)
}

// PreBlock implements appmodule.HasPreBlocker. It makes an upgrade at its height, and returns an [UpgradeError] if the block
// is another version's.
func (u *upgrades) PreBlock(ctx context.Context) (appmodule.ResponsePreBlock, error) {
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	plan, err := u.check(ctx, height)
	if err != nil || plan == nil || plan.Height > height {
		return &sdk.ResponsePreBlock{}, err
	}
	if u.added != "" && u.added != plan.Name {
		return nil, fmt.Errorf("this version begins with the stores of the upgrade %q, and the chain makes %q here: run the version between", u.added, plan.Name)
	}
	u.added = ""
	return &sdk.ResponsePreBlock{ConsensusParamsChanged: true}, u.keeper.ApplyUpgrade(ctx, *plan)
}

// check returns the plan that the chain has, if any, or an error if this version may not make the block at a height.
func (u *upgrades) check(ctx context.Context, height int64) (*upgradetypes.Plan, error) {
	plan, err := u.keeper.GetUpgradePlan(ctx)
	if errors.Is(err, upgradetypes.ErrNoUpgradePlanFound) {
		return nil, u.checkApplied(ctx)
	}
	switch has := u.keeper.HasHandler(plan.Name); {
	case err != nil:
		return nil, err
	case plan.Height <= height && !has:
		return nil, &UpgradeError{Plan: plan}
	case plan.Height > height && has:
		return nil, &UpgradeError{Plan: plan, Early: true}
	case plan.Height > height:
		return &plan, u.checkApplied(ctx)
	}
	return &plan, nil
}

// checkApplied returns an error unless this version knows the last upgrade that the chain has applied, and the chain has applied
// the last that this version knows.
func (u *upgrades) checkApplied(ctx context.Context) error {
	name, height, err := u.keeper.GetLastCompletedUpgrade(ctx)
	if err != nil {
		return err
	}
	if name != "" && !u.keeper.HasHandler(name) {
		return &UpgradeError{Plan: upgradetypes.Plan{Name: name, Height: height}}
	}
	if len(u.known) == 0 {
		return nil
	}
	last := u.known[len(u.known)-1].Name
	if height, err = u.keeper.GetDoneHeight(ctx, last); err == nil && height == 0 {
		err = fmt.Errorf("this version begins with the upgrade %q, which the chain does not make here: run the version before it", last)
	}
	return err
}

// ConsensusVersion implements the SDK's HasConsensusVersion: that of its module.
func (*upgrades) ConsensusVersion() uint64 { return 2 }

// RegisterInterfaces implements the SDK's AppModuleBasic.
func (*upgrades) RegisterInterfaces(r codectypes.InterfaceRegistry) {
	upgradetypes.RegisterInterfaces(r)
}

// RegisterServices implements the SDK's HasServices.
func (u *upgrades) RegisterServices(c sdkmodule.Configurator) {
	upgradetypes.RegisterMsgServer(c.MsgServer(), upgradekeeper.NewMsgServerImpl(u.keeper))
	upgradetypes.RegisterQueryServer(c.QueryServer(), u.keeper)
}

// RegisterGRPCGatewayRoutes implements the SDK's AppModuleBasic.
func (*upgrades) RegisterGRPCGatewayRoutes(c client.Context, mux *gateway.ServeMux) {
	_ = upgradetypes.RegisterQueryHandlerClient(context.Background(), mux, upgradetypes.NewQueryClient(c))
}

// DefaultGenesis implements the SDK's HasGenesisBasics.
func (*upgrades) DefaultGenesis(codec.JSONCodec) json.RawMessage { return []byte("{}") }

// ValidateGenesis implements the SDK's HasGenesisBasics.
func (*upgrades) ValidateGenesis(_ codec.JSONCodec, _ client.TxEncodingConfig, raw json.RawMessage) error {
	var none struct{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(&none)
}

// InitGenesis implements the SDK's HasGenesis: a chain begins with the versions of its modules, without a plan, and as if it had
// applied all upgrades that this version knows.
func (u *upgrades) InitGenesis(ctx sdk.Context, _ codec.JSONCodec, _ json.RawMessage) {
	err := u.keeper.SetModuleVersionMap(ctx, u.versions())
	store := u.store.OpenKVStore(ctx)
	for _, one := range u.known { // as the keeper itself notes them
		key := binary.BigEndian.AppendUint64([]byte{upgradetypes.DoneByte}, uint64(max(ctx.BlockHeight(), 1)))
		err = errors.Join(err, store.Set(append(key, one.Name...), []byte{1}))
	}
	if err != nil {
		panic(err) // a broken store, which the SDK has no way to return
	}
}

// ExportGenesis implements the SDK's HasGenesis. Heights of plans are those of one chain alone.
func (u *upgrades) ExportGenesis(_ sdk.Context, cdc codec.JSONCodec) json.RawMessage {
	return u.DefaultGenesis(cdc)
}
