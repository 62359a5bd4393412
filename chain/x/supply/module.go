package supply

import (
	"context"

	gateway "github.com/grpc-ecosystem/grpc-gateway/runtime"

	"github.com/cosmos/cosmos-sdk/client"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"

	"github.com/tally-network/tally/chain/module"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
)

// Module is the supply module of an app.
type Module struct {
	module.Base
	module.Genesis[supplyv1.GenesisState, *supplyv1.GenesisState]
	query queryServer
}

// NewModule returns the module over k. The Check query evaluates check.
func NewModule(k *Keeper, check Check) Module {
	return Module{
		Base:    module.Named(Name, k.Invariant),
		Genesis: module.GenesisOf(DefaultGenesis, ValidateGenesis, k.InitGenesis, k.ExportGenesis),
		query:   queryServer{k, check},
	}
}

// EndBlock implements the SDK's HasEndBlocker.
func (m Module) EndBlock(ctx context.Context) error { return m.query.burnFees(ctx) }

// RegisterInterfaces implements the SDK's AppModuleBasic: there are no messages.
func (Module) RegisterInterfaces(codectypes.InterfaceRegistry) {}

// RegisterServices implements the SDK's HasServices.
func (m Module) RegisterServices(c sdkmodule.Configurator) {
	supplyv1.RegisterQueryServer(c.QueryServer(), m.query)
}

// RegisterGRPCGatewayRoutes implements the SDK's AppModuleBasic.
func (Module) RegisterGRPCGatewayRoutes(c client.Context, mux *gateway.ServeMux) {
	_ = supplyv1.RegisterQueryHandlerClient(context.Background(), mux, supplyv1.NewQueryClient(c))
}
