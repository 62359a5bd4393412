package consensus

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtbytes "github.com/cometbft/cometbft/libs/bytes"
	cmtlog "github.com/cometbft/cometbft/libs/log"
	rpcclient "github.com/cometbft/cometbft/rpc/client"
	"github.com/cometbft/cometbft/rpc/client/local"
	"github.com/cometbft/cometbft/rpc/core"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	rpcserver "github.com/cometbft/cometbft/rpc/jsonrpc/server"
	rpctypes "github.com/cometbft/cometbft/rpc/jsonrpc/types"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/rs/cors"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"

	"cosmossdk.io/log/v2"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/client/grpc/cmtservice"
	"github.com/cosmos/cosmos-sdk/codec"
	"github.com/cosmos/cosmos-sdk/server/api"
	serverconfig "github.com/cosmos/cosmos-sdk/server/config"
	"github.com/cosmos/cosmos-sdk/server/grpc/gogoreflection"
	serverlog "github.com/cosmos/cosmos-sdk/server/log"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/coin"
)

// Limits on every server: times, bytes of a request, and connections. Those on
// strangers are in limits.go.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second // RPC may wait 10 s for a transaction
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 2 * time.Second
	maxBody       = 1 << 20
	maxHeader     = 16 << 10
	maxStreams    = 128      // requests at once on a connection of gRPC
	maxUnread     = 64 << 10 // bytes of them that nobody has read yet
	maxConns      = 900      // of each server
	socketQueue   = 100      // replies that a websocket of this machine keeps
)

// serve starts the RPC, gRPC and REST servers.
func (n *Node) serve(c Config, chainID string, logger log.Logger) error {
	strangers := newShare()
	settings := serverconfig.DefaultConfig()
	settings.MinGasPrices = "0" + coin.Denom
	clientCtx := client.Context{}.
		WithChainID(chainID).
		WithClient(n.queries).
		WithCodec(n.app.Codec).
		WithInterfaceRegistry(n.app.Registry).
		WithLegacyAmino(n.app.Amino).
		WithTxConfig(n.app.Tx).
		WithAccountRetriever(authtypes.AccountRetriever{})
	txtypes.RegisterServiceServer(n.app.GRPCQueryRouter(), newTxService(clientCtx, n.app))
	cmtservice.RegisterTendermintService(clientCtx, n.app.GRPCQueryRouter(), n.app.Registry, n.app.Query)
	n.app.RegisterNodeService(clientCtx, *settings)

	// Only now may queries come: the routes above are written without a lock.
	var err error
	rpc := n.rpcHandler(logger, strangers)
	if n.addrs.RPC, err = n.serveHTTP(c.Listen.RPC, limitedServer(newReplyBudget().http(web(c.Origins, rpc)))); err != nil {
		return err
	}

	grpcServer := n.grpcServer(strangers)
	if n.addrs.GRPC, err = n.serveHTTP(c.Listen.GRPC, grpcOver(grpcServer, newReplyBudget())); err != nil {
		return err
	}
	n.closers = append(n.closers, func() error { grpcServer.Stop(); return nil })

	rest := api.New(clientCtx, logger, grpcServer)
	n.app.RegisterAPIRoutes(rest, settings.API)
	limited := http.MaxBytesHandler(limitNesting(rest.GRPCGatewayRouter), maxBody)
	n.addrs.REST, err = n.serveHTTP(c.Listen.REST, limitedServer(newReplyBudget().http(web(c.Origins, strangers.http(limited)))))
	return err
}

// web lets the pages of some origins call h, and no others.
func web(origins []string, h http.Handler) http.Handler {
	h = known(origins, h)
	if len(origins) == 0 {
		return h // without origins, package cors would allow all
	}
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodHead, http.MethodGet, http.MethodPost},
		AllowedHeaders: []string{"Origin", "Accept", "Content-Type", "X-Requested-With", "X-Server-Time", "X-Cosmos-Block-Height"},
	}).Handler(h)
}

// grpcServer serves the application's queries.
func (n *Node) grpcServer(strangers *share) *grpc.Server {
	s := grpc.NewServer(
		grpc.ForceServerCodec(codec.NewProtoCodec(n.app.Registry).GRPCCodec()),
		grpc.MaxRecvMsgSize(maxBody), grpc.StreamInterceptor(guardStream),
	)
	n.app.RegisterGRPCServerWithSkipCheckHeader(guarded{s, strangers, n.app}, false)
	gogoreflection.Register(s)
	return s
}

// grpcOver serves gRPC as HTTP/2 of net/http: a handler there ends when its reply is
// sent, in gRPC's own transport when it is made (docs/adr/0025).
func grpcOver(s *grpc.Server, r *replyBudget) *http.Server {
	out := limitedServer(r.grpc(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, here := hostOf(req.RemoteAddr); here { // roles may be slow
			control := http.NewResponseController(w)
			_ = errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{}))
		}
		s.ServeHTTP(w, req)
	})))
	out.Protocols = new(http.Protocols)
	out.Protocols.SetUnencryptedHTTP2(true)
	out.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: maxStreams, WriteByteTimeout: writeTimeout, // who reads nothing
		MaxReceiveBufferPerConnection: maxUnread, MaxReceiveBufferPerStream: maxUnread,
		SendPingTimeout: idleTimeout, PingTimeout: readTimeout, // who is gone
	}
	return out
}

// rpcHandler is CometBFT's RPC over HTTP and websocket.
func (n *Node) rpcHandler(logger log.Logger, strangers *share) http.Handler {
	env := n.queries.env
	routes, rpcLogger := n.limited(env, strangers), serverlog.CometLoggerWrapper{Logger: logger.With("module", "rpc")}
	own, others := n.sockets(routes, socketQueue, rpcLogger), n.sockets(subscriptions(routes), 1, rpcLogger)
	mux := http.NewServeMux()
	mux.HandleFunc("/websocket", func(w http.ResponseWriter, r *http.Request) {
		if _, here := hostOf(r.RemoteAddr); here {
			own.WebsocketHandler(w, r)
		} else {
			others.WebsocketHandler(w, r)
		}
	})
	return boundedRPC(mux, routes, rpcLogger)
}

// boundedRPC adds routes over HTTP to what mux serves, and bounds requests.
func boundedRPC(mux *http.ServeMux, routes core.RoutesMap, logger cmtlog.Logger) http.Handler {
	rpcserver.RegisterRPCFuncs(mux, routes, logger)
	conf := rpcserver.DefaultConfig()
	conf.MaxBodyBytes = maxBody
	return rpcserver.PreChecksHandler(oneByOne(rpcserver.RecoverAndLogHandler(mux, logger)), conf)
}

// sockets serves routes by websockets, each of which keeps so many replies that are not
// sent yet.
func (n *Node) sockets(routes core.RoutesMap, queue int, logger serverlog.CometLoggerWrapper) *rpcserver.WebsocketManager {
	s := rpcserver.NewWebsocketManager(routes,
		rpcserver.OnDisconnect(func(remote string) {
			// It fails for a client without subscriptions.
			_ = n.comet.EventBus().UnsubscribeAll(context.Background(), remote)
		}),
		rpcserver.ReadLimit(maxBody), rpcserver.WriteChanCapacity(queue),
	)
	s.SetLogger(logger)
	return s
}

// subscriptions are the routes of a stranger's websocket, which keeps replies that
// are not read. All others are asked over HTTP.
func subscriptions(routes core.RoutesMap) core.RoutesMap {
	refuse := rpcserver.NewWSRPCFunc(func(*rpctypes.Context) (*coretypes.ResultHealth, error) {
		return nil, errors.New("websockets of others only subscribe here: ask over HTTP")
	}, "")
	out := core.RoutesMap{}
	for name := range routes {
		out[name] = refuse
	}
	for _, name := range []string{"subscribe", "unsubscribe", "unsubscribe_all"} {
		out[name] = routes[name]
	}
	return out
}

// limited are CometBFT's routes; those that take much for little are limited for
// strangers.
func (n *Node) limited(env *core.Environment, strangers *share) core.RoutesMap {
	routes := env.GetRoutes()
	routes["abci_query"] = rpcserver.NewRPCFunc(func(ctx *rpctypes.Context, path string, data cmtbytes.HexBytes, height int64, prove bool) (*coretypes.ResultABCIQuery, error) {
		run := func() (*coretypes.ResultABCIQuery, error) {
			return n.queries.ABCIQueryWithOptions(ctx.Context(), path, data, rpcclient.ABCIQueryOptions{Height: height, Prove: prove})
		}
		if !costlyMethod(path) {
			return run()
		}
		return inTurn(strangers, ctx, run)
	}, "path,data,height,prove")
	for name, send := range map[string]func(*rpctypes.Context, cmttypes.Tx) (*coretypes.ResultBroadcastTx, error){
		"broadcast_tx_sync": env.BroadcastTxSync, "broadcast_tx_async": env.BroadcastTxAsync,
	} {
		routes[name] = rpcserver.NewRPCFunc(func(ctx *rpctypes.Context, tx cmttypes.Tx) (*coretypes.ResultBroadcastTx, error) {
			return inTurn(strangers, ctx, func() (*coretypes.ResultBroadcastTx, error) { return send(ctx, tx) })
		}, "tx")
	}
	routes["broadcast_tx_commit"] = rpcserver.NewRPCFunc(func(ctx *rpctypes.Context, tx cmttypes.Tx) (*coretypes.ResultBroadcastTxCommit, error) {
		if _, local := hostOf(ctx.RemoteAddr()); !local {
			return nil, errors.New("this node does not wait for the blocks of others: send with broadcast_tx_sync, then ask for the transaction with tx")
		}
		return env.BroadcastTxCommit(ctx, tx)
	}, "tx")
	routes["check_tx"] = rpcserver.NewRPCFunc(func(ctx *rpctypes.Context, tx cmttypes.Tx) (*coretypes.ResultCheckTx, error) {
		return inTurn(strangers, ctx, func() (*coretypes.ResultCheckTx, error) { return env.CheckTx(ctx, tx) })
	}, "tx")
	routes["tx_search"] = rpcserver.NewRPCFunc(func(ctx *rpctypes.Context, query string, prove bool, page, perPage *int, orderBy string) (*coretypes.ResultTxSearch, error) {
		return inTurn(strangers, ctx, func() (*coretypes.ResultTxSearch, error) {
			return env.TxSearch(ctx, query, prove, page, perPage, orderBy)
		})
	}, "query,prove,page,per_page,order_by")
	routes["block_search"] = rpcserver.NewRPCFunc(func(ctx *rpctypes.Context, query string, page, perPage *int, orderBy string) (*coretypes.ResultBlockSearch, error) {
		return inTurn(strangers, ctx, func() (*coretypes.ResultBlockSearch, error) {
			return searchBlocks(env, ctx, query, page, perPage, orderBy)
		})
	}, "query,page,per_page,order_by")
	return routes
}

// inTurn runs a costly request of RPC when it is its turn.
func inTurn[T any](strangers *share, ctx *rpctypes.Context, run func() (T, error)) (out T, err error) {
	busy := strangers.do(ctx.Context(), ctx.RemoteAddr(), func() { out, err = run() })
	return out, errors.Join(busy, err)
}

// queries is CometBFT's client, but for searches, which are bounded, and for queries of
// the application: these are answered from the last block without the lock under which
// consensus runs.
type queries struct {
	*local.Local
	app *turns
	env *core.Environment
}

// TxSearch implements the client of the RPC. The SDK then reads the blocks of all that
// is found.
func (q queries) TxSearch(ctx context.Context, query string, prove bool, page, perPage *int, orderBy string) (*coretypes.ResultTxSearch, error) {
	r, err := q.env.TxSearch(rpcContext(ctx), query, prove, page, perPage, orderBy)
	if err != nil {
		return nil, err
	}
	store, seen := meteredBlocks{BlockStore: q.env.BlockStore, bytes: maxFound}, map[int64]bool{}
	for _, tx := range r.Txs {
		if !seen[tx.Height] && !store.take(tx.Height) {
			return nil, errLarge
		}
		seen[tx.Height] = true
	}
	return r, nil
}

// BlockSearch implements the client of the RPC.
func (q queries) BlockSearch(ctx context.Context, query string, page, perPage *int, orderBy string) (*coretypes.ResultBlockSearch, error) {
	return searchBlocks(q.env, rpcContext(ctx), query, page, perPage, orderBy)
}

func rpcContext(ctx context.Context) *rpctypes.Context {
	return &rpctypes.Context{HTTPReq: (&http.Request{}).WithContext(ctx)}
}

// ABCIQuery implements the client of the RPC.
func (q queries) ABCIQuery(ctx context.Context, path string, data cmtbytes.HexBytes) (*coretypes.ResultABCIQuery, error) {
	return q.ABCIQueryWithOptions(ctx, path, data, rpcclient.DefaultABCIQueryOptions)
}

// ABCIQueryWithOptions implements the client of the RPC.
func (q queries) ABCIQueryWithOptions(ctx context.Context, path string, data cmtbytes.HexBytes, o rpcclient.ABCIQueryOptions) (*coretypes.ResultABCIQuery, error) {
	r, err := q.app.Query(ctx, &abci.RequestQuery{Path: path, Data: data, Height: o.Height, Prove: o.Prove})
	if err != nil {
		return nil, err
	}
	return &coretypes.ResultABCIQuery{Response: *r}, nil
}

// limitedServer serves h with the limits of every server.
func limitedServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
	}
}

// serveHTTP serves at addr until the node stops, and returns where that is.
func (n *Node) serveHTTP(addr string, s *http.Server) (string, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", err
	}
	go func() { _ = s.Serve(limit(netutil.LimitListener(listener, maxConns))) }()
	n.closers = append(n.closers, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if err := s.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
			return s.Close()
		} else if err != nil {
			return err
		}
		return nil
	})
	return listener.Addr().String(), nil
}
