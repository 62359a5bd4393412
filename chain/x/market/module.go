package market

import (
	"context"

	gateway "github.com/grpc-ecosystem/grpc-gateway/runtime"

	"github.com/cosmos/cosmos-sdk/client"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/types/msgservice"

	"github.com/tally-network/tally/chain/module"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

// Module is the market module of an app.
type Module struct {
	module.Base
	module.Genesis[marketv1.GenesisState, *marketv1.GenesisState]
	matcher matcher
}

// NewModule returns the module over k, which matches what the registry offers
// and begins leases.
func NewModule(k *Keeper, r Registry, l Leases, g Games, p Powers) Module {
	return Module{
		Base:    module.Named(Name, k.Invariant),
		Genesis: module.GenesisOf(DefaultGenesis, ValidateGenesis, k.InitGenesis, k.ExportGenesis),
		matcher: matcher{k, r, l, g, p},
	}
}

// EndBlock implements the SDK's HasEndBlocker.
func (m Module) EndBlock(ctx context.Context) error { return m.matcher.EndBlock(ctx) }

// RegisterInterfaces implements the SDK's AppModuleBasic.
func (Module) RegisterInterfaces(r codectypes.InterfaceRegistry) {
	msgservice.RegisterMsgServiceDesc(r, &marketv1.Msg_serviceDesc)
}

// RegisterServices implements the SDK's HasServices.
func (m Module) RegisterServices(c sdkmodule.Configurator) {
	marketv1.RegisterMsgServer(c.MsgServer(), msgServer{m.matcher})
	marketv1.RegisterQueryServer(c.QueryServer(), queryServer{m.matcher})
}

// RegisterGRPCGatewayRoutes implements the SDK's AppModuleBasic.
func (Module) RegisterGRPCGatewayRoutes(c client.Context, mux *gateway.ServeMux) {
	_ = marketv1.RegisterQueryHandlerClient(context.Background(), mux, marketv1.NewQueryClient(c))
}
