package block

import (
	"context"

	gateway "github.com/grpc-ecosystem/grpc-gateway/runtime"

	"github.com/cosmos/cosmos-sdk/client"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/types/msgservice"

	"github.com/tally-network/tally/chain/module"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
)

// Module is the block module of an app.
type Module struct {
	module.Base
	module.Genesis[blockv1.GenesisState, *blockv1.GenesisState]
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
	msgservice.RegisterMsgServiceDesc(r, &blockv1.Msg_serviceDesc)
}

// RegisterServices implements the SDK's HasServices.
func (m Module) RegisterServices(c sdkmodule.Configurator) {
	blockv1.RegisterMsgServer(c.MsgServer(), msgServer{m.keeper})
	blockv1.RegisterQueryServer(c.QueryServer(), queryServer{m.keeper})
}

// RegisterGRPCGatewayRoutes implements the SDK's AppModuleBasic.
func (Module) RegisterGRPCGatewayRoutes(c client.Context, mux *gateway.ServeMux) {
	_ = blockv1.RegisterQueryHandlerClient(context.Background(), mux, blockv1.NewQueryClient(c))
}
