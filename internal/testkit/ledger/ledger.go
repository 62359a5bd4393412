// Package ledger answers what roles ask of leases and peers, as a node does, over a real
// connection. Start one with [Start], fill its fields, and give its Client to what is
// tested. There are no blocks and no transactions: for those take worktest or nettest.
//
// Invariant: it answers what its fields say, and checks none of it.
package ledger

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/codec"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/client"
)

// Ledger is what a node would answer. A test may change it between questions.
type Ledger struct {
	Client *client.Client

	IDs    []canon.Hash              // orders whose leases live
	Parts  map[string][]canon.Hash   // those in which an account has a part; all, of an account that is not in it
	Leases map[canon.Hash][]byte     // encoded
	Height uint64                    // at which all leases changed
	Reads  int                       // of leases, so far
	Asked  []string                  // the units whose roots were asked for
	Lists  workv1.QueryRootsResponse // checkpoints that are answered with
	Keys   map[string][]byte         // of the peers of accounts
	Peers  []providerv1.Peer         // the registry beside Keys, which is listed two at a time
	Listed atomic.Int64              // how often the registry was listed, from its beginning
	Err    error                     // in place of an answer
	Forgot bool                      // it knows no more what changed since a height

	told  map[canon.Hash]bool // orders whose leases it has said to live
	Scans int                 // how often it has listed all that live
}

// Start starts a ledger that answers until the test ends.
func Start(t testing.TB) *Ledger {
	t.Helper()
	n := &Ledger{Leases: map[canon.Hash][]byte{}, Keys: map[string][]byte{}}
	enc, err := app.NewEncoding()
	if err != nil {
		t.Fatal(err)
	}
	grpcCodec := codec.NewProtoCodec(enc.Registry).GRPCCodec()
	s := grpc.NewServer(grpc.ForceServerCodec(grpcCodec))
	workv1.RegisterQueryServer(s, &work{ledger: n})
	providerv1.RegisterQueryServer(s, &registry{ledger: n})
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
	n.Client = &client.Client{Conn: conn}
	return n
}

// Put lets a lease live, as it stands.
func (n *Ledger) Put(l *job.Lease) {
	id := l.Order.ID()
	if n.Leases[id] == nil {
		n.IDs = append(n.IDs, id)
	}
	n.Leases[id] = canon.Marshal(l)
	n.Height++
}

// work answers about leases.
type work struct {
	workv1.UnimplementedQueryServer
	ledger *Ledger
}

func (w *work) Live(_ context.Context, q *workv1.QueryLiveRequest) (*workv1.QueryLiveResponse, error) {
	n := w.ledger
	r := &workv1.QueryLiveResponse{Height: n.Height}
	n.told = map[canon.Hash]bool{}
	n.Scans++
	parts, some := n.Parts[q.Participant]
	for _, id := range n.IDs {
		if some && !slices.Contains(parts, id) {
			continue
		}
		n.told[id] = true
		r.Leases = append(r.Leases, workv1.LiveLease{Order: id.String(), Changed: n.Height})
	}
	return r, n.Err
}

func (w *work) Changed(_ context.Context, q *workv1.QueryChangedRequest) (*workv1.QueryChangedResponse, error) {
	n := w.ledger
	if n.Forgot {
		return nil, status.Error(codes.OutOfRange, "it is too long ago")
	}
	r := &workv1.QueryChangedResponse{Height: n.Height}
	was := n.told
	n.told = map[canon.Hash]bool{}
	for _, id := range n.IDs {
		n.told[id] = true
		if n.Height > q.Since || !was[id] {
			r.Leases = append(r.Leases, workv1.ChangedLease{Order: id.String(), Changed: n.Height})
		}
		delete(was, id)
	}
	for id := range was { // order: each by itself
		r.Leases = append(r.Leases, workv1.ChangedLease{Order: id.String(), Changed: n.Height, Settled: true})
	}
	return r, n.Err
}

func (w *work) Roots(_ context.Context, r *workv1.QueryRootsRequest) (*workv1.QueryRootsResponse, error) {
	n := w.ledger
	n.Asked = append(n.Asked, fmt.Sprint(r.Units))
	return &n.Lists, n.Err
}

func (w *work) State(_ context.Context, r *workv1.QueryStateRequest) (*workv1.QueryStateResponse, error) {
	n := w.ledger
	id, err := canon.ParseHash(r.Order)
	if err != nil {
		return nil, err
	}
	n.Reads++
	return &workv1.QueryStateResponse{Lease: n.Leases[id], Changed: n.Height}, n.Err
}

// registry answers about peers.
type registry struct {
	providerv1.UnimplementedQueryServer
	ledger *Ledger
}

func (r *registry) Peer(_ context.Context, q *providerv1.QueryPeerRequest) (*providerv1.QueryPeerResponse, error) {
	n := r.ledger
	if i := slices.IndexFunc(n.Peers, func(p providerv1.Peer) bool { return p.Account == q.Account }); i >= 0 {
		return &providerv1.QueryPeerResponse{Peer: n.Peers[i]}, n.Err
	}
	key, ok := n.Keys[q.Account]
	if !ok {
		return nil, status.Error(codes.NotFound, "no peer "+q.Account)
	}
	return &providerv1.QueryPeerResponse{Peer: providerv1.Peer{Account: q.Account, PeerKey: key}}, nil
}

// page is how many peers a reply lists.
const page = 2

func (r *registry) Peers(_ context.Context, q *providerv1.QueryPeersRequest) (*providerv1.QueryPeersResponse, error) {
	n, at := r.ledger, 0
	if q.Pagination != nil && len(q.Pagination.Key) > 0 {
		at = int(q.Pagination.Key[0])
	} else {
		n.Listed.Add(1)
	}
	out := &providerv1.QueryPeersResponse{Peers: n.Peers[at:min(at+page, len(n.Peers))]}
	if at += page; at < len(n.Peers) {
		out.Pagination = &query.PageResponse{NextKey: []byte{byte(at)}}
	}
	return out, n.Err
}
