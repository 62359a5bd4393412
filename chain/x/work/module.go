package work

import (
	"context"

	gateway "github.com/grpc-ecosystem/grpc-gateway/runtime"

	"github.com/cosmos/cosmos-sdk/client"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/types/msgservice"

	"github.com/tally-network/tally/chain/module"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// Module is the work module of an app.
type Module struct {
	module.Base
	module.Genesis[workv1.GenesisState, *workv1.GenesisState]
	keeper *Keeper
	clock  clock
}

// NewModule returns the module over k, whose invariant leaves out what bonds of
// disputes reserve, and whose draws follow from c.
func NewModule(k *Keeper, b Bonds, c Beacon) Module {
	invariant := func(ctx context.Context) error {
		bonds, err := b.Reserved(ctx)
		if err != nil {
			return err
		}
		return k.Invariant(ctx, bonds)
	}
	return Module{
		Base:    module.Named(Name, invariant),
		Genesis: module.GenesisOf(DefaultGenesis, ValidateGenesis, k.InitGenesis, k.ExportGenesis),
		keeper:  k,
		clock:   clock{k, c},
	}
}

// EndBlock implements the SDK's HasEndBlocker.
func (m Module) EndBlock(ctx context.Context) error { return m.clock.EndBlock(ctx) }

// Waits implements the app's Drawer.
func (m Module) Waits(ctx context.Context) (bool, error) { return m.clock.Waits(ctx) }

// RegisterInterfaces implements the SDK's AppModuleBasic.
func (Module) RegisterInterfaces(r codectypes.InterfaceRegistry) {
	msgservice.RegisterMsgServiceDesc(r, &workv1.Msg_serviceDesc)
}

// RegisterServices implements the SDK's HasServices.
func (m Module) RegisterServices(c sdkmodule.Configurator) {
	workv1.RegisterMsgServer(c.MsgServer(), msgServer{m.keeper})
	workv1.RegisterQueryServer(c.QueryServer(), queryServer{m.keeper})
}

// RegisterGRPCGatewayRoutes implements the SDK's AppModuleBasic.
func (Module) RegisterGRPCGatewayRoutes(c client.Context, mux *gateway.ServeMux) {
	_ = workv1.RegisterQueryHandlerClient(context.Background(), mux, workv1.NewQueryClient(c))
}
