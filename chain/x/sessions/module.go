package sessions

import (
	"context"
	"errors"

	gateway "github.com/grpc-ecosystem/grpc-gateway/runtime"

	"github.com/cosmos/cosmos-sdk/client"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/types/msgservice"

	"github.com/tally-network/tally/chain/module"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
)

// Module is the sessions module of an app.
type Module struct {
	module.Base
	module.Genesis[sessionsv1.GenesisState, *sessionsv1.GenesisState]
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

// EndBlock lets time pass for sessions and listings.
func (m Module) EndBlock(ctx context.Context) error {
	return errors.Join(m.keeper.retry(ctx), m.keeper.tick(ctx), m.keeper.lapse(ctx))
}

// RegisterInterfaces implements the SDK's AppModuleBasic.
func (Module) RegisterInterfaces(r codectypes.InterfaceRegistry) {
	msgservice.RegisterMsgServiceDesc(r, &sessionsv1.Msg_serviceDesc)
}

// RegisterServices implements the SDK's HasServices.
func (m Module) RegisterServices(c sdkmodule.Configurator) {
	sessionsv1.RegisterMsgServer(c.MsgServer(), msgServer{m.keeper})
	sessionsv1.RegisterQueryServer(c.QueryServer(), queryServer{m.keeper})
}

// RegisterGRPCGatewayRoutes implements the SDK's AppModuleBasic.
func (Module) RegisterGRPCGatewayRoutes(c client.Context, mux *gateway.ServeMux) {
	_ = sessionsv1.RegisterQueryHandlerClient(context.Background(), mux, sessionsv1.NewQueryClient(c))
}
