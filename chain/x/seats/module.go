package seats

import (
	"context"
	"encoding/json"

	abci "github.com/cometbft/cometbft/abci/types"
	gateway "github.com/grpc-ecosystem/grpc-gateway/runtime"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/codec"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/types/msgservice"

	"github.com/tally-network/tally/chain/module"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// Module is the seats module of an app.
type Module struct {
	module.Base
	module.Genesis[seatsv1.GenesisState, *seatsv1.GenesisState]
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

// InitGenesis implements the SDK's HasABCIGenesis: this module, and no other, tells consensus the validator set.
func (m Module) InitGenesis(ctx sdk.Context, cdc codec.JSONCodec, raw json.RawMessage) []abci.ValidatorUpdate {
	m.Genesis.InitGenesis(ctx, cdc, raw)
	updates, err := m.keeper.ValidatorUpdates(ctx)
	if err != nil {
		panic(err)
	}
	return updates
}

// BeginBlock implements the SDK's HasBeginBlocker.
func (m Module) BeginBlock(ctx context.Context) error { return attendance{m.keeper}.convict(ctx) }

// EndBlock implements the SDK's HasABCIEndBlock.
func (m Module) EndBlock(ctx context.Context) ([]abci.ValidatorUpdate, error) {
	return m.keeper.EndBlock(ctx)
}

// RegisterInterfaces implements the SDK's AppModuleBasic.
func (Module) RegisterInterfaces(r codectypes.InterfaceRegistry) {
	msgservice.RegisterMsgServiceDesc(r, &seatsv1.Msg_serviceDesc)
}

// RegisterServices implements the SDK's HasServices.
func (m Module) RegisterServices(c sdkmodule.Configurator) {
	seatsv1.RegisterMsgServer(c.MsgServer(), msgServer{m.keeper})
	seatsv1.RegisterQueryServer(c.QueryServer(), queryServer{m.keeper})
}

// RegisterGRPCGatewayRoutes implements the SDK's AppModuleBasic.
func (Module) RegisterGRPCGatewayRoutes(c client.Context, mux *gateway.ServeMux) {
	_ = seatsv1.RegisterQueryHandlerClient(context.Background(), mux, seatsv1.NewQueryClient(c))
}
