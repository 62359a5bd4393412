package role

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/codec"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/store"
)

// ledger answers questions about leases as a node does.
type ledger struct {
	workv1.UnimplementedQueryServer
	ids    []canon.Hash
	leases map[canon.Hash][]byte
	height uint64   // at which all leases changed
	reads  int      // of leases
	roots  []string // that were asked for
	lists  workv1.QueryRootsResponse
	err    error
}

func (n *ledger) Live(context.Context, *workv1.QueryLiveRequest) (*workv1.QueryLiveResponse, error) {
	r := &workv1.QueryLiveResponse{}
	for _, id := range n.ids {
		r.Leases = append(r.Leases, workv1.LiveLease{Order: id.String(), Changed: n.height})
	}
	return r, n.err
}

func (n *ledger) Roots(_ context.Context, r *workv1.QueryRootsRequest) (*workv1.QueryRootsResponse, error) {
	n.roots = append(n.roots, fmt.Sprint(r.Units))
	return &n.lists, n.err
}

func (n *ledger) State(_ context.Context, r *workv1.QueryStateRequest) (*workv1.QueryStateResponse, error) {
	id, err := canon.ParseHash(r.Order)
	if err != nil {
		return nil, err
	}
	n.reads++
	return &workv1.QueryStateResponse{Lease: n.leases[id], Changed: n.height}, n.err
}

// serve lets a kit ask the ledger over a connection.
func (n *ledger) serve(t *testing.T, k *Kit) {
	t.Helper()
	enc, err := app.NewEncoding()
	if err != nil {
		t.Fatal(err)
	}
	grpcCodec := codec.NewProtoCodec(enc.Registry).GRPCCodec()
	s := grpc.NewServer(grpc.ForceServerCodec(grpcCodec))
	workv1.RegisterQueryServer(s, n)
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(at) }()
	t.Cleanup(s.Stop)
	conn, err := grpc.NewClient(at.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(grpcCodec)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	k.Chain = &client.Client{Conn: conn}
}

// A lease that cannot be read keeps no role from its other leases, is told of once,
// and nothing that is kept for it is let go of.
func TestOneBadLeaseStopsNobody(t *testing.T) {
	k := newKit(t)
	n := &ledger{leases: map[canon.Hash][]byte{}}
	for i := range 3 {
		l := &job.Lease{Phase: job.Active}
		l.Order.Nonce = uint64(i)
		id := l.Order.ID()
		n.ids = append(n.ids, id)
		n.leases[id] = canon.Marshal(l)
		if _, err := k.Store.PutBytes(Pin(id), []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	bad := n.ids[1]
	whole := n.leases[bad]
	n.leases[bad] = whole[:len(whole)-1]
	n.serve(t, k)
	var told []Event
	k.Observe = func(e Event) { told = append(told, e) }
	keep := k.NewKeep()
	for at := range int64(3) {
		live, err := k.Live(t.Context(), "me")
		if err != nil || len(live) != 2 {
			t.Fatalf("%d leases: %v", len(live), err)
		}
		if err := keep.Block(t.Context(), at*(keepFor+1), live); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != 1 || told[0].Kind != Trouble || told[0].Order != bad || !strings.Contains(told[0].Text, "canonical") {
		t.Fatalf("told: %+v", told)
	}
	if !k.Store.Has(store.RefOf([]byte{1})) {
		t.Fatal("what the bad lease may ask for is gone")
	}
	n.leases[bad] = whole
	if live, err := k.Live(t.Context(), "me"); err != nil || len(live) != 3 {
		t.Fatalf("%d leases: %v", len(live), err)
	}
	n.height++
	n.err = status.Error(codes.Unavailable, "down")
	if _, err := k.Live(t.Context(), "me"); err == nil {
		t.Fatal("no node answers, and that is no error")
	}
}

// Every role read every live lease whole in every block: a hundred cheap orders of many
// units took each role gigabytes and half a minute a block.
func TestLeaseIsReadAgainOnceItChanges(t *testing.T) {
	k := newKit(t)
	n := &ledger{leases: map[canon.Hash][]byte{}, height: 7}
	for i := range 3 {
		l := &job.Lease{Phase: job.Active}
		l.Order.Nonce = uint64(i)
		n.ids = append(n.ids, l.Order.ID())
		n.leases[l.Order.ID()] = canon.Marshal(l)
	}
	n.serve(t, k)
	live := func(leases, reads int) []Lease {
		t.Helper()
		n.reads = 0
		got, err := k.Live(t.Context(), "me")
		if err != nil || len(got) != leases || n.reads != reads {
			t.Fatalf("%d leases after %d reads, want %d after %d: %v", len(got), n.reads, leases, reads, err)
		}
		return got
	}
	first := live(3, 3)
	if again := live(3, 0); !slices.Equal(first, again) {
		t.Error("a lease that did not change is another")
	}
	n.height = 8
	if again := live(3, 3); slices.Equal(first, again) {
		t.Error("leases that changed are the same")
	}
	settled := n.ids[2]
	n.ids = n.ids[:2]
	live(2, 0)
	if _, cached := k.cache.leases[settled]; cached {
		t.Error("a lease that is settled is cached")
	}
}

// What is more than may be cached is read anew each time, and that is the largest.
func TestLargestLeasesAreNotCached(t *testing.T) {
	c := leaseCache{leases: map[canon.Hash]cachedLease{{1}: {size: maxCached / 2}, {2}: {size: maxCached/2 + 1}, {3}: {size: 10}}}
	c.evict()
	_, largest := c.leases[canon.Hash{2}]
	if len(c.leases) != 2 || largest {
		t.Errorf("cached are %v", c.leases)
	}
}

// A lease is read with the last checkpoint of each receipt; a task has the others when it
// needs them, and nothing of a unit that was done again meanwhile.
func TestFillBringsRoots(t *testing.T) {
	k := newKit(t)
	roots := []canon.Hash{{1}, {2}, {3}}
	l := &job.Lease{Units: make([]job.Unit, 2), Merges: make([]job.Merge, 1)}
	l.Order.Problem.Rounds, l.Order.Problem.Shards, l.Order.Problem.Steps, l.Order.Problem.Interval = 1, 2, 2, 1
	l.Units[0].Receipt = &job.Receipt{Checkpoints: []canon.Hash{{1}, {2}, {4}}}
	l.Units[1].Receipt = &job.Receipt{Unit: 1, Attempt: 3, Checkpoints: roots[2:]}
	l.Merges[0].Root = canon.Hash{9}
	answer := func(attempt int, all ...canon.Hash) workv1.QueryRootsResponse {
		r := workv1.Roots{Attempt: uint32(attempt)}
		for _, h := range all {
			r.Roots = append(r.Roots, h[:]...)
		}
		return workv1.QueryRootsResponse{Checkpoints: []workv1.Roots{r}}
	}
	n := &ledger{}
	n.serve(t, k)
	n.lists = answer(3, roots...)
	whole := job.Part{Units: []int{0, 1}, Merges: []int{0}}
	filled, err := k.Fill(t.Context(), l, whole)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(filled.Units[1].Receipt.Checkpoints, roots) || !slices.Equal(filled.Merges[0].Inputs, []canon.Hash{{4}, {3}}) {
		t.Errorf("filled with %v and %v", filled.Units[1].Receipt.Checkpoints, filled.Merges[0].Inputs)
	}
	if len(l.Units[1].Receipt.Checkpoints) != 1 || l.Merges[0].Inputs != nil {
		t.Error("what others read was changed")
	}
	if _, err := k.Fill(t.Context(), filled, whole); err != nil || !slices.Equal(n.roots, []string{"[1]"}) {
		t.Errorf("asked for %q: %v", n.roots, err)
	}
	for name, r := range map[string]workv1.QueryRootsResponse{
		"nothing":         {},
		"no receipt":      answer(4),
		"another attempt": answer(4, canon.Hash{1}, canon.Hash{7}, canon.Hash{3}), // with the same end
		"another unit":    answer(3, canon.Hash{1}, canon.Hash{2}, canon.Hash{4}),
		"too few":         answer(3, roots[1:]...),
	} {
		n.lists = r
		if _, err := k.Fill(t.Context(), l, whole); err == nil {
			t.Errorf("%s: taken for the unit's checkpoints", name)
		}
	}
}
