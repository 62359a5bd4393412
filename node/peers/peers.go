// Package peers knows who is registered on chain, in which role, and how to reach them.
//
// Make a [Directory] and call [Directory.Greet] on every block: it tells the host who is
// registered. [Directory.Reach] gives the peer of an account, ready to be called.
//
// Invariants: what the directory says is at most 20 blocks old, unless the chain does not
// answer. However many strangers call, the registry is listed at most once a block.
//
// Source: chain/x/provider has the registry.
package peers

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/cosmos/cosmos-sdk/types/query"
	"github.com/libp2p/go-libp2p/core/peer"

	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/p2p"
)

// fresh is the number of blocks for which an entry of the registry is believed.
const fresh = 20

// Directory remembers the registry for a while.
type Directory struct {
	Chain *client.Client
	Host  *p2p.Host
	Log   *slog.Logger

	mu      sync.Mutex
	known   map[string]registered // by account
	roles   map[peer.ID][]providerv1.Role
	asked   int64 // height at which the registry was listed
	seen    int   // strangers that had come by then
	listing sync.Mutex
}

type registered struct {
	peer   providerv1.Peer
	height int64
}

// Registered returns an account's entry in the registry.
func (d *Directory) Registered(ctx context.Context, account string) (providerv1.Peer, error) {
	now := d.Chain.Head().Height
	d.mu.Lock()
	r, ok := d.known[account]
	d.mu.Unlock()
	if ok && now-r.height < fresh {
		return r.peer, nil
	}
	q, err := providerv1.NewQueryClient(d.Chain.Conn).Peer(ctx, &providerv1.QueryPeerRequest{Account: account})
	if err != nil {
		return providerv1.Peer{}, fmt.Errorf("peer %s: %w", account, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[string]registered{}
	}
	d.known[account] = registered{q.Peer, now}
	return q.Peer, nil
}

// Reach returns the peer of a registered account, ready to be called.
func (d *Directory) Reach(ctx context.Context, account string) (peer.ID, error) {
	p, err := d.Registered(ctx, account)
	if err != nil {
		return "", err
	}
	return d.ReachAt(p.PeerKey, p.Listing.Addrs)
}

// ReachAt returns the peer of a key, ready to be called at the given addresses.
func (d *Directory) ReachAt(key []byte, addrs []string) (peer.ID, error) {
	id, err := p2p.PeerID(key)
	if err != nil {
		return "", err
	}
	if id == d.Host.ID() {
		return id, nil
	}
	return id, d.Host.SetAddrs(id, addrs)
}

// HasRole reports whether a peer is registered in a role. The list is asked
// for anew now and then, and when a stranger calls.
func (d *Directory) HasRole(ctx context.Context, id peer.ID, r providerv1.Role) bool {
	now := d.Chain.Head().Height
	d.mu.Lock()
	known, age := slices.Contains(d.roles[id], r), now-d.asked
	d.mu.Unlock()
	if !known && age > 0 || age >= fresh {
		d.meet(ctx) // however many strangers call, the chain is asked once a block
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.roles[id], r)
}

// Greet tells the host who is registered, now and then and when a stranger has come. So whoever
// has just registered is no stranger for longer than a block.
func (d *Directory) Greet(ctx context.Context, height int64) {
	if d.Host == nil {
		return // who only asks the chain meets nobody
	}
	d.mu.Lock()
	due := d.asked == 0 || height-d.asked >= fresh || height > d.asked && d.Host.Strangers() > d.seen
	d.mu.Unlock()
	if due {
		go d.meet(ctx)
	}
}

// meet lists the registry, unless that is being done.
func (d *Directory) meet(ctx context.Context) {
	if !d.listing.TryLock() {
		return
	}
	defer d.listing.Unlock()
	now, seen := d.Chain.Head().Height, d.Host.Strangers()
	roles, all := map[peer.ID][]providerv1.Role{}, p2p.Peers{}
	q := &providerv1.QueryPeersRequest{}
	for {
		r, err := providerv1.NewQueryClient(d.Chain.Conn).Peers(ctx, q)
		if err != nil {
			d.Log.Debug("cannot list the registry", "error", err)
			return
		}
		for _, p := range r.Peers {
			id, err := p2p.PeerID(p.PeerKey)
			if err != nil {
				continue
			}
			all[id], roles[id] = p.Listing.Addrs, p.Roles
		}
		if r.Pagination == nil || len(r.Pagination.NextKey) == 0 {
			break
		}
		q.Pagination = &query.PageRequest{Key: r.Pagination.NextKey}
	}
	d.Host.SetRegistered(all)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.roles, d.asked, d.seen = roles, now, seen
}
