package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/bench/solo"
	"github.com/tally-network/tally/chain/app"
	leasing "github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/cputime"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/leases"
)

const (
	bystanderBlocks = 500
	manySettled     = 100_000
)

// raw passes the bytes of messages on as they are.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = raw{}

// bystander is a connection to a chain that answers queries over TCP, of which the bytes are counted.
type bystander struct {
	conn   *grpc.ClientConn
	server *grpc.Server
	bytes  atomic.Int64
}

func newBystander(s *solo.Chain) (*bystander, error) {
	b := &bystander{}
	b.server = grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		var data []byte
		if err := stream.RecvMsg(&data); err != nil {
			return err
		}
		r, err := s.Query(stream.Context(), &abci.RequestQuery{Path: method, Data: data})
		if err != nil {
			return err
		}
		if r.Code != 0 {
			return status.Error(codes.Unknown, r.Log)
		}
		return stream.SendMsg(r.Value)
	}))
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { _ = b.server.Serve(at) }()
	b.conn, err = grpc.NewClient(at.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(codec.NewProtoCodec(s.Registry).GRPCCodec())),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			var d net.Dialer
			c, err := d.DialContext(ctx, "tcp", addr)
			return &counted{c, &b.bytes}, err
		}))
	return b, err
}

// counted is a connection whose bytes are counted, in both directions.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}

// idleRows measures what a role without work asks its node in each block, beside leases of others: its
// leases, its turns in disputes, and protocol time. The node's part of the CPU is counted, too.
func (c *many) idleRows(ctx context.Context) ([]Row, error) {
	b, err := newBystander(c.Chain)
	if err != nil {
		return nil, err
	}
	defer b.server.Stop()
	defer b.conn.Close()
	me := peerOf("provider", manyProviders-1, providerv1.ROLE_PROVIDER, 0, providerv1.Listing{}).Account
	f := &leases.Follower{Chain: &client.Client{Conn: b.conn}, Recorder: &events.Recorder{Name: "bench", Log: slog.New(slog.DiscardHandler)}}
	look := func() error {
		live, err := f.Live(ctx, me)
		if err == nil && len(live) > 0 {
			err = fmt.Errorf("the role that has no work takes part in %d leases", len(live))
		}
		if err == nil {
			_, err = disputev1.NewQueryClient(b.conn).Disputes(ctx, &disputev1.QueryDisputesRequest{Turn: me})
		}
		if err == nil {
			_, err = blockv1.NewQueryClient(b.conn).Now(ctx, &blockv1.QueryNowRequest{})
		}
		return err
	}
	if err := look(); err != nil { // it reads all the first time
		return nil, err
	}
	sent, used := b.bytes.Load(), cputime.Used()
	for range bystanderBlocks {
		if err := look(); err != nil {
			return nil, err
		}
	}
	cpu, bytes := (cputime.Used()-used).Seconds()/bystanderBlocks, float64(b.bytes.Load()-sent)/bystanderBlocks
	return []Row{
		row("idle role beside 10⁴ leases of others, a block a second: CPU, the node's for it included", "% of a core", 100*cpu).atMost(1),
		row("what it asks and is answered", "KB/s", bytes/1000).atMost(10),
	}, nil
}

// prunedRows measures a state in which many orders were settled and pruned: it is generated.
func prunedRows(ctx context.Context, o Options) ([]Row, error) {
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	o.Tell("generating a state after %d settled orders", manySettled)
	genesis, producer := solo.Genesis(sdk.AccAddress("nobody").String())
	db, err := dbm.NewGoLevelDB("application", dir, nil)
	if err != nil {
		return nil, err
	}
	s, err := solo.New(db, genesis, producer, func(a *app.App, state map[string]json.RawMessage) error {
		g := leasing.DefaultGenesis()
		for i := range uint64(manySettled) {
			leaf, order := canon.Sum("leaf", fmt.Append(nil, i)), manyOrder(i)
			g.Record = append(g.Record, leaf[:])
			g.Pruned = append(g.Pruned, workv1.PrunedLease{Order: order[:], Index: i, At: genesis.Time.UnixMilli()})
		}
		state[leasing.Name], err = a.Codec.MarshalJSON(g)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for range 20 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := s.Make(time.Second); err != nil {
			return nil, err
		}
	}
	size, err := solo.OnDisk(dir)
	if err != nil {
		return nil, err
	}
	return []Row{row("state on disk after 10⁵ settled orders, pruned", "MB", float64(size)/1e6).atMost(200)}, nil
}

// manyOrder returns the i-th of ids that are in order.
func manyOrder(i uint64) canon.Hash {
	id := canon.Sum("order", fmt.Append(nil, i))
	for b := range 8 {
		id[b] = byte(i >> (8 * (7 - b)))
	}
	return id
}
