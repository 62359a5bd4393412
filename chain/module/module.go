// Package module is what all modules of the chain have in common: the answers
// that the SDK asks of every module, and genesis as one protobuf message.
//
// A module of the chain is one package of one shape:
//
//	keeper.go      state, and what other modules may do with it
//	msg_server.go  transactions: check, then call the keeper
//	query.go       read-only services
//	genesis.go     default, check, import, export; the invariant
//	errors.go      registered errors
//	needs.go       the interfaces it needs of other modules
//	module.go      the pieces above, put together
package module

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cosmos/gogoproto/proto"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Base answers what the SDK asks of every module and ours answer alike.
type Base struct{ name string }

// Named returns the base of the module with this name.
func Named(name string) Base { return Base{name} }

// Name is the module's name: its store key, its account, its codespace.
func (b Base) Name() string { return b.name }

// ConsensusVersion changes when a module's state needs a migration.
func (Base) ConsensusVersion() uint64 { return 1 }

// RegisterLegacyAminoCodec does nothing: amino JSON follows from the .proto files.
func (Base) RegisterLegacyAminoCodec(*codec.LegacyAmino) {}

// IsOnePerModuleType and IsAppModule mark a module for the SDK.
func (Base) IsOnePerModuleType() {}
func (Base) IsAppModule()        {}

// Genesis imports and exports a module's state as the message G. Validate sees
// every state before Init does, so an error of Init or Export means a broken
// store or a bank that disagrees with the ledger; the SDK has no way to return
// it, and both panic.
type Genesis[G any, M interface {
	*G
	proto.Message
}] struct {
	Default  func() M
	Validate func(M) error
	Init     func(context.Context, M) error
	Export   func(context.Context) (M, error)
}

// DefaultGenesis implements the SDK's HasGenesisBasics.
func (g Genesis[G, M]) DefaultGenesis(cdc codec.JSONCodec) json.RawMessage {
	return cdc.MustMarshalJSON(g.Default())
}

// ValidateGenesis implements the SDK's HasGenesisBasics.
func (g Genesis[G, M]) ValidateGenesis(cdc codec.JSONCodec, _ client.TxEncodingConfig, raw json.RawMessage) error {
	state := M(new(G))
	if err := cdc.UnmarshalJSON(raw, state); err != nil {
		return fmt.Errorf("read genesis: %w", err)
	}
	return g.Validate(state)
}

// InitGenesis implements the SDK's HasGenesis.
func (g Genesis[G, M]) InitGenesis(ctx sdk.Context, cdc codec.JSONCodec, raw json.RawMessage) {
	state := M(new(G))
	cdc.MustUnmarshalJSON(raw, state)
	if err := g.Init(ctx, state); err != nil {
		panic(err)
	}
}

// ExportGenesis implements the SDK's HasGenesis.
func (g Genesis[G, M]) ExportGenesis(ctx sdk.Context, cdc codec.JSONCodec) json.RawMessage {
	state, err := g.Export(ctx)
	if err != nil {
		panic(err)
	}
	return cdc.MustMarshalJSON(state)
}
