package blobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

// MaxWhole bounds a file that a role holds in memory, in bytes: all but records that are read in parts.
const MaxWhole = 4 << 30

// Fetch fetches a file of a lease, unless it is here for that lease, and keeps it while the
// lease is kept. What is here for another lease alone is fetched again: an order may name
// what others than its consumer have. It asks the given accounts in turn, and the consumer last.
func (x *Exchange) Fetch(ctx context.Context, l *job.Lease, f job.File, from ...string) (store.Ref, error) {
	return x.fetch(ctx, l, wanted{Pin(l.Order.ID()), f, store.Part{}}, whom{from: from, consumer: true})
}

// wanted is a file, or a part of it, under the pin that shall keep it.
type wanted struct {
	pin  string
	file job.File
	part store.Part
}

// fetch is Fetch of what is wanted, from given places alone.
func (x *Exchange) fetch(ctx context.Context, l *job.Lease, w wanted, from whom) (store.Ref, error) {
	f := w.file
	ref, err := RefOf(f)
	if err != nil {
		return ref, &FetchError{f.Role, err}
	}
	if ref.Size > MaxWhole && f.Role != job.RoleData && f.Role != job.RoleHeldOut {
		return ref, fmt.Errorf("file %q has %d bytes, limit %d", f.Role, ref.Size, int64(MaxWhole))
	}
	if have, quota := x.Store.Pinned(w.pin, ref), l.Quota(); uint64(ref.Size) > quota-min(quota, uint64(have)) {
		return ref, fmt.Errorf("file %q of %d bytes beside %d that are kept for the order: more than its quota of %d", f.Role, ref.Size, have, quota)
	}
	if x.Store.Holds(w.pin, ref, w.part) {
		return ref, nil
	}
	q := x.request(ctx, l, ref, w.pin, from)
	q.Part = w.part
	err = x.Store.Fetch(ctx, q)
	switch {
	case err == nil:
		return ref, nil
	case ours(err):
		return ref, fmt.Errorf("keep %s: %w", f.Role, err)
	}
	return ref, &FetchError{f.Role, err}
}

// ours reports whether a fetch failed by this machine's store, and not by who was asked.
func ours(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	return errors.Is(err, store.ErrQuota) || errors.As(err, &path) || errors.As(err, &link)
}

// probing bounds how long a peer may take for one block.
const probing = 5 * time.Second

// Probe returns an error unless a peer hands over the first block of a file of an order.
func (x *Exchange) Probe(ctx context.Context, order canon.Hash, account string, f job.File) error {
	ref, err := RefOf(f)
	if err != nil {
		return err
	}
	id, err := x.Peers.Reach(ctx, account)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probing)
	defer cancel()
	if _, err = x.Host.Source(id).For(order).Block(ctx, ref.CID); err != nil {
		return &FetchError{f.Role, err}
	}
	return nil
}

// FetchError says that bytes could not be had, as opposed to being wrong.
type FetchError struct {
	Role string
	Err  error
}

func (e *FetchError) Error() string { return fmt.Sprintf("fetch %s: %v", e.Role, e.Err) }

func (e *FetchError) Unwrap() error { return e.Err }

// Read fetches a file and returns its bytes.
func (x *Exchange) Read(ctx context.Context, l *job.Lease, f job.File, from ...string) ([]byte, error) {
	ref, err := x.Fetch(ctx, l, f, from...)
	if err != nil {
		return nil, err
	}
	return x.Store.GetBytes(ref, MaxWhole)
}

// Open fetches a file and returns what reads it.
func (x *Exchange) Open(ctx context.Context, l *job.Lease, f job.File, from ...string) (io.Reader, error) {
	ref, err := x.Fetch(ctx, l, f, from...)
	if err != nil {
		return nil, err
	}
	return x.Store.Get(ref)
}

// FetchFile fetches a file of the order, as Fetch does. A provider takes it from custodians,
// and from others who may have it once a quorum of custodians has said that it has: if others
// could not have it too, nobody would attest to what is computed. Who is to hold it itself takes it
// from the consumer, whatever else it does.
func (x *Exchange) FetchFile(ctx context.Context, l *job.Lease, f job.File) (store.Ref, error) {
	return x.FetchPart(ctx, l, f, store.Part{})
}

// FetchPart is FetchFile of some bytes of the file.
func (x *Exchange) FetchPart(ctx context.Context, l *job.Lease, f job.File, part store.Part) (store.Ref, error) {
	from := whom{from: Holders(l), consumer: true, spare: Others(l)}
	provides := slices.ContainsFunc(l.Providers, func(p job.Party) bool { return p.Account == x.Me })
	holds := l.Lead() == x.Me || slices.ContainsFunc(l.Files.Custodians, func(k job.FileCustodian) bool { return k.Account == x.Me })
	if provides && !holds {
		from = whom{from: Custodians(l), spare: Others(l)}
	}
	return x.fetch(ctx, l, wanted{Pin(l.Order.ID()), f, part}, from)
}

// FetchList fetches the list of a receipt's checkpoints from who holds them. Parties may
// read it later than they may read files: it is kept under a pin of its own.
func (x *Exchange) FetchList(ctx context.Context, l *job.Lease, r *job.Receipt) (store.Ref, error) {
	return x.fetch(ctx, l, wanted{ListPin(l.Order.ID()), r.Data, store.Part{}}, whom{from: HoldersOf(l, r)})
}

// whom to ask for a blob of a lease.
type whom struct {
	from     []string // accounts
	consumer bool     // and the consumer
	spare    []string // where these do not give it, or not in time
}

// request returns how a blob of a lease is asked for. Who cannot be reached is left out,
// and who gave wrong bytes before.
func (x *Exchange) request(ctx context.Context, l *job.Lease, ref store.Ref, pin string, a whom) store.Request {
	order := l.Order.ID()
	q := store.Request{Ref: ref, Pin: pin}
	first := x.peersOf(ctx, a.from)
	if a.consumer {
		if id, addrs, err := contact(l); err == nil {
			x.Host.SetConsumer(Pin(l.Order.ID()), p2p.Peers{id: addrs})
		}
		if id, err := x.Peers.ReachAt(l.Order.Contact.Key, l.Order.Contact.Addrs); err == nil && id != x.Host.ID() {
			first = append(first, id)
		}
	}
	spare := slices.DeleteFunc(x.peersOf(ctx, a.spare), func(id peer.ID) bool { return slices.Contains(first, id) })
	for _, id := range x.conduct.sort(order, first) {
		q.Sources = append(q.Sources, x.Host.Source(id).For(order))
	}
	for _, id := range x.conduct.sort(order, spare) {
		q.Spare = append(q.Spare, x.Host.Source(id).For(order))
	}
	q.Dropped = func(src store.Source, err error) {
		x.Log.Warn("a peer gave wrong bytes", "order", order, "peer", src.(p2p.Source).Peer(), "error", err)
		x.conduct.gave(order, src.(p2p.Source).Peer())
	}
	q.Stalled = func(src store.Source) { x.conduct.stalls(src.(p2p.Source).Peer()) }
	return q
}

// peersOf returns the peers of registered accounts, in their order, without our own.
func (x *Exchange) peersOf(ctx context.Context, accounts []string) (out []peer.ID) {
	for _, a := range accounts {
		if id, err := x.Peers.Reach(ctx, a); err == nil && id != x.Host.ID() && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
