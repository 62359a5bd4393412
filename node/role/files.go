package role

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

// Pin returns the name under which a lease's blobs are kept.
func Pin(order canon.Hash) string { return pinPrefix + order.String() }

const pinPrefix = "lease-"

// File returns how a blob is written in an order or a receipt.
func File(role string, r store.Ref) job.File {
	return job.File{Role: role, CID: r.CID.String(), Size: uint64(r.Size)}
}

// RefOf returns the blob that a file names.
func RefOf(f job.File) (store.Ref, error) {
	c, err := cid.Decode(f.CID)
	if err != nil {
		return store.Ref{}, fmt.Errorf("file %q: CID %q: %w", f.Role, f.CID, err)
	}
	if f.Size > math.MaxInt64 {
		return store.Ref{}, fmt.Errorf("file %q has %d bytes", f.Role, f.Size)
	}
	return store.Ref{CID: c, Size: int64(f.Size)}, nil
}

// lookup bounds the time for which somebody waits while the chain is asked who a
// peer is.
const lookup = 2 * time.Second

// ListPin returns the name under which the lists of an order's checkpoints are kept. Who
// may read a list follows from its receipt; without it nobody knows what to ask for.
func ListPin(order canon.Hash) string { return "lists-" + order.String() }

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
func (k *Kit) Serve(l Lease) {
	pin := Pin(l.Order.ID())
	// The first lead is the only leader who is not among the auditors' pool.
	ctx, cancel := context.WithTimeout(context.Background(), lookup)
	defer cancel()
	lead, err := k.Registered(ctx, l.Leads[0].Account)
	now := served{l.Changed, string(lead.PeerKey)}
	k.readers.mu.Lock()
	same := err == nil && l.Changed != 0 && k.readers.served[pin] == now
	k.readers.mu.Unlock()
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
	k.Host.SetParties(pin, maps.Clone(ids))
	if id, addrs, err := contact(l.Lease); err == nil {
		k.Host.SetConsumer(pin, p2p.Peers{id: addrs})
		ids[id] = addrs // it may read what they may
	}
	lists := listReaders(l.Lease)
	k.readers.mu.Lock()
	defer k.readers.mu.Unlock()
	if k.readers.leases == nil {
		k.readers.served = map[string]served{}
		k.readers.leases, k.readers.lists = map[string]p2p.Peers{}, map[string]map[cid.Cid]audience{}
		k.Host.ServeBlocks(k.Store, k.mayRead)
	}
	k.readers.leases[pin] = ids
	k.readers.lists[ListPin(l.Order.ID())] = lists
	if err == nil { // else it is tried again in the next block
		k.readers.served[pin] = now
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
func (k *Kit) mayRead(who peer.ID, order canon.Hash, block cid.Cid) bool {
	pins := k.Store.PinnedBy(block)
	k.readers.mu.Lock()
	may, public := k.readers.may(who, order, block, pins)
	k.readers.mu.Unlock()
	if may || !public {
		return may
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookup)
	defer cancel()
	return k.HasRole(ctx, who, providerv1.ROLE_CHALLENGER)
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

// maxBlob bounds a file that a role fetches.
const maxBlob = 4 << 30

// Bring fetches a file of a lease, unless it is here for that lease, and keeps it while the
// lease is kept. What is here for another lease alone is fetched again: an order may name
// what others than its consumer have. It asks the given accounts in turn, and the consumer last.
func (k *Kit) Bring(ctx context.Context, l *job.Lease, f job.File, from ...string) (store.Ref, error) {
	return k.bring(ctx, l, Pin(l.Order.ID()), f, whom{from: from, consumer: true})
}

// bring is Bring under a pin, from given places alone.
func (k *Kit) bring(ctx context.Context, l *job.Lease, pin string, f job.File, from whom) (store.Ref, error) {
	ref, err := RefOf(f)
	if err != nil {
		return ref, &FetchError{f.Role, err}
	}
	if ref.Size > maxBlob {
		return ref, fmt.Errorf("file %q has %d bytes, limit %d", f.Role, ref.Size, int64(maxBlob))
	}
	if have, quota := k.Store.Pinned(pin, ref), l.Quota(); uint64(ref.Size) > quota-min(quota, uint64(have)) {
		return ref, fmt.Errorf("file %q of %d bytes beside %d that are kept for the order: more than its quota of %d", f.Role, ref.Size, have, quota)
	}
	if k.Store.Holds(pin, ref) {
		return ref, nil
	}
	err = k.Store.Fetch(ctx, k.request(ctx, l, ref, pin, from))
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
func (k *Kit) Probe(ctx context.Context, order canon.Hash, account string, f job.File) error {
	ref, err := RefOf(f)
	if err != nil {
		return err
	}
	id, err := k.Reach(ctx, account)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probing)
	defer cancel()
	if _, err = k.Host.Source(id).For(order).Block(ctx, ref.CID); err != nil {
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

// Read brings a file and returns its bytes.
func (k *Kit) Read(ctx context.Context, l *job.Lease, f job.File, from ...string) ([]byte, error) {
	ref, err := k.Bring(ctx, l, f, from...)
	if err != nil {
		return nil, err
	}
	return k.Store.GetBytes(ref, maxBlob)
}

// HoldersOf returns who holds the checkpoints of a receipt: its provider, first, and
// the unit's custodians.
func HoldersOf(l *job.Lease, r *job.Receipt) []string {
	out := []string{r.Provider}
	attested := l.Units[r.Unit].Attested
	if f := l.Shown(r.Unit, r.Attempt); f != nil {
		attested = f.Unit.Attested
	}
	for _, a := range attested {
		if a.Stands() {
			out = append(out, a.Custodian)
		}
	}
	return out
}

// Custodians returns who has said on chain that it holds the order's files: the custodians of
// the files, and those of the units.
func Custodians(l *job.Lease) (out []string) {
	seen := map[string]bool{}
	add := func(account string) {
		if !seen[account] {
			seen[account] = true
			out = append(out, account)
		}
	}
	for _, k := range l.Files.Custodians {
		if k.Says == job.Had {
			add(k.Account)
		}
	}
	for i := range l.Units {
		for _, a := range l.Units[i].Attested {
			if a.Stands() {
				add(a.Custodian)
			}
		}
	}
	return out
}

// Holders returns the lead and the custodians of a lease's files.
func Holders(l *job.Lease) []string {
	out := Custodians(l)
	if lead := l.Lead(); lead != "" {
		out = append(out, lead)
	}
	return out
}
