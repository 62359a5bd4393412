package power

import (
	"context"

	gateway "github.com/grpc-ecosystem/grpc-gateway/runtime"

	"github.com/cosmos/cosmos-sdk/client"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"

	"github.com/tally-network/tally/chain/module"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
)

// Module is the power module of an app.
type Module struct {
	module.Base
	module.Genesis[powerv1.GenesisState, *powerv1.GenesisState]
	keeper *Keeper
}

// NewModule returns the module over k.
func NewModule(k *Keeper) Module {
	return Module{
		Base:    module.Named(Name, k.Invariant),
		Genesis: module.GenesisOf(DefaultGenesis, ValidateGenesis, k.InitGenesis, k.ExportGenesis),
		keeper:  k,
	}
}

// EndBlock implements the SDK's HasEndBlocker.
func (m Module) EndBlock(ctx context.Context) error { return m.keeper.past.sweep(ctx) }

// RegisterInterfaces implements the SDK's AppModuleBasic: there are no messages.
func (Module) RegisterInterfaces(codectypes.InterfaceRegistry) {}

// RegisterServices implements the SDK's HasServices.
func (m Module) RegisterServices(c sdkmodule.Configurator) {
	powerv1.RegisterQueryServer(c.QueryServer(), NewQueryServer(m.keeper))
}

// RegisterGRPCGatewayRoutes implements the SDK's AppModuleBasic.
func (Module) RegisterGRPCGatewayRoutes(c client.Context, mux *gateway.ServeMux) {
	_ = powerv1.RegisterQueryHandlerClient(context.Background(), mux, powerv1.NewQueryClient(c))
}
