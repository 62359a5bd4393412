package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	rpchttp "github.com/cometbft/cometbft/rpc/client/http"
	rpcclient "github.com/cometbft/cometbft/rpc/jsonrpc/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cosmos/cosmos-sdk/codec"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/app"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
)

// Client is a connection to one node of a chain.
type Client struct {
	Conn    *grpc.ClientConn // for the modules' query clients
	RPC     *rpchttp.HTTP
	Headers *rpchttp.HTTP // the same, of which no more is believed than a header takes
	ChainID string
	enc     app.Encoding
	head    head

	events   atomic.Bool  // the connection for events is there
	starting <-chan error // ends when it is, or is not; nil: nobody connects. follow's own
}

// Endpoints are where a node answers: RPC as http://host:port, GRPC as host:port.
type Endpoints struct{ RPC, GRPC string }

// Bounds on one answer of a node. Decoded, a list of empty signatures takes fifty times its bytes. The commit of 10,000
// validators has 3 MB.
const (
	maxReply  = 64 << 20
	maxHeader = 4 << 20
)

// NewRPC returns a client of a node's RPC that reads no more than 64 MiB of an answer.
func NewRPC(at string) (*rpchttp.HTTP, error) { return newRPC(at, maxReply) }

// NewHeaders returns a client of a node's RPC for what a light client asks: it reads no more than 4 MiB of an answer.
func NewHeaders(at string) (*rpchttp.HTTP, error) { return newRPC(at, maxHeader) }

func newRPC(at string, most int64) (*rpchttp.HTTP, error) {
	c, err := rpcclient.DefaultHTTPClient(at)
	if err != nil {
		return nil, err
	}
	c.Transport = boundedTransport{c.Transport, most}
	return rpchttp.NewWithClient(at, "/websocket", c)
}

type boundedTransport struct {
	http.RoundTripper
	most int64 // bytes of an answer
}

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		a.Body = http.MaxBytesReader(nil, a.Body, t.most)
	}
	return a, err
}

// Dial connects to a node and follows its blocks until ctx is done. It waits
// until the node has made its first block.
func Dial(ctx context.Context, e Endpoints) (*Client, error) {
	enc, err := app.NewEncoding()
	if err != nil {
		return nil, err
	}
	codec := grpc.ForceCodec(codec.NewProtoCodec(enc.Registry).GRPCCodec())
	conn, err := grpc.NewClient(e.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUnaryInterceptor(patient(restart)),
		grpc.WithDefaultCallOptions(codec, grpc.MaxCallRecvMsgSize(maxReply)))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", e.GRPC, err)
	}
	rpc, err := NewRPC(e.RPC)
	headers, errHeaders := NewHeaders(e.RPC)
	if err := errors.Join(err, errHeaders); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", e.RPC, err), conn.Close())
	}
	c := &Client{Conn: conn, RPC: rpc, Headers: headers, enc: enc, head: head{changed: make(chan struct{})}}
	go c.follow(ctx)
	if _, err := c.head.after(ctx, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("no block from %s: %w", e.RPC, err), c.Close())
	}
	for {
		status, err := rpc.Status(ctx)
		if err == nil {
			c.ChainID = status.NodeInfo.Network
			return c, nil
		}
		select { // it made a block, and may start again
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("ask %s for its status: %w", e.RPC, err), c.Close())
		case <-time.After(retryAfter):
		}
	}
}

// Probe returns an error unless a node answers soon. Dial waits for one that is
// still starting; people do not.
func Probe(ctx context.Context, e Endpoints) error {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	rpc, err := NewRPC(e.RPC)
	if err == nil {
		_, err = rpc.Status(ctx)
	}
	if err != nil {
		return fmt.Errorf("ask node %s: %w", e.RPC, err)
	}
	return nil
}

// Close hangs up.
func (c *Client) Close() error {
	if c.events.Load() && c.RPC.IsRunning() {
		_ = c.RPC.Stop()
	}
	return c.Conn.Close()
}

// Block is what a role needs to know of a block.
type Block struct {
	Height int64
	Time   int64 // ms of protocol time, which all that the chain sets times by counts
}

// Next waits for a block above the given height.
func (c *Client) Next(ctx context.Context, above int64) (Block, error) {
	return c.head.after(ctx, above)
}

// Head returns the newest block.
func (c *Client) Head() Block { return c.head.newest() }

const (
	subscription = "tally"
	newHeader    = "tm.event='NewBlockHeader'"
	retryAfter   = 200 * time.Millisecond
	silence      = 5 * time.Second // after which the node is asked
)

// follow keeps the head up to date: by events, and by asking where events fail.
func (c *Client) follow(ctx context.Context) {
	for ctx.Err() == nil {
		c.ask(ctx)
		_ = c.listen(ctx) // what it missed, asking finds
		select {
		case <-ctx.Done():
		case <-time.After(retryAfter):
		}
	}
}

// startEvents connects for events, unless it has. CometBFT waits without end for a node that says nothing, and panics if it is
// stopped meanwhile.
func (c *Client) startEvents(ctx context.Context) error {
	if c.events.Load() && c.RPC.IsRunning() {
		return nil
	}
	if c.starting == nil {
		starting := make(chan error, 1)
		c.starting = starting
		c.events.Store(false)
		go func() {
			err := c.RPC.Start()
			c.events.Store(err == nil)
			starting <- err
		}()
	}
	select {
	case err := <-c.starting:
		c.starting = nil
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(silence):
		return errors.New("the node tells no events")
	}
}

func (c *Client) listen(ctx context.Context) error {
	if err := c.startEvents(ctx); err != nil {
		return err
	}
	events, err := c.RPC.Subscribe(ctx, subscription, newHeader, 16)
	if err != nil {
		return err
	}
	defer func() { _ = c.RPC.Unsubscribe(context.WithoutCancel(ctx), subscription, newHeader) }()
	c.ask(ctx) // blocks before the subscription
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, ok := <-events:
			if !ok {
				return errors.New("subscription ended")
			}
			c.ask(ctx)
		case <-time.After(silence):
			c.ask(ctx)
		}
	}
}

// ask sets the head to the newest block that queries answer from. The newest that
// the node has stored may be one ahead: it is still being executed.
func (c *Client) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	if r, err := blockv1.NewQueryClient(c.Conn).Now(ctx, &blockv1.QueryNowRequest{}); err == nil && r.Height > 0 {
		c.head.set(Block{r.Height, r.TimeMs})
	}
}

// account returns number and sequence of an account; an account that the chain
// does not know has no money and cannot sign.
func (c *Client) account(ctx context.Context, address string) (number, sequence uint64, err error) {
	r, err := authtypes.NewQueryClient(c.Conn).AccountInfo(ctx, &authtypes.QueryAccountInfoRequest{Address: address})
	if err != nil {
		return 0, 0, fmt.Errorf("account %s (has it ever received money?): %w", address, err)
	}
	if r.Info == nil {
		return 0, 0, fmt.Errorf("account %s: the node answers with nothing: name another", address)
	}
	return r.Info.AccountNumber, r.Info.Sequence, nil
}

// AccountNumber returns the number that the chain gave an account.
func (c *Client) AccountNumber(ctx context.Context, address string) (uint64, error) {
	number, _, err := c.account(ctx, address)
	return number, err
}

// CatchingUp reports whether a node has refused a transaction because it still reads the blocks of the past.
func CatchingUp(err error) bool {
	return err != nil && strings.Contains(err.Error(), "node is catching up") // as CometBFT says it: it has no code of its own
}
