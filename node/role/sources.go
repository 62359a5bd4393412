package role

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

// conduct is what a role remembers of the peers that it asked for blobs.
type conduct struct {
	mu      sync.Mutex
	wrong   map[canon.Hash]map[peer.ID]bool // by order: gave wrong bytes; not asked again for it
	stalled map[peer.ID]time.Time           // when it last did not answer in time; asked last for a while
}

// grudge is how long a peer that has stalled is asked after the others.
const grudge = time.Minute

// gave notes that a peer gave wrong bytes for an order.
func (c *conduct) gave(order canon.Hash, id peer.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrong == nil {
		c.wrong = map[canon.Hash]map[peer.ID]bool{}
	}
	if c.wrong[order] == nil {
		c.wrong[order] = map[peer.ID]bool{}
	}
	c.wrong[order][id] = true
}

// stalls notes that a peer did not answer in time.
func (c *conduct) stalls(id peer.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stalled == nil {
		c.stalled = map[peer.ID]time.Time{}
	}
	now := time.Now()
	c.stalled[id] = now
	for other, at := range c.stalled { // order: each by itself
		if now.Sub(at) > grudge {
			delete(c.stalled, other)
		}
	}
}

// sort leaves out who gave wrong bytes for an order, and puts who has stalled last.
func (c *conduct) sort(order canon.Hash, ids []peer.ID) []peer.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids = slices.DeleteFunc(ids, func(id peer.ID) bool { return c.wrong[order][id] })
	late := func(id peer.ID) int {
		if at, ok := c.stalled[id]; ok && time.Since(at) <= grudge {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(ids, func(a, b peer.ID) int { return late(a) - late(b) })
	return ids
}

// forget lets go of what is remembered about an order.
func (c *conduct) forget(order canon.Hash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.wrong, order)
}

// whom to ask for a blob of a lease.
type whom struct {
	from     []string // accounts
	consumer bool     // and the consumer
	spare    []string // where these do not give it, or not in time
}

// request returns how a blob of a lease is asked for. Who cannot be reached is left out,
// and who gave wrong bytes before.
func (k *Kit) request(ctx context.Context, l *job.Lease, ref store.Ref, pin string, a whom) store.Request {
	order := l.Order.ID()
	q := store.Request{Ref: ref, Pin: pin}
	first := k.peersOf(ctx, a.from)
	if a.consumer {
		if id, addrs, err := contact(l); err == nil {
			k.Host.SetConsumer(Pin(l.Order.ID()), p2p.Peers{id: addrs})
		}
		if id, err := k.reach(l.Order.Contact.Key, l.Order.Contact.Addrs); err == nil && id != k.Host.ID() {
			first = append(first, id)
		}
	}
	spare := slices.DeleteFunc(k.peersOf(ctx, a.spare), func(id peer.ID) bool { return slices.Contains(first, id) })
	for _, id := range k.conduct.sort(order, first) {
		q.Sources = append(q.Sources, k.Host.Source(id).For(order))
	}
	for _, id := range k.conduct.sort(order, spare) {
		q.Spare = append(q.Spare, k.Host.Source(id).For(order))
	}
	q.Dropped = func(src store.Source, err error) {
		k.Log.Warn("a peer gave wrong bytes", "order", order, "peer", src.(p2p.Source).Peer(), "error", err)
		k.conduct.gave(order, src.(p2p.Source).Peer())
	}
	q.Stalled = func(src store.Source) { k.conduct.stalls(src.(p2p.Source).Peer()) }
	return q
}

// peersOf returns the peers of registered accounts, in their order, without our own.
func (k *Kit) peersOf(ctx context.Context, accounts []string) (out []peer.ID) {
	for _, a := range accounts {
		if id, err := k.Reach(ctx, a); err == nil && id != k.Host.ID() && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// maxSpare bounds who is asked for an order's files beside their custodians.
const maxSpare = 16

// Others returns who may have the order's files beside their custodians: the lead, who had
// them first, and whoever was drawn for a unit or has one. It is nobody until a quorum of
// custodians has said that the files can be had: what others then give, custodians have seen.
func Others(l *job.Lease) (out []string) {
	if l.Files.Said != job.Had {
		return nil
	}
	add := func(account string) {
		if account != "" && len(out) < maxSpare && !slices.Contains(out, account) {
			out = append(out, account)
		}
	}
	add(l.Lead())
	for i := range l.Units {
		u := &l.Units[i]
		for _, a := range u.Audits {
			add(a.Auditor)
		}
		for _, a := range u.Attested {
			add(a.Custodian)
		}
	}
	for _, p := range l.Providers {
		add(p.Account)
	}
	return out
}
