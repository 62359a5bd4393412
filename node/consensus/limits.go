package consensus

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Limits on strangers: who asks from another machine. Who asks from this one, as
// the node's own roles do, or a proxy that its owner runs, has none but maxConns.
const (
	maxStrangers  = 600 // connections of all of them, to each server
	maxOfAddress  = 64  // connections of one address, to each server
	maxWaiting    = 64  // costly requests that wait or run
	waitOfAddress = 8   // of one address
)

// costly are the methods of gRPC that take much for little. abci_query knows them
// under the same names.
var costly = map[string]bool{
	"/cosmos.tx.v1beta1.Service/Simulate":               true,
	"/cosmos.tx.v1beta1.Service/BroadcastTx":            true,
	"/cosmos.tx.v1beta1.Service/GetTxsEvent":            true,
	"/cosmos.tx.v1beta1.Service/GetBlockWithTxs":        true,
	"/cosmos.base.tendermint.v1beta1.Service/ABCIQuery": true,
	"/tally.supply.v1.Query/Check":                      true,
	"/tally.market.v1.Query/Quote":                      true,
	"/tally.market.v1.Query/Explain":                    true,
}

// costlyPaths are the beginnings of the paths under which REST knows them. REST has
// several names for a request: methods that stand for others, verbs after a colon.
// So all that begins so counts, whatever follows.
var costlyPaths = []string{"/cosmos/tx/", "/cosmos/base/tendermint/v1beta1/abci_query", "/tally/supply/v1/check", "/tally/market/v1/quote"}

func costlyPath(path string) bool {
	return slices.ContainsFunc(costlyPaths, func(begin string) bool { return strings.HasPrefix(path, begin) }) ||
		strings.HasPrefix(path, "/tally/market/") && strings.Contains(path, "explain")
}

var errBusy = errors.New("this node is busy with such requests of others: ask again later, or a node of your own")

// share is the time that the costly requests of strangers may take: one runs at a
// time, and as long as it took nothing follows. So all of them together take half
// a processor.
type share struct {
	turn chan struct{} // holds one while a request runs, or rests

	mu      sync.Mutex
	waiting map[string]int // by address; those that run are among them
	all     int
}

func newShare() *share { return &share{turn: make(chan struct{}, 1), waiting: map[string]int{}} }

// do runs a costly request of somebody at an address when it is its turn. It
// returns errBusy if too many wait, or ctx ends before.
func (s *share) do(ctx context.Context, remote string, run func()) error {
	host, local := hostOf(remote)
	if local {
		run()
		return nil
	}
	if !s.enter(host) {
		return errBusy
	}
	defer s.leave(host)
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

func (s *share) enter(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxWaiting || s.waiting[host] >= waitOfAddress {
		return false
	}
	s.all++
	s.waiting[host]++
	return true
}

func (s *share) leave(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.waiting[host]--; s.waiting[host] == 0 {
		delete(s.waiting, host)
	}
}

// hostOf returns the address without its port, and whether it is this machine's.
func hostOf(remote string) (host string, local bool) {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote, false
	}
	return host, net.ParseIP(host).IsLoopback()
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

// guarded is a gRPC server whose costly methods are limited.
type guarded struct {
	*grpc.Server
	share *share
}

// RegisterService implements the interface by which the application registers
// its queries.
func (g guarded) RegisterService(d *grpc.ServiceDesc, impl any) {
	limited := *d
	limited.Methods = slices.Clone(d.Methods)
	for i := range limited.Methods {
		m := &limited.Methods[i]
		if !costly["/"+d.ServiceName+"/"+m.MethodName] {
			continue
		}
		handle := m.Handler
		m.Handler = func(srv any, ctx context.Context, read func(any) error, i grpc.UnaryServerInterceptor) (out any, err error) {
			remote := ""
			if p, ok := peer.FromContext(ctx); ok {
				remote = p.Addr.String()
			}
			if busy := g.share.do(ctx, remote, func() { out, err = handle(srv, ctx, read, i) }); busy != nil {
				return nil, status.Error(codes.ResourceExhausted, busy.Error())
			}
			return out, err
		}
	}
	g.Server.RegisterService(&limited, impl)
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

	mu  sync.Mutex
	of  map[string]int
	all int
}

func limit(l net.Listener) net.Listener { return &listener{Listener: l, of: map[string]int{}} }

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
		if l.take(host) {
			return &counted{Conn: c, release: sync.OnceFunc(func() { l.release(host) })}, nil
		}
		_ = c.Close()
	}
}

func (l *listener) take(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= maxStrangers || l.of[host] >= maxOfAddress {
		return false
	}
	l.all++
	l.of[host]++
	return true
}

func (l *listener) release(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.of[host]--; l.of[host] == 0 {
		delete(l.of, host)
	}
}

type counted struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.release()
	return c.Conn.Close()
}
