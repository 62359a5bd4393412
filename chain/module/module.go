// Package module is what all modules of the chain have in common: the answers
// that the SDK asks of every module, and genesis as one protobuf message.
//
// A module of the chain is one package of one shape:
//
//	keeper.go      state, and what other modules may do with it
//	msg_server.go  transactions: check, then call the keeper
//	query.go       read-only services
//	genesis.go     default, check, import, export; the invariant
//	errors.go      registered errors; wrap them with cosmossdk.io/errors, through
//	               which alone a client learns the code
//	needs.go       the interfaces it needs of other modules
//	module.go      the files above, put together
//
// Embed [Base] first. [GenesisOf] joins the functions of genesis; [Emit] adds an event.
//
// Parameters are Rules, which the authority of genesis may replace.
//
// Time is protocol time, in milliseconds: see [Now]. Random
// draws follow from beacon.Keeper.Value. A block in which nothing happens must
// write nothing.
package module

import (
	"context"
	"encoding/json"
	"fmt"

	"cosmossdk.io/collections"
	"github.com/cosmos/gogoproto/proto"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Base answers what the SDK asks of every module and ours answer alike, and
// carries the module's invariant to the app.
type Base struct {
	name      string
	invariant func(context.Context) error
}

// Named returns the base of a module. Its invariant names what is wrong, if
// anything, with the module's state after a block.
func Named(name string, invariant func(context.Context) error) Base { return Base{name, invariant} }

// Name is the module's name: its store key, its account, its codespace.
func (b Base) Name() string { return b.name }

// Invariant evaluates the module's invariant.
func (b Base) Invariant(ctx context.Context) error {
	if err := b.invariant(ctx); err != nil {
		return fmt.Errorf("invariant of %s is broken: %w", b.name, err)
	}
	return nil
}

// ConsensusVersion changes when a module's state needs a migration.
func (Base) ConsensusVersion() uint64 { return 1 }

// RegisterLegacyAminoCodec does nothing: amino JSON follows from the .proto files.
func (Base) RegisterLegacyAminoCodec(*codec.LegacyAmino) {}

// IsOnePerModuleType and IsAppModule mark a module for the SDK.
func (Base) IsOnePerModuleType() {}
func (Base) IsAppModule()        {}

// Seal ends the declaration of a keeper's collections. Two of one prefix or name
// are a programming error, so it panics.
func Seal(sb *collections.SchemaBuilder) {
	if _, err := sb.Build(); err != nil {
		panic(err)
	}
}

// Genesis imports and exports a module's state as the message G. It checks every
// state before importing it, so a later error means a broken store or a bank
// that disagrees with a ledger; the SDK has no way to return it, and it panics.
type Genesis[G any, M message[G]] struct {
	standard func() M
	check    func(M) error
	load     func(context.Context, M) error
	save     func(context.Context) (M, error)
}

type message[G any] interface {
	*G
	proto.Message
}

// GenesisOf puts a module's own genesis functions together: the default state,
// a check that needs no store, import and export.
func GenesisOf[G any, M message[G]](standard func() M, check func(M) error,
	load func(context.Context, M) error, save func(context.Context) (M, error),
) Genesis[G, M] {
	return Genesis[G, M]{standard, check, load, save}
}

// DefaultGenesis implements the SDK's HasGenesisBasics.
func (g Genesis[G, M]) DefaultGenesis(cdc codec.JSONCodec) json.RawMessage {
	return cdc.MustMarshalJSON(g.standard())
}

// ValidateGenesis implements the SDK's HasGenesisBasics.
func (g Genesis[G, M]) ValidateGenesis(cdc codec.JSONCodec, _ client.TxEncodingConfig, raw json.RawMessage) error {
	state := M(new(G))
	if err := cdc.UnmarshalJSON(raw, state); err != nil {
		return fmt.Errorf("read genesis: %w", err)
	}
	return g.check(state)
}

// InitGenesis implements the SDK's HasGenesis.
func (g Genesis[G, M]) InitGenesis(ctx sdk.Context, cdc codec.JSONCodec, raw json.RawMessage) {
	state := M(new(G))
	cdc.MustUnmarshalJSON(raw, state)
	if err := g.load(ctx, state); err != nil {
		panic(err)
	}
}

// ExportGenesis implements the SDK's HasGenesis.
func (g Genesis[G, M]) ExportGenesis(ctx sdk.Context, cdc codec.JSONCodec) json.RawMessage {
	state, err := g.save(ctx)
	if err != nil {
		panic(err)
	}
	return cdc.MustMarshalJSON(state)
}
