// Package role is what every role of the network gets to do its part: an [Env], made by
// [New] from a connection to a chain, an account, a peer, a store and something that
// computes. Its rooms are packages of their own:
//
//	Leases  leases as the chain has them      node/leases
//	Peers   who is registered, and where      node/peers
//	Blobs   files of orders: fetch and serve  node/blobs
//	Jobs    orders that are loaded to compute node/jobs
//	States  states by their roots             node/states
//	Notes   what saves work after a restart   node/notes
//	Seals   what opens sealed bids            node/seals
//
// Invariant: roles are reconcilers. On every block ([Env.EachBlock]) a role asks the chain how its
// leases stand, compares with what it has done, and does what is missing, in tasks
// ([Env.NewTasks]). So it can be killed at any moment, and a restart needs no memory
// beyond chain and store.
package role

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"slices"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/jobs"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/node/notes"
	"github.com/tally-network/tally/node/peers"
	"github.com/tally-network/tally/node/seals"
	"github.com/tally-network/tally/node/states"
	"github.com/tally-network/tally/node/tasks"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

// Parts are what an Env is made of. Who only asks the chain needs Chain alone.
type Parts struct {
	Name        string // for people: "provider-2"
	Dir         string // where the role keeps notes of its own
	Seals       seals.Dir
	Chain       *client.Client
	Account     *client.Account
	Host        *p2p.Host
	Keys        Keys
	Store       *store.Store
	Exec        engine.Executor
	Threads     int // that compute and hash
	Log         *slog.Logger
	Checkpoints states.Policy      // of accepted units; empty: states.KeepAll
	KeepEnded   time.Duration      // of protocol time, for blobs of ended orders; 0: states.KeepEnded
	Observe     func(events.Event) // sees what happens; must return quickly; may be nil
}

// Keys are the keys that a role signs with beside its account's.
type Keys struct {
	Peer    []byte               // ed25519 private key, registered on chain
	VRF     []byte               // ed25519 private key for draws; validators and providers only
	Provers []ed25519.PrivateKey // with which a validator may prove the beacon's values, and its seats
}

// Env is what a role works with. Make one with New.
type Env struct {
	*events.Recorder
	Chain   *client.Client
	Account *client.Account
	Host    *p2p.Host
	Keys    Keys
	Store   *store.Store

	Leases *leases.Follower
	Peers  *peers.Directory
	Blobs  *blobs.Exchange
	Jobs   *jobs.Cache
	States *states.Holder
	Notes  notes.Dir
	Seals  seals.Dir
}

// New puts an Env together.
func New(p Parts) *Env {
	e := &Env{
		Recorder: &events.Recorder{Name: p.Name, Log: p.Log, Observe: p.Observe},
		Chain:    p.Chain, Account: p.Account, Host: p.Host, Keys: p.Keys, Store: p.Store, Notes: notes.Dir(p.Dir), Seals: p.Seals,
	}
	if p.Host != nil {
		p.Host.ServeLinks()
	}
	me := ""
	if p.Account != nil {
		me = p.Account.Address
	}
	e.Leases = &leases.Follower{Chain: p.Chain, Recorder: e.Recorder}
	e.Peers = &peers.Directory{Chain: p.Chain, Host: p.Host, Log: p.Log}
	e.Blobs = &blobs.Exchange{Me: me, Store: p.Store, Host: p.Host, Peers: e.Peers, Log: p.Log}
	e.Jobs = &jobs.Cache{Exec: p.Exec, Blobs: e.Blobs}
	e.States = &states.Holder{
		Me: me, Threads: p.Threads, Accepted: p.Checkpoints, Ended: p.KeepEnded.Milliseconds(),
		Store: p.Store, Leases: e.Leases, Blobs: e.Blobs, Jobs: e.Jobs, Notes: e.Notes, Log: p.Log,
	}
	return e
}

// EachBlock calls do once for the newest block and again for every newer one,
// until ctx is done. Errors of do are reported and tried again at the next
// block. Blocks that pass while do works are skipped.
func (e *Env) EachBlock(ctx context.Context, do func(ctx context.Context, b client.Block) error) error {
	height := int64(0)
	for {
		b, err := e.Chain.Next(ctx, height)
		if err != nil {
			return ctx.Err()
		}
		height = b.Height
		e.Peers.Greet(ctx, height)
		if err := do(ctx, b); err != nil && ctx.Err() == nil {
			e.Log.Warn("will be tried again", "height", height, "error", err)
			e.Emit(events.Event{Kind: events.Trouble, Unit: -1, Text: err.Error()})
		}
	}
}

// Live returns the leases that concern this account: those in which it has a part and, of its
// validator's, those whose units it may compute.
func (e *Env) Live(ctx context.Context) ([]leases.Lease, error) {
	me := e.Account.Address
	out, err := e.Leases.Live(ctx, me)
	if err != nil {
		return nil, err
	}
	p, err := e.Peers.Registered(ctx, me)
	if err != nil || p.Listing.Validator == "" {
		return out, err
	}
	has := map[canon.Hash]bool{}
	for _, l := range out {
		has[l.Order.ID()] = true
	}
	led, err := e.Leases.Live(ctx, p.Listing.Validator)
	for _, l := range led {
		if offered(l.Lease, me) && !has[l.Order.ID()] {
			out = append(out, l)
		}
	}
	return out, err
}

// offered reports whether a lead may offer an account units of a lease. Places of replicas are drawn.
func offered(l *job.Lease, account string) bool {
	return l.Order.Conditions.Replicas == 0 && slices.ContainsFunc(l.Providers, func(p job.Party) bool { return p.Account == account })
}

// ServeOrders hands over the files of live orders that the account has posted itself, and what they gave to their parties alone.
func (e *Env) ServeOrders(ctx context.Context) error {
	live, err := e.Leases.Live(ctx, e.Account.Address)
	for _, l := range live {
		if l.Order.Consumer == e.Account.Address {
			e.Blobs.Serve(l)
		}
	}
	return err
}

// NewTasks returns an empty set of tasks, of which so many run at once; 0 stands for no
// limit.
func (e *Env) NewTasks(limit int) *tasks.Set { return tasks.New(e.Recorder, limit) }

// Send sends msgs from the role's account and waits until a block has them. It gives up
// the task's slot first, since waiting takes neither memory nor processors. So nothing
// costly may follow it in a task.
func (e *Env) Send(ctx context.Context, msgs ...sdk.Msg) error {
	tasks.ReleaseSlot(ctx)
	_, err := e.Account.Send(ctx, msgs...)
	return err
}

// NewPruner returns what lets go of leases that have ended, and of checkpoints that are
// not kept.
func (e *Env) NewPruner() *states.Pruner { return states.NewPruner(e.States, e.Forget) }

// Forget lets go of a lease: its job in memory, its notes and its blobs.
func (e *Env) Forget(order canon.Hash) error {
	e.Jobs.Forget(order)
	e.Blobs.StopServing(order)
	if err := e.Notes.Forget(order); err != nil {
		return err
	}
	return e.Blobs.Forget(order)
}
