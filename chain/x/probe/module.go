package probe

import (
	"context"
	"errors"

	gateway "github.com/grpc-ecosystem/grpc-gateway/runtime"

	"github.com/cosmos/cosmos-sdk/client"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/types/msgservice"

	"github.com/tally-network/tally/chain/module"
	probev1 "github.com/tally-network/tally/gen/tally/probe/v1"
)

// Module is the probe module of an app.
type Module struct {
	module.Base
	module.Genesis[probev1.GenesisState, *probev1.GenesisState]
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

// Waits reports whether a probe waits for a block's value.
func (m Module) Waits(ctx context.Context) (bool, error) { return m.keeper.Waits(ctx) }

// EndBlock implements the SDK's HasEndBlocker.
func (m Module) EndBlock(ctx context.Context) error {
	return errors.Join(m.keeper.draw(ctx), m.keeper.forget(ctx))
}

// RegisterInterfaces implements the SDK's AppModuleBasic.
func (Module) RegisterInterfaces(r codectypes.InterfaceRegistry) {
	msgservice.RegisterMsgServiceDesc(r, &probev1.Msg_serviceDesc)
}

// RegisterServices implements the SDK's HasServices.
func (m Module) RegisterServices(c sdkmodule.Configurator) {
	probev1.RegisterMsgServer(c.MsgServer(), msgServer{m.keeper})
	probev1.RegisterQueryServer(c.QueryServer(), queryServer{m.keeper})
}

// RegisterGRPCGatewayRoutes implements the SDK's AppModuleBasic.
func (Module) RegisterGRPCGatewayRoutes(c client.Context, mux *gateway.ServeMux) {
	_ = probev1.RegisterQueryHandlerClient(context.Background(), mux, probev1.NewQueryClient(c))
}
