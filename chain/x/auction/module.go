package auction

import (
	"context"

	gateway "github.com/grpc-ecosystem/grpc-gateway/runtime"

	"github.com/cosmos/cosmos-sdk/client"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/types/msgservice"

	"github.com/tally-network/tally/chain/module"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

// Module is the auction module of an app.
type Module struct {
	module.Base
	module.Genesis[auctionv1.GenesisState, *auctionv1.GenesisState]
	keeper *Keeper
	market Market
}

// NewModule returns the module over k, which has leases begun by a market.
func NewModule(k *Keeper, market Market) Module {
	return Module{
		Base:    module.Named(Name, func(ctx context.Context) error { return k.Invariant(ctx, market) }),
		Genesis: module.GenesisOf(DefaultGenesis, ValidateGenesis, k.InitGenesis, k.ExportGenesis),
		keeper:  k,
		market:  market,
	}
}

// EndBlock implements the SDK's HasEndBlocker.
func (m Module) EndBlock(ctx context.Context) error { return m.keeper.EndBlock(ctx, m.market) }

// Waits implements the app's Drawer.
func (m Module) Waits(ctx context.Context) (bool, error) { return commitReveal{m.keeper}.waits(ctx) }

// RegisterInterfaces implements the SDK's AppModuleBasic.
func (Module) RegisterInterfaces(r codectypes.InterfaceRegistry) {
	msgservice.RegisterMsgServiceDesc(r, &auctionv1.Msg_serviceDesc)
}

// RegisterServices implements the SDK's HasServices.
func (m Module) RegisterServices(c sdkmodule.Configurator) {
	auctionv1.RegisterMsgServer(c.MsgServer(), msgServer{m.keeper, m.market})
	auctionv1.RegisterQueryServer(c.QueryServer(), queryServer{m.keeper, m.market})
}

// RegisterGRPCGatewayRoutes implements the SDK's AppModuleBasic.
func (Module) RegisterGRPCGatewayRoutes(c client.Context, mux *gateway.ServeMux) {
	_ = auctionv1.RegisterQueryHandlerClient(context.Background(), mux, auctionv1.NewQueryClient(c))
}
