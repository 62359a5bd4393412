package beacon

import (
	"context"

	gateway "github.com/grpc-ecosystem/grpc-gateway/runtime"

	"github.com/cosmos/cosmos-sdk/client"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/types/msgservice"

	"github.com/tally-network/tally/chain/module"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
)

// Module is the beacon module of an app.
type Module struct {
	module.Base
	module.Genesis[beaconv1.GenesisState, *beaconv1.GenesisState]
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

// RegisterInterfaces implements the SDK's AppModuleBasic.
func (Module) RegisterInterfaces(r codectypes.InterfaceRegistry) {
	msgservice.RegisterMsgServiceDesc(r, &beaconv1.Msg_serviceDesc)
}

// RegisterServices implements the SDK's HasServices.
func (m Module) RegisterServices(c sdkmodule.Configurator) {
	beaconv1.RegisterMsgServer(c.MsgServer(), msgServer{m.keeper})
	beaconv1.RegisterQueryServer(c.QueryServer(), queryServer{m.keeper})
}

// RegisterGRPCGatewayRoutes implements the SDK's AppModuleBasic.
func (Module) RegisterGRPCGatewayRoutes(c client.Context, mux *gateway.ServeMux) {
	_ = beaconv1.RegisterQueryHandlerClient(context.Background(), mux, beaconv1.NewQueryClient(c))
}
