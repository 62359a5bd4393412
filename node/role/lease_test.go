package role

import (
	"context"
	"net"
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
	err    error
}

func (n *ledger) Leases(context.Context, *workv1.QueryLeasesRequest) (*workv1.QueryLeasesResponse, error) {
	r := &workv1.QueryLeasesResponse{}
	for _, id := range n.ids {
		r.Leases = append(r.Leases, workv1.Lease{Id: id.String()})
	}
	return r, nil
}

func (n *ledger) State(_ context.Context, r *workv1.QueryStateRequest) (*workv1.QueryStateResponse, error) {
	id, err := canon.ParseHash(r.Order)
	if err != nil {
		return nil, err
	}
	return &workv1.QueryStateResponse{Lease: n.leases[id]}, n.err
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
		if err := keep.Block(at*(keepFor+1), live); err != nil {
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
	n.err = status.Error(codes.Unavailable, "down")
	if _, err := k.Live(t.Context(), "me"); err == nil {
		t.Fatal("no node answers, and that is no error")
	}
}
