package consensus

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestCostlyRequestsOfStrangersTakeTurns(t *testing.T) {
	s := newShare()
	begun, end := make(chan struct{}), make(chan struct{})
	done := make(chan error, 100)
	go func() {
		done <- s.do(t.Context(), "203.0.113.1:1", func() { close(begun); <-end })
	}()
	<-begun
	ran := 0
	if err := s.do(t.Context(), "127.0.0.1:7", func() { ran++ }); err != nil || ran != 1 {
		t.Errorf("this machine waited for a stranger: %v", err)
	}
	if err := s.do(t.Context(), "[::1]:7", func() { ran++ }); err != nil || ran != 2 {
		t.Errorf("this machine waited for a stranger: %v", err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.do(impatient, "203.0.113.2:1", func() { t.Error("two at a time") }); !errors.Is(err, errBusy) {
		t.Error(err)
	}
	for range waitOfAddress - 1 { // with the one that runs
		if !s.take("203.0.113.1", 1) {
			t.Fatal("refused too early")
		}
	}
	if err := s.do(t.Context(), "203.0.113.1:2", func() { t.Error("one address took more") }); !errors.Is(err, errBusy) {
		t.Error(err)
	}
	for range waitOfAddress - 1 {
		s.give("203.0.113.1", 1)
	}
	close(end)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.do(t.Context(), "203.0.113.2:1", func() { ran++ }); err != nil || ran != 3 { // after the rest
		t.Error(err)
	}
	if s.all != 0 || len(s.of) != 0 {
		t.Errorf("%d still wait, of %v", s.all, s.of)
	}
}

func TestCostlyRequestsAreLimited(t *testing.T) {
	s := newShare()
	s.turn <- struct{}{} // somebody's runs for ever
	served := 0
	h := s.http(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{http.MethodPost, "/cosmos/tx/v1beta1/simulate", http.StatusTooManyRequests}, {http.MethodGet, "/tally/supply/v1/check", http.StatusTooManyRequests},
		{http.MethodGet, "/cosmos/tx/v1beta1/txs", http.StatusTooManyRequests}, {http.MethodPost, "/cosmos/tx/v1beta1/txs", http.StatusTooManyRequests}, {http.MethodGet, "/tally/supply/v1/supply", http.StatusOK},
		// Other names of the same.
		{http.MethodPost, "/tally/supply/v1/check", http.StatusTooManyRequests}, {http.MethodGet, "/tally/supply/v1/check:", http.StatusTooManyRequests},
		{http.MethodGet, "/cosmos/tx/v1beta1/txs:", http.StatusTooManyRequests}, {http.MethodGet, "/cosmos/base/tendermint/v1beta1/abci_query", http.StatusTooManyRequests},
		{http.MethodGet, "/cosmos/bank/v1beta1/supply", http.StatusOK},
		{http.MethodPost, "/tally/market/v1/quote", http.StatusTooManyRequests}, {http.MethodGet, "/tally/market/v1/orders/00/explain", http.StatusTooManyRequests},
		{http.MethodPost, "/tally/market/v1/orders/00/explain:", http.StatusTooManyRequests}, {http.MethodGet, "/tally/market/v1/params", http.StatusOK},
		{http.MethodGet, "/tally/work/v1/leases/00/state", http.StatusTooManyRequests}, {http.MethodGet, "/cosmos/auth/v1beta1/accounts:", http.StatusTooManyRequests},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := httptest.NewRequestWithContext(ctx, c.method, c.path, nil) // from 192.0.2.1
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, w.Code, c.want)
		}
	}
	if served != 3 {
		t.Errorf("%d served", served)
	}
}

// Whoever has one IPv6 address has 2^64, and would have as many shares.
func TestAddressesOfOneNetworkAreOne(t *testing.T) {
	for _, c := range []struct {
		remote, host string
		local        bool
	}{
		{"203.0.113.1:80", "203.0.113.1", false}, {"[::ffff:203.0.113.1]:80", "203.0.113.1", false}, {"127.0.0.1:80", "127.0.0.1", true},
		{"[::1]:80", "::1", true}, {"[::ffff:127.0.0.1]:80", "127.0.0.1", true}, {"", "", false}, {"@", "@", false},
		{"[2001:db8::1]:80", "2001:db8::/64", false}, {"[2001:db8::ffff:0:2]:80", "2001:db8::/64", false}, {"[fe80::1%eth0]:80", "fe80::/64", false},
	} {
		if host, local := hostOf(c.remote); host != c.host || local != c.local {
			t.Errorf("%s: %s, %v", c.remote, host, local)
		}
	}
}

func TestUnknownOriginsAreRefused(t *testing.T) {
	for _, c := range []struct {
		origins []string
		origin  string
		want    int
	}{
		{nil, "", 200}, {nil, "https://evil.example", 403}, {nil, "null", 403}, {nil, "http://example.com", 200}, // its own pages: the request is for example.com
		{[]string{"https://wallet.example"}, "https://wallet.example", 200}, {[]string{"https://wallet.example"}, "https://evil.example", 403}, {[]string{"*"}, "https://any.example", 200},
	} {
		r, w := httptest.NewRequest(http.MethodGet, "http://example.com/websocket", nil), httptest.NewRecorder()
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		web(c.origins, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s where %v may: %d, want %d", c.origin, c.origins, w.Code, c.want)
		}
	}
}

// far is a connection from elsewhere.
type far struct {
	net.Conn
	from string
}

func (f far) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.from)} }
func (f far) Close() error         { return nil }

// dials are connections that come one after the other.
type dials struct {
	net.Listener
	from []string
}

func (d *dials) Accept() (net.Conn, error) {
	if len(d.from) == 0 {
		return nil, net.ErrClosed
	}
	c := far{from: d.from[0]}
	d.from = d.from[1:]
	return c, nil
}

func TestConnectionsOfOneAddressAreLimited(t *testing.T) {
	d := &dials{}
	for range 2 * maxOfAddress {
		d.from = append(d.from, "203.0.113.1", "127.0.0.1")
	}
	l, got := limit(d), map[string][]net.Conn{}
	take := func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			host, _ := hostOf(c.RemoteAddr().String())
			got[host] = append(got[host], c)
		}
	}
	take()
	if len(got["203.0.113.1"]) != maxOfAddress || len(got["127.0.0.1"]) != 2*maxOfAddress {
		t.Errorf("%d of a stranger, %d of this machine", len(got["203.0.113.1"]), len(got["127.0.0.1"]))
	}
	for range 2 { // the second does not count
		if err := got["203.0.113.1"][0].Close(); err != nil {
			t.Error(err)
		}
	}
	d.from = []string{"203.0.113.1", "203.0.113.1"}
	if take(); len(got["203.0.113.1"]) != maxOfAddress+1 {
		t.Errorf("%d after one was closed", len(got["203.0.113.1"]))
	}
}
