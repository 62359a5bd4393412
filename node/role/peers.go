package role

import (
	"context"
	"fmt"
	"sync"

	"github.com/cosmos/cosmos-sdk/types/query"
	"github.com/libp2p/go-libp2p/core/peer"

	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/p2p"
)

// fresh is the number of blocks for which an entry of the registry is believed.
const fresh = 20

// peers remembers the registry for a while.
type peers struct {
	mu      sync.Mutex
	known   map[string]registered // by account
	roles   map[peer.ID]providerv1.Role
	asked   int64 // height at which the registry was listed
	seen    int   // strangers that had come by then
	listing sync.Mutex
}

type registered struct {
	peer   providerv1.Peer
	height int64
}

// Registered returns an account's entry in the registry.
func (k *Kit) Registered(ctx context.Context, account string) (providerv1.Peer, error) {
	now := k.Chain.Head().Height
	k.peers.mu.Lock()
	r, ok := k.peers.known[account]
	k.peers.mu.Unlock()
	if ok && now-r.height < fresh {
		return r.peer, nil
	}
	q, err := providerv1.NewQueryClient(k.Chain.Conn).Peer(ctx, &providerv1.QueryPeerRequest{Account: account})
	if err != nil {
		return providerv1.Peer{}, fmt.Errorf("peer %s: %w", account, err)
	}
	k.peers.mu.Lock()
	defer k.peers.mu.Unlock()
	if k.peers.known == nil {
		k.peers.known = map[string]registered{}
	}
	k.peers.known[account] = registered{q.Peer, now}
	return q.Peer, nil
}

// Reach returns the peer of a registered account, ready to be called.
func (k *Kit) Reach(ctx context.Context, account string) (peer.ID, error) {
	p, err := k.Registered(ctx, account)
	if err != nil {
		return "", err
	}
	return k.reach(p.PeerKey, p.Listing.Addrs)
}

func (k *Kit) reach(key []byte, addrs []string) (peer.ID, error) {
	id, err := p2p.PeerID(key)
	if err != nil {
		return "", err
	}
	if id == k.Host.ID() {
		return id, nil
	}
	return id, k.Host.SetAddrs(id, addrs)
}

// HasRole reports whether a peer is registered in a role. The list is asked
// for anew now and then, and when a stranger calls.
func (k *Kit) HasRole(ctx context.Context, id peer.ID, r providerv1.Role) bool {
	now := k.Chain.Head().Height
	k.peers.mu.Lock()
	known, age := k.peers.roles[id] == r, now-k.peers.asked
	k.peers.mu.Unlock()
	if !known && age > 0 || age >= fresh {
		k.meet(ctx) // however many strangers call, the chain is asked once a block
	}
	k.peers.mu.Lock()
	defer k.peers.mu.Unlock()
	return k.peers.roles[id] == r
}

// greet tells the host who is registered, now and then and when a stranger has come,
// so that whoever has just registered is not one for longer than a block.
func (k *Kit) greet(ctx context.Context, height int64) {
	k.peers.mu.Lock()
	due := k.peers.asked == 0 || height-k.peers.asked >= fresh || height > k.peers.asked && k.Host.Strangers() > k.peers.seen
	k.peers.mu.Unlock()
	if due {
		go k.meet(ctx)
	}
}

// meet lists the registry, unless that is being done.
func (k *Kit) meet(ctx context.Context) {
	if !k.peers.listing.TryLock() {
		return
	}
	defer k.peers.listing.Unlock()
	now, seen := k.Chain.Head().Height, k.Host.Strangers()
	roles, all := map[peer.ID]providerv1.Role{}, p2p.Peers{}
	q := &providerv1.QueryPeersRequest{}
	for {
		r, err := providerv1.NewQueryClient(k.Chain.Conn).Peers(ctx, q)
		if err != nil {
			k.Log.Debug("cannot list the registry", "error", err)
			return
		}
		for _, p := range r.Peers {
			id, err := p2p.PeerID(p.PeerKey)
			if err != nil {
				continue
			}
			all[id], roles[id] = p.Listing.Addrs, p.Role
		}
		if r.Pagination == nil || len(r.Pagination.NextKey) == 0 {
			break
		}
		q.Pagination = &query.PageRequest{Key: r.Pagination.NextKey}
	}
	k.Host.SetRegistered(all)
	k.peers.mu.Lock()
	defer k.peers.mu.Unlock()
	k.peers.roles, k.peers.asked, k.peers.seen = roles, now, seen
}
