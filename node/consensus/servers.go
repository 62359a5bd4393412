package consensus

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	rpcserver "github.com/cometbft/cometbft/rpc/jsonrpc/server"
	"github.com/rs/cors"
	"golang.org/x/net/netutil"

	"cosmossdk.io/log/v2"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/server/api"
	serverconfig "github.com/cosmos/cosmos-sdk/server/config"
	servergrpc "github.com/cosmos/cosmos-sdk/server/grpc"
	serverlog "github.com/cosmos/cosmos-sdk/server/log"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/coin"
)

const (
	readTimeout  = 10 * time.Second
	writeTimeout = 30 * time.Second // RPC may wait 10 s for a transaction
	stopTimeout  = 2 * time.Second
	maxBody      = 1 << 20
	maxConns     = 900 // of each server
)

// serve starts the RPC, gRPC and REST servers.
func (n *Node) serve(c Config, chainID string, logger log.Logger) error {
	web := cors.New(cors.Options{
		AllowedOrigins: c.Origins,
		AllowedMethods: []string{http.MethodHead, http.MethodGet, http.MethodPost},
		AllowedHeaders: []string{"Origin", "Accept", "Content-Type", "X-Requested-With", "X-Server-Time", "X-Cosmos-Block-Height"},
	})
	settings := serverconfig.DefaultConfig()
	settings.MinGasPrices = "0" + coin.Denom
	clientCtx := client.Context{}.
		WithChainID(chainID).
		WithClient(n.client).
		WithCodec(n.app.Codec).
		WithInterfaceRegistry(n.app.Registry).
		WithLegacyAmino(n.app.Amino).
		WithTxConfig(n.app.Tx).
		WithAccountRetriever(authtypes.AccountRetriever{})
	n.app.RegisterTxService(clientCtx)
	n.app.RegisterTendermintService(clientCtx)
	n.app.RegisterNodeService(clientCtx, *settings)

	// Only now may queries come: the routes above are written without a lock.
	rpc, err := n.rpcHandler(logger)
	if err != nil {
		return err
	}
	if n.addrs.RPC, err = n.serveHTTP(c.Listen.RPC, web.Handler(rpc)); err != nil {
		return err
	}

	grpcServer, clientCtx, err := servergrpc.NewGRPCServerAndContext(clientCtx, n.app, settings.GRPC, logger)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Listen.GRPC)
	if err != nil {
		return err
	}
	n.addrs.GRPC = listener.Addr().String()
	go func() { _ = grpcServer.Serve(netutil.LimitListener(listener, maxConns)) }()
	n.closers = append(n.closers, func() error { grpcServer.Stop(); return nil })

	rest := api.New(clientCtx, logger, grpcServer)
	n.app.RegisterAPIRoutes(rest, settings.API)
	limited := http.MaxBytesHandler(rest.GRPCGatewayRouter, maxBody)
	n.addrs.REST, err = n.serveHTTP(c.Listen.REST, web.Handler(limited))
	return err
}

// rpcHandler is CometBFT's RPC over HTTP and websocket.
func (n *Node) rpcHandler(logger log.Logger) (http.Handler, error) {
	env, err := n.comet.ConfigureRPC()
	if err != nil {
		return nil, err
	}
	routes, rpcLogger := env.GetRoutes(), serverlog.CometLoggerWrapper{Logger: logger.With("module", "rpc")}
	sockets := rpcserver.NewWebsocketManager(routes,
		rpcserver.OnDisconnect(func(remote string) {
			// It fails for a client without subscriptions.
			_ = n.comet.EventBus().UnsubscribeAll(context.Background(), remote)
		}),
		rpcserver.ReadLimit(maxBody),
	)
	sockets.SetLogger(rpcLogger)
	mux := http.NewServeMux()
	mux.HandleFunc("/websocket", sockets.WebsocketHandler)
	rpcserver.RegisterRPCFuncs(mux, routes, rpcLogger)
	conf := rpcserver.DefaultConfig()
	conf.MaxBodyBytes = maxBody
	return rpcserver.PreChecksHandler(rpcserver.RecoverAndLogHandler(mux, rpcLogger), conf), nil
}

// serveHTTP serves h at addr until the node stops, and returns where that is.
func (n *Node) serveHTTP(addr string, h http.Handler) (string, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ReadTimeout: readTimeout, WriteTimeout: writeTimeout}
	go func() { _ = s.Serve(netutil.LimitListener(listener, maxConns)) }()
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
