package consensus

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cosmos/gogoproto/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/tally-network/tally/chain/app"
)

// Limits on strangers: who asks from another machine. Who asks from this one, as
// the node's own roles do, or a proxy that its owner runs, has none but maxConns.
const (
	maxStrangers  = 600 // connections of all of them, to each server
	maxOfAddress  = 64  // connections of one address, to each server
	maxWaiting    = 64  // costly requests that wait or run
	waitOfAddress = 8   // of one address
)

// costly are the methods of gRPC that take much for little, beside those that list.
// abci_query knows them under the same names.
var costly = map[string]bool{
	"/cosmos.tx.v1beta1.Service/Simulate":               true,
	"/cosmos.tx.v1beta1.Service/BroadcastTx":            true,
	"/cosmos.tx.v1beta1.Service/GetTxsEvent":            true,
	"/cosmos.tx.v1beta1.Service/GetBlockWithTxs":        true,
	"/cosmos.tx.v1beta1.Service/GetTx":                  true, // with a proof from its block
	"/cosmos.tx.v1beta1.Service/TxDecode":               true,
	"/cosmos.tx.v1beta1.Service/TxEncode":               true,
	"/cosmos.tx.v1beta1.Service/TxDecodeAmino":          true,
	"/cosmos.tx.v1beta1.Service/TxEncodeAmino":          true,
	"/cosmos.base.tendermint.v1beta1.Service/ABCIQuery": true,
	"/tally.supply.v1.Query/Check":                      true,
	"/tally.market.v1.Query/Quote":                      true,
	"/tally.market.v1.Query/Explain":                    true,
	"/tally.auction.v1.Query/Clearing":                  true,
	"/tally.provider.v1.Query/Stake":                    true,
	"/tally.work.v1.Query/State":                        true,
	"/tally.work.v1.Query/Roots":                        true,
	"/tally.work.v1.Query/Units":                        true,
	"/tally.work.v1.Query/Changed":                      true,
}

// shortLists are methods that list only a few members: of the one denomination, or of
// validators. Wallets and providers call them all the time.
var shortLists = map[string]bool{
	"/cosmos.bank.v1beta1.Query/AllBalances":                          true,
	"/cosmos.bank.v1beta1.Query/SpendableBalances":                    true,
	"/cosmos.bank.v1beta1.Query/TotalSupply":                          true,
	"/cosmos.bank.v1beta1.Query/SendEnabled":                          true,
	"/cosmos.base.tendermint.v1beta1.Service/GetValidatorSetByHeight": true,
	"/cosmos.base.tendermint.v1beta1.Service/GetLatestValidatorSet":   true,
	"/tally.auction.v1.Query/Sales":                                   true, // of one provider
}

func costlyMethod(method string) bool {
	return costly[method] || app.IsPaged(method) && !shortLists[method]
}

// costlyPaths are the beginnings of the paths under which REST knows them. REST has
// several names for a request: methods that stand for others, verbs after a colon.
// So all that begins so counts, whatever follows.
var costlyPaths = []string{
	"/cosmos/tx/", "/cosmos/base/tendermint/v1beta1/abci_query", "/cosmos/auth/v1beta1/accounts", "/cosmos/bank/v1beta1/denom",
	"/cosmos/feegrant/", "/tally/supply/v1/check", "/tally/market/v1/quote", "/tally/market/v1/offers", "/tally/market/v1/orders", "/tally/market/v1/trades", "/tally/auction/v1/capacities", "/tally/auction/v1/demands", "/tally/auction/v1/clear", "/tally/auction/v1/seals",
	"/tally/work/v1/leases", "/tally/work/v1/live", "/tally/work/v1/changed", "/tally/dispute/v1/disputes", "/tally/provider/v1/peers", "/tally/provider/v1/stake", "/tally/provider/v1/unbonding/", "/tally/power/v1/", "/tally/policy/v1/proposals", "/tally/beacon/v1/keys", "/tally/seats/v1/members", "/tally/drilling/v1/projects", "/tally/sessions/v1/listings", "/tally/sessions/v1/accounts/",
}

func costlyPath(path string) bool {
	return slices.ContainsFunc(costlyPaths, func(begin string) bool { return strings.HasPrefix(path, begin) })
}

var errBusy = errors.New("this node is busy with such requests of others: ask again later, or a node of your own")

// share is the time that the costly requests of strangers may take: one runs at a
// time, and as long as it took nothing follows. So all of them together take half
// a processor.
type share struct {
	*quota               // of those that wait or run
	turn   chan struct{} // holds one while a request runs, or rests
}

func newShare() *share {
	return &share{newQuota(maxWaiting, waitOfAddress), make(chan struct{}, 1)}
}

// do runs a costly request of somebody at an address when it is its turn. It
// returns errBusy if too many wait, or ctx ends before. Waiting and running, it takes no
// place among the replies that are made.
func (s *share) do(ctx context.Context, remote string, run func()) error {
	host, local := hostOf(remote)
	if local {
		run()
		return nil
	}
	if !s.take(host, 1) {
		return errBusy
	}
	defer s.give(host, 1)
	if h := reservationOf(ctx); h.release() {
		defer func() { _ = h.acquire(context.WithoutCancel(ctx)) }()
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return errBusy
	}
	begun := time.Now()
	defer func() { time.AfterFunc(time.Since(begun), func() { <-s.turn }) }()
	run()
	return nil
}

// hostOf returns the address without its port, and whether it is this machine's. Of an
// IPv6 address it returns the network of 64 bits, for whoever has one has them all.
func hostOf(remote string) (host string, local bool) {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote, false
	}
	a := at.Addr().Unmap().WithZone("")
	if a.Is6() && !a.IsLoopback() {
		return netip.PrefixFrom(a, 64).Masked().String(), false
	}
	return a.String(), a.IsLoopback()
}

// http limits the costly requests of a handler.
func (s *share) http(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !costlyPath(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		if err := s.do(r.Context(), r.RemoteAddr, func() { next.ServeHTTP(w, r) }); err != nil {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
		}
	})
}

// guarded is a gRPC server whose pages are bounded, whose costly methods are limited,
// and whose replies to strangers are counted.
type guarded struct {
	*grpc.Server
	share *share
	app   *turns
}

// RegisterService implements the interface by which the application registers
// its queries.
func (g guarded) RegisterService(d *grpc.ServiceDesc, impl any) {
	limited := *d
	limited.Methods = slices.Clone(d.Methods)
	for i := range limited.Methods {
		m := &limited.Methods[i]
		method := "/" + d.ServiceName + "/" + m.MethodName
		m.Handler = g.guard(g.app.oneStateHandler(m.Handler, method), method)
	}
	g.Server.RegisterService(&limited, impl)
}

func (g guarded) guard(handle grpc.MethodHandler, method string) grpc.MethodHandler {
	costly := costlyMethod(method)
	return func(srv any, ctx context.Context, read func(any) error, i grpc.UnaryServerInterceptor) (out any, err error) {
		bounded := func(req any) error {
			if err := read(req); err != nil {
				return err
			}
			if err := app.BoundPage(req); err != nil {
				return status.Error(codes.InvalidArgument, err.Error())
			}
			return nil
		}
		run := func() { out, err = handle(srv, ctx, bounded, i) }
		h := reservationOf(ctx)
		var refusal error
		if costly {
			refusal = g.share.do(ctx, remoteOf(ctx), run)
		} else if refusal = h.acquire(ctx); refusal == nil {
			defer h.release()
			run()
		}
		if refusal == nil && errors.Is(err, sdkerrors.ErrOutOfGas) {
			refusal = app.ErrReadsTooMuch(method)
		}
		if refusal != nil {
			return nil, status.Error(codes.ResourceExhausted, refusal.Error())
		}
		if reply, ok := out.(proto.Message); ok && err == nil {
			if full := h.reserve(proto.Size(reply)); full != nil {
				return nil, status.Error(codes.ResourceExhausted, full.Error())
			}
		}
		return out, err
	}
}

// guardStream counts the streams of strangers.
func guardStream(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if full := reservationOf(s.Context()).reserve(heldOfStream); full != nil {
		return status.Error(codes.ResourceExhausted, full.Error())
	}
	return handle(srv, s)
}

func remoteOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}

// known refuses requests that web pages of other origins than the given make
// people's browsers send, to nodes on their own machines too.
func known(origins []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if u, err := url.Parse(origin); origin != "" && !slices.Contains(origins, "*") && !slices.Contains(origins, origin) && (err != nil || u.Host != r.Host) {
			http.Error(w, "web pages of "+origin+" may not ask this node: its owner lists origins with --origins", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// listener closes connections of strangers who have too many, so that there is
// room for others.
type listener struct {
	net.Listener
	*quota
}

func limit(l net.Listener) net.Listener { return &listener{l, newQuota(maxStrangers, maxOfAddress)} }

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host, local := hostOf(c.RemoteAddr().String())
		if local {
			return c, nil
		}
		if l.take(host, 1) {
			return &countedConn{Conn: c, release: sync.OnceFunc(func() { l.give(host, 1) })}, nil
		}
		_ = c.Close()
	}
}

type countedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
