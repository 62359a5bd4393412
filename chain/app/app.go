// Package app puts the modules of the chain together as one ABCI application:
// the Cosmos SDK's auth, bank, consensus, feegrant and tx, and our own (modules.go lists
// them), on a validator set of our own.
//
// Call [New] for the application of a node, and [NewEncoding] for what speaks to one.
//
// Invariant: a block without transactions or deadlines changes no state, unless a long pause
// came before it. Its app hash is that of the block before, so an idle chain makes no blocks
// to prove it. Every module states its own invariant, which [App.CheckInvariants] collects.
//
// Source: ABCI 2.0, as CometBFT and the Cosmos SDK have it.
package app

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"

	"cosmossdk.io/core/appmodule"
	"cosmossdk.io/depinject"
	"cosmossdk.io/log/v2"

	"github.com/cosmos/cosmos-sdk/baseapp"
	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/codec"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/runtime"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"
	authkeeper "github.com/cosmos/cosmos-sdk/x/auth/keeper"
	bankkeeper "github.com/cosmos/cosmos-sdk/x/bank/keeper"
	feegrantkeeper "github.com/cosmos/cosmos-sdk/x/feegrant/keeper"

	"github.com/tally-network/tally/chain/x/auction"
	"github.com/tally-network/tally/chain/x/beacon"
	"github.com/tally-network/tally/chain/x/block"
	"github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/chain/x/drilling"
	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/chain/x/policy"
	"github.com/tally-network/tally/chain/x/power"
	"github.com/tally-network/tally/chain/x/probe"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/reserve"
	"github.com/tally-network/tally/chain/x/seats"
	"github.com/tally-network/tally/chain/x/sessions"
	"github.com/tally-network/tally/chain/x/supply"
	"github.com/tally-network/tally/chain/x/work"
)

// Name is the application's name.
const Name = "tally"

// App is the application over one database.
type App struct {
	*runtime.App
	Encoding

	Accounts authkeeper.AccountKeeper
	Bank     bankkeeper.BaseKeeper
	Grants   feegrantkeeper.Keeper
	Block    *block.Keeper
	Supply   *supply.Keeper
	Power    *power.Keeper
	Probe    *probe.Keeper
	Beacon   *beacon.Keeper
	Provider *provider.Keeper
	Sessions *sessions.Keeper
	Drilling *drilling.Keeper
	Auction  *auction.Keeper
	Market   *market.Keeper
	Work     *work.Keeper
	Dispute  *dispute.Keeper
	Policy   *policy.Keeper
	Reserve  *reserve.Keeper
	Seats    *seats.Keeper

	modules  []Module // ours, in order
	upgrades *upgrades
	pool     pool // what this node's mempool holds
	load     load // what the block under way holds of moves
	failed   struct {
		arriving failures // on their way into the mempool, since the last block
		proposed failures // left out of the proposal under way
	}

	provers []ed25519.PrivateKey // with which this node proves the beacon's values
}

// Encoding reads and writes the chain's transactions, messages and JSON.
type Encoding struct {
	Codec    codec.Codec
	Registry codectypes.InterfaceRegistry
	Amino    *codec.LegacyAmino
	Tx       client.TxConfig
}

// wiring keeps two apps from being wired at once: the SDK's ante handlers write
// a variable of the process.
var wiring sync.Mutex // sync: several nodes may live in one process

// New opens the application of a chain over db, at its last block.
func New(logger log.Logger, db dbm.DB, chainID string, opts ...func(*baseapp.BaseApp)) (*App, error) {
	return NewWith(Upgrades, logger, db, chainID, opts...)
}

// NewWith is New for a version with other upgrades, as who rehearses one has it.
func NewWith(known []Upgrade, logger log.Logger, db dbm.DB, chainID string, opts ...func(*baseapp.BaseApp)) (*App, error) {
	wiring.Lock()
	defer wiring.Unlock()
	a := &App{}
	var builder *runtime.AppBuilder
	err := depinject.Inject(depinject.Configs(sdkConfig(), depinject.Supply(logger)),
		&builder, &a.Codec, &a.Registry, &a.Amino, &a.Tx, &a.Accounts, &a.Bank, &a.Grants)
	if err != nil {
		return nil, fmt.Errorf("wire the app: %w", err)
	}
	// Pruning beside the blocks would leave a goroutine per store behind.
	a.App = builder.Build(db, append(opts, baseapp.SetChainID(chainID), baseapp.SetIAVLSyncPruning(true), baseapp.SetQueryGasLimit(maxQueryGas))...)
	for _, m := range a.wire() {
		if err := a.RegisterModules(m); err != nil {
			return nil, err
		}
		a.modules = append(a.modules, m)
	}
	if a.upgrades, err = a.newUpgrades(known, db); err != nil {
		return nil, err
	}
	a.forget()
	a.Tx = newTxConfig(a.Tx, a.Registry)
	a.SetTxDecoder(a.Tx.TxDecoder())
	a.SetAnteHandler(a.anteHandler())
	a.SetPostHandler(a.postHandler)
	a.SetCheckTxHandler(a.checkTx)
	a.SetPrepareCheckStater(func(sdk.Context) { a.forget() })
	a.SetPreBlocker(a.preBlock)
	a.SetPrepareProposal(a.prepareProposal)
	a.SetProcessProposal(a.processProposal)
	a.SetInitChainer(a.initChain)
	a.SetStoreLoader(a.upgrades.load)
	if err := a.Load(true); err != nil {
		return nil, fmt.Errorf("load the app's state: %w", err)
	}
	return a, nil
}

// forget begins to count anew what the mempool holds, and what fails there.
func (a *App) forget() {
	a.pool.reset()
	a.failed.arriving.reset()
}

// NewEncoding returns the encoding of the application, without its state.
func NewEncoding() (Encoding, error) {
	a, err := New(log.NewNopLogger(), dbm.NewMemDB(), "")
	if err != nil {
		return Encoding{}, err
	}
	return a.Encoding, nil
}

// Module is a module of ours: the SDK's interface, and an invariant.
type Module interface {
	appmodule.AppModule
	sdkmodule.AppModuleBasic
	Invariant(context.Context) error
}

// CheckInvariants evaluates the invariant of every module on the state of ctx.
func (a *App) CheckInvariants(ctx context.Context) error {
	for _, m := range a.modules {
		if err := m.Invariant(ctx); err != nil {
			return err
		}
	}
	return nil
}

// initChain checks the whole genesis before any module imports its part. Modules
// of the SDK panic where parts contradict one another.
func (a *App) initChain(ctx sdk.Context, req *abci.RequestInitChain) (res *abci.ResponseInitChain, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("import genesis: %v", r)
		}
	}()
	var state map[string]json.RawMessage
	if err := json.Unmarshal(req.AppStateBytes, &state); err != nil {
		return nil, fmt.Errorf("read genesis: %w", err)
	}
	if err := a.checkGenesis(state); err != nil {
		return nil, err
	}
	if res, err = a.ModuleManager.InitGenesis(ctx, a.Codec, state); err != nil {
		return nil, err
	}
	for _, m := range accounts { // else the first transaction that pays one makes it, and two trials may at once
		a.Accounts.GetModuleAccount(ctx, m.Account)
	}
	return res, nil
}

func (a *App) checkGenesis(state map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(state)) {
		m, ok := a.ModuleManager.Modules[name].(sdkmodule.HasGenesisBasics)
		if !ok {
			return fmt.Errorf("genesis has a state for %q, which is no module with state", name)
		}
		if err := m.ValidateGenesis(a.Codec, a.Tx, state[name]); err != nil {
			return fmt.Errorf("check genesis of %s: %w", name, err)
		}
	}
	for _, name := range initOrder {
		if state[name] == nil {
			return fmt.Errorf("genesis has no state for module %q", name)
		}
	}
	return nil
}

// Export returns the state of ctx as the app state of a genesis that would
// continue from it.
func (a *App) Export(ctx sdk.Context) (json.RawMessage, error) {
	type exporter interface {
		ExportGenesis(sdk.Context, codec.JSONCodec) json.RawMessage
	}
	state := map[string]json.RawMessage{}
	// One after the other: the SDK's manager exports all at once, for which a
	// branched context is not made.
	for _, name := range initOrder {
		m, ok := a.ModuleManager.Modules[name].(exporter)
		if !ok {
			return nil, fmt.Errorf("export genesis: module %q has no state", name)
		}
		state[name] = m.ExportGenesis(ctx, a.Codec)
	}
	return json.Marshal(state)
}
