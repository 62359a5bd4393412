package fetch

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// ErrInside says that an address leads to this machine or its network, where others trust whoever calls.
var ErrInside = errors.New("leads to this machine or its network, and only an address that you name yourself may")

// reserved are networks in which machines of a user may be, beside those that package netip knows (RFC 6890), and those in which another
// address stands for one of IPv4 that may be such. Those of documents and benchmarks are left out: they are nobody's, and resolvers in front of
// transparent proxies answer with them for hosts of the internet.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// IsPublic reports whether an address is of the internet.
func IsPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Zone() != "" {
		return false
	}
	for _, p := range reserved {
		if p.Contains(ip) {
			return false
		}
	}
	return true
}

// onlyPublic refuses a connection when its address is known: a name may lead anywhere, and elsewhere the next time.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !IsPublic(at.Addr()) {
		return fmt.Errorf("%s %w", at.Addr(), ErrInside)
	}
	return nil
}

// NewClient returns a client that follows no redirects.
func NewClient(t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// publicTransport connects to public addresses alone. Where the user has set a proxy, that decides where names lead.
type publicTransport struct{ direct, proxied *http.Transport }

func newPublicTransport() *publicTransport {
	t := &publicTransport{direct: cloneTransport(), proxied: cloneTransport()}
	t.direct.Proxy = nil
	t.direct.DialContext = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Control: onlyPublic}).DialContext
	return t
}

func cloneTransport() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() }

// RoundTrip implements http.RoundTripper.
func (t *publicTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	p, err := t.proxied.Proxy(r)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return t.direct.RoundTrip(r)
	}
	if ip, err := netip.ParseAddr(r.URL.Hostname()); isLoopback(r.URL) || err == nil && !IsPublic(ip) {
		return nil, fmt.Errorf("%s %w", r.URL.Host, ErrInside)
	}
	return t.proxied.RoundTrip(r)
}
