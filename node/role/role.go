// Package role holds what every role of the network needs to do its part: a
// connection to a chain, an account, a peer, a store and something that
// computes.
//
// Leases are read once they have changed, and brief: of standing receipts with the last
// checkpoint alone, of merges without inputs. Kit.Fill adds those that a task needs. What
// was read is shared: nobody changes it (docs/adr/0026-leases-read-brief.md).
//
// Roles are reconcilers. On every block a role asks the chain how its leases
// stand, compares with what it has done, and does what is missing; so it can be
// killed at any moment, and a restart needs no memory beyond chain and store.
package role

import (
	"context"
	"log/slog"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

// Kit is what a role works with. Make one with New.
type Kit struct {
	Name        string // for people: "provider-2"
	Dir         string // where the role keeps notes of its own
	Chain       *client.Client
	Account     *client.Account
	Host        *p2p.Host
	Keys        Keys
	Store       *store.Store
	Exec        engine.Executor
	Threads     int // that compute and hash
	Log         *slog.Logger
	Checkpoints Policy      // of accepted units; empty: KeepAll
	Observe     func(Event) // sees what happens; must return quickly; may be nil

	works   works
	readers readers
	peers   peers
	conduct conduct
	unread  unread
	cache   leaseCache
}

// Keys are the keys that a role signs with beside its account's.
type Keys struct {
	Peer []byte // ed25519 private key, registered on chain
	VRF  []byte // ed25519 private key for draws; validators and providers only
}

// Event is something that a person watching would like to know.
type Event struct {
	Role  string // Kit.Name
	Kind  Kind
	Order canon.Hash
	Unit  int     // −1 if it is about the order
	Step  int     // local steps done, or the move of a dispute
	Loss  float32 // nats; of Trained
	Rate  float64 // steps a second; of Trained
	Text  string  // in words
}

// Kind says what an event is about.
type Kind string

// The kinds of event.
const (
	Trained   Kind = "trained"   // a provider did a step
	Posted    Kind = "posted"    // a receipt or merge is on chain
	Ready     Kind = "ready"     // a provider has asked for a unit
	Revealed  Kind = "revealed"  // a provider has shown whether an attempt was forced
	Audited   Kind = "audited"   // an auditor answered
	Attested  Kind = "attested"  // a custodian attested
	Asked     Kind = "asked"     // a custodian was asked on chain to show what it keeps
	Answered  Kind = "answered"  // it did
	Exposed   Kind = "exposed"   // a custodian was shown to keep a wrong fragment
	Replayed  Kind = "replayed"  // a challenger re-executed a unit or merge
	Narrowed  Kind = "narrowed"  // a move of a dispute was made
	Found     Kind = "found"     // wrong work was found
	Delivered Kind = "delivered" // files have arrived
	Trouble   Kind = "trouble"   // something failed and will be tried again
)

// Emit tells the observer, if there is one.
func (k *Kit) Emit(e Event) {
	e.Role = k.Name
	if k.Observe != nil {
		k.Observe(e)
	}
}

// EachBlock calls do once for the newest block and again for every newer one,
// until ctx is done. Errors of do are reported and tried again at the next
// block. Blocks that pass while do works are skipped.
func (k *Kit) EachBlock(ctx context.Context, do func(ctx context.Context, b client.Block) error) error {
	height := int64(0)
	for {
		b, err := k.Chain.Next(ctx, height)
		if err != nil {
			return ctx.Err()
		}
		height = b.Height
		k.greet(ctx, height)
		if err := do(ctx, b); err != nil && ctx.Err() == nil {
			k.Log.Warn("will be tried again", "height", height, "error", err)
			k.Emit(Event{Kind: Trouble, Unit: -1, Text: err.Error()})
		}
	}
}
