package app

import (
	"context"
	"maps"
	"slices"

	runtimev1 "cosmossdk.io/api/cosmos/app/runtime/v1alpha1"
	appv1 "cosmossdk.io/api/cosmos/app/v1alpha1"
	authv1 "cosmossdk.io/api/cosmos/auth/module/v1"
	bankv1 "cosmossdk.io/api/cosmos/bank/module/v1"
	consensusv1 "cosmossdk.io/api/cosmos/consensus/module/v1"
	feegrantv1 "cosmossdk.io/api/cosmos/feegrant/module/v1"
	txv1 "cosmossdk.io/api/cosmos/tx/config/v1"
	"cosmossdk.io/core/appconfig"
	"cosmossdk.io/core/store"
	"cosmossdk.io/depinject"

	"github.com/cosmos/cosmos-sdk/runtime"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	_ "github.com/cosmos/cosmos-sdk/x/auth"           // register with depinject
	_ "github.com/cosmos/cosmos-sdk/x/auth/tx/config" // register with depinject
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	_ "github.com/cosmos/cosmos-sdk/x/bank" // register with depinject
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	_ "github.com/cosmos/cosmos-sdk/x/consensus" // register with depinject
	consensustypes "github.com/cosmos/cosmos-sdk/x/consensus/types"
	"github.com/cosmos/cosmos-sdk/x/feegrant"
	_ "github.com/cosmos/cosmos-sdk/x/feegrant/module" // register with depinject
	upgradetypes "github.com/cosmos/cosmos-sdk/x/upgrade/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
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
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// A new module enters the app in four places: its keeper in App, and here its
// name in ours, its accounts in accounts, its keeper and module in wire.

// ours names our modules in the order in which they begin and end a block and
// are initialised: a module comes after those whose state it reads. Block, which
// tells the time, comes first.
var ours = []string{block.Name, supply.Name, power.Name, beacon.Name, provider.Name, probe.Name, sessions.Name, drilling.Name, market.Name, work.Name, auction.Name, dispute.Name, policy.Name, reserve.Name, seats.Name}

// accounts are those that no key controls, with what they may do.
var accounts = []*authv1.ModuleAccountPermission{
	{Account: authtypes.FeeCollectorName},
	{Account: supply.Name, Permissions: []string{authtypes.Burner}},
	{Account: provider.Name},
	{Account: provider.Insurance},
	{Account: sessions.Name},
	{Account: drilling.Name},
	{Account: market.Name},
	{Account: work.Name},
	{Account: work.Jackpot},
	{Account: auction.Name},
	{Account: dispute.Name},
	{Account: policy.Name},
	{Account: reserve.Name},
	{Account: seats.Name},
}

// governed are the messages that a vote of computing power can execute. No other is signed by the policy's account.
var governed = []sdk.Msg{
	&auctionv1.MsgUpdateParams{}, &blockv1.MsgUpdateParams{}, &disputev1.MsgUpdateParams{}, &drillingv1.MsgUpdateParams{},
	&policyv1.MsgUpdateParams{}, &providerv1.MsgUpdateParams{}, &reservev1.MsgUpdateParams{}, &seatsv1.MsgUpdateParams{}, &sessionsv1.MsgUpdateParams{}, &workv1.MsgUpdateParams{},
	&drillingv1.MsgAdmitProject{}, &drillingv1.MsgEndProject{},
	&upgradetypes.MsgSoftwareUpgrade{}, &upgradetypes.MsgCancelUpgrade{},
}

var (
	initOrder = append([]string{authtypes.ModuleName, banktypes.ModuleName, feegrant.ModuleName, upgradetypes.ModuleName}, ours...)
	// The SDK wants the bank first. The registry comes last: it gathers what the others slashed.
	endOrder = append([]string{banktypes.ModuleName, feegrant.ModuleName}, last(ours, provider.Name)...)
)

// last returns names with one of them at the end.
func last(names []string, name string) []string {
	return append(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name }), name)
}

// wire makes the keepers, in order, and returns the modules over them.
func (a *App) wire() []Module {
	a.MountStores(module.BlockStore)
	a.Block = block.NewKeeper(a.Codec, runtime.NewKVStoreService(module.BlockStore))
	a.Supply = supply.NewKeeper(a.store(supply.Name), a.Bank)
	a.Provider = provider.NewKeeper(a.Codec, a.store(provider.Name), a.Bank)
	a.Power = power.NewKeeper(a.Codec, a.store(power.Name))
	a.Policy = policy.NewKeeper(a.Codec, a.store(policy.Name), policy.Needs{
		Bank: a.Bank, Burner: a.Supply, Power: a.Power, Router: a.MsgServiceRouter(),
	}, governed...)
	a.Seats = seats.NewKeeper(a.Codec, a.store(seats.Name), seats.Needs{Bank: a.Bank, Power: a.Power, Founders: a.Policy}, provider.Insurance)
	a.Beacon = beacon.NewKeeper(a.Codec, a.store(beacon.Name), a.Seats)
	a.Seats.Follow(a.Beacon)
	a.Probe = probe.NewKeeper(a.Codec, a.store(probe.Name), a.Provider, a.Beacon)
	a.Sessions = sessions.NewKeeper(a.Codec, a.store(sessions.Name), sessions.Needs{
		Bank: a.Bank, Burner: a.Supply, Registry: a.Provider, Insurance: provider.Insurance,
	})
	a.Drilling = drilling.NewKeeper(a.Codec, a.store(drilling.Name), a.Bank, a.Power)
	a.Market = market.NewKeeper(a.Codec, a.store(market.Name), a.Bank, a.Supply, a.Drilling)
	a.Work = work.NewKeeper(a.Codec, a.store(work.Name), a.Bank, a.Market, a.Provider, a.Drilling)
	a.Dispute = dispute.NewKeeper(a.Codec, a.store(dispute.Name), a.Bank, a.Provider, a.Work, a.Sessions)
	a.Sessions.Tell(a.Dispute)
	a.Auction = auction.NewKeeper(a.Codec, a.store(auction.Name), auction.Needs{
		Bank: a.Bank, Burner: a.Supply, Registry: a.Provider, Leases: a.Work, Beacon: a.Beacon,
	})
	a.Market.Tell(a.Auction)
	a.Work.Tell(a.Dispute, a.Probe.Settled)
	a.Reserve = reserve.NewKeeper(a.Codec, a.store(reserve.Name), reserve.Needs{
		Bank: a.Bank, Seats: a.Seats, Beacon: a.Beacon, Leases: a.Work,
	}, reserve.Pools{Jackpot: work.Jackpot, Insurance: provider.Insurance, Seats: seats.Name})
	a.Power.Tell(a.Policy, a.Reserve, a.Seats)
	orders := market.NewModule(a.Market, a.Provider, a.Work, a.Dispute, a.Power)
	return []Module{
		block.NewModule(a.Block),
		supply.NewModule(a.Supply, a.CheckInvariants),
		power.NewModule(a.Power),
		beacon.NewModule(a.Beacon),
		provider.NewModule(a.Provider),
		probe.NewModule(a.Probe),
		sessions.NewModule(a.Sessions),
		drilling.NewModule(a.Drilling),
		orders,
		auction.NewModule(a.Auction, orders),
		work.NewModule(a.Work, bonds{a.Dispute, a.Auction, a.Sessions}, a.Beacon),
		dispute.NewModule(a.Dispute),
		policy.NewModule(a.Policy),
		reserve.NewModule(a.Reserve),
		seats.NewModule(a.Seats),
	}
}

// bonds are the stakes that modules other than x/work reserve.
type bonds []work.Bonds

// Reserved implements [work.Bonds].
func (b bonds) Reserved(ctx context.Context) (map[string]uint64, error) {
	sum := map[string]uint64{}
	for _, of := range b {
		some, err := of.Reserved(ctx)
		if err != nil {
			return nil, err
		}
		for _, account := range slices.Sorted(maps.Keys(some)) {
			sum[account] += some[account]
		}
	}
	return sum, nil
}

// store mounts a store under a module's name.
func (a *App) store(name string) store.KVStoreService {
	key := storetypes.NewKVStoreKey(name)
	a.MountStores(key)
	return runtime.NewKVStoreService(key)
}

// sdkConfig configures the SDK's own modules.
func sdkConfig() depinject.Config {
	return appconfig.Compose(&appv1.Config{Modules: []*appv1.ModuleConfig{
		{Name: runtime.ModuleName, Config: appconfig.WrapAny(&runtimev1.Module{
			AppName:           Name,
			PreBlockers:       []string{upgradetypes.ModuleName, authtypes.ModuleName},
			BeginBlockers:     ours,
			EndBlockers:       endOrder,
			InitGenesis:       initOrder,
			OverrideStoreKeys: []*runtimev1.StoreKeyConfig{{ModuleName: authtypes.ModuleName, KvStoreKey: authtypes.StoreKey}},
			SkipStoreKeys:     []string{"tx"},
		})},
		{Name: authtypes.ModuleName, Config: appconfig.WrapAny(&authv1.Module{
			Bech32Prefix:             address.Prefix,
			ModuleAccountPermissions: accounts,
		})},
		{Name: banktypes.ModuleName, Config: appconfig.WrapAny(&bankv1.Module{})},
		{Name: feegrant.ModuleName, Config: appconfig.WrapAny(&feegrantv1.Module{})},
		{Name: "tx", Config: appconfig.WrapAny(&txv1.Config{SkipAnteHandler: true})},
		{Name: consensustypes.ModuleName, Config: appconfig.WrapAny(&consensusv1.Module{})},
	}})
}
