package provider

import (
	"context"
	"errors"

	gateway "github.com/grpc-ecosystem/grpc-gateway/runtime"

	"github.com/cosmos/cosmos-sdk/client"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/types/msgservice"

	"github.com/tally-network/tally/chain/module"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Module is the provider module of an app.
type Module struct {
	module.Base
	module.Genesis[providerv1.GenesisState, *providerv1.GenesisState]
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
	msgservice.RegisterMsgServiceDesc(r, &providerv1.Msg_serviceDesc)
}

// RegisterServices implements the SDK's HasServices.
func (m Module) RegisterServices(c sdkmodule.Configurator) {
	providerv1.RegisterMsgServer(c.MsgServer(), msgServer{m.keeper})
	providerv1.RegisterQueryServer(c.QueryServer(), queryServer{m.keeper})
}

// RegisterGRPCGatewayRoutes implements the SDK's AppModuleBasic.
func (Module) RegisterGRPCGatewayRoutes(c client.Context, mux *gateway.ServeMux) {
	_ = providerv1.RegisterQueryHandlerClient(context.Background(), mux, providerv1.NewQueryClient(c))
}

// EndBlock moves what the block's slashes have left to the insurance account, and pays back what is unbonded.
func (m Module) EndBlock(ctx context.Context) error {
	return errors.Join(m.keeper.collect(ctx), m.keeper.Unbonding.Pay(ctx))
}
