package blobs

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/p2p"
)

// lookup bounds the time for which somebody waits while the chain is asked who a
// peer is.
const lookup = 2 * time.Second

// readers knows who may read which lease's blobs.
type readers struct {
	mu     sync.Mutex
	served map[string]served // by pin
	leases map[string]p2p.Peers
	lists  map[string]map[cid.Cid]audience // by pin of the lists
}

// audience are the peers of a lease that may read a list of checkpoints.
type audience struct {
	everybody bool
	drawn     map[peer.ID]bool // if not
}

// served is what Serve last announced of a lease. It is announced again when the lease
// changes, or its first lead's key.
type served struct {
	changed uint64 // height
	key     string
}

// listReaders returns who may read the list of each receipt's checkpoints: those who were
// drawn to keep and audit them, and everybody else of the lease once a quorum of custodians
// has attested. So nobody has the result of a unit that will not be paid for.
func listReaders(l *job.Lease) map[cid.Cid]audience {
	out := map[cid.Cid]audience{}
	ids := map[string]peer.ID{}
	for _, p := range l.Auditors {
		if id, err := p2p.PeerID(p.Key); err == nil {
			ids[p.Account] = id
		}
	}
	add := func(r *job.Receipt, drawn map[peer.ID]bool) {
		ref, err := RefOf(r.Data)
		if err != nil {
			return
		}
		a := out[ref.CID] // another unit may have the same list
		if drawn == nil {
			a.everybody = true
		} else if a.drawn == nil {
			a.drawn = drawn
		} else {
			maps.Copy(a.drawn, drawn)
		}
		out[ref.CID] = a
	}
	for i := range l.Units {
		u := &l.Units[i]
		switch {
		case u.Receipt == nil:
		case u.Status == job.Received:
			drawn := map[peer.ID]bool{}
			for _, a := range u.Attested {
				drawn[ids[a.Custodian]] = true
			}
			for _, a := range u.Audits {
				drawn[ids[a.Auditor]] = true
			}
			add(u.Receipt, drawn)
		default:
			add(u.Receipt, nil)
		}
	}
	for _, v := range l.Verdicts() { // these counted once
		add(v.Receipt, nil)
	}
	for _, f := range l.Forced() {
		add(f.Unit.Receipt, nil)
	}
	return out
}

// Serve lets the parties of a lease, and registered challengers, fetch its blobs
// from here. The parties go before all others from then on.
func (x *Exchange) Serve(l leases.Lease) {
	pin := Pin(l.Order.ID())
	// The first lead is the only leader who is not among the auditors' pool.
	ctx, cancel := context.WithTimeout(context.Background(), lookup)
	defer cancel()
	lead, err := x.Peers.Registered(ctx, l.Leads[0].Account)
	now := served{l.Changed, string(lead.PeerKey)}
	x.readers.mu.Lock()
	same := err == nil && l.Changed != 0 && x.readers.served[pin] == now
	x.readers.mu.Unlock()
	if same {
		return
	}
	ids := p2p.Peers{}
	add := func(key []byte, addrs ...string) {
		if id, err := p2p.PeerID(key); err == nil {
			ids[id] = addrs
		}
	}
	for _, parties := range [][]job.Party{l.Providers, l.Auditors} {
		for _, p := range parties {
			add(p.Key)
		}
	}
	if err == nil {
		add(lead.PeerKey)
	}
	x.Host.SetParties(pin, maps.Clone(ids))
	if id, addrs, err := contact(l.Lease); err == nil {
		x.Host.SetConsumer(pin, p2p.Peers{id: addrs})
		ids[id] = addrs // it may read what they may
	}
	lists := listReaders(l.Lease)
	x.readers.mu.Lock()
	defer x.readers.mu.Unlock()
	if x.readers.leases == nil {
		x.readers.served = map[string]served{}
		x.readers.leases, x.readers.lists = map[string]p2p.Peers{}, map[string]map[cid.Cid]audience{}
		x.Host.ServeBlocks(x.Store, x.mayRead)
	}
	x.readers.leases[pin] = ids
	x.readers.lists[ListPin(l.Order.ID())] = lists
	if err == nil { // else it is tried again in the next block
		x.readers.served[pin] = now
	}
}

// contact returns the consumer's peer.
func contact(l *job.Lease) (peer.ID, []string, error) {
	id, err := p2p.PeerID(l.Order.Contact.Key)
	return id, l.Order.Contact.Addrs, err
}

// mayRead reports whether a peer may have a block for the sake of an order. What is here
// for another order only is none of this one's, even if the peer is a party of both: it
// would hand it to those of this one.
func (x *Exchange) mayRead(who peer.ID, order canon.Hash, block cid.Cid) bool {
	pins := x.Store.PinnedBy(block)
	x.readers.mu.Lock()
	may, public := x.readers.may(who, order, block, pins)
	x.readers.mu.Unlock()
	if may || !public {
		return may
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookup)
	defer cancel()
	return x.Peers.HasRole(ctx, who, providerv1.ROLE_CHALLENGER)
}

// may reports whether a peer may read a block as a party of an order, or as one that was
// drawn; and whether every party may, and so challengers.
func (r *readers) may(who peer.ID, order canon.Hash, block cid.Cid, pins []string) (may, public bool) {
	parties, served := r.leases[Pin(order)]
	_, party := parties[who]
	if served && slices.Contains(pins, Pin(order)) {
		return party, true
	}
	if !slices.Contains(pins, ListPin(order)) {
		return false, false
	}
	list := r.lists[ListPin(order)][block]
	return party && (list.everybody || list.drawn[who]), list.everybody
}

// StopServing lets nobody fetch the blobs of a lease any more.
func (x *Exchange) StopServing(order canon.Hash) {
	x.readers.mu.Lock()
	_, served := x.readers.leases[Pin(order)]
	delete(x.readers.leases, Pin(order))
	delete(x.readers.served, Pin(order))
	delete(x.readers.lists, ListPin(order))
	x.readers.mu.Unlock()
	if served {
		x.Host.SetParties(Pin(order), nil)
	}
	if x.Host != nil { // its consumer is known before anything is served
		x.Host.SetConsumer(Pin(order), nil)
	}
}
