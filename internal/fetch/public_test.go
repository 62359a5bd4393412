package fetch

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestPublicAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "151.101.0.223": true, "203.0.113.80": true, "198.18.0.1": true,
		"127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.31.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "0.0.0.0": false, "::": false,
		"100.64.0.1": false, "fe80::1": false, "fc00::1": false, "fec0::1": false, "224.0.0.1": false, "255.255.255.255": false, "::ffff:10.0.0.1": false,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false, "::7f00:1": false, "240.0.0.1": false,
	} {
		if got := IsPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// A proxy is not asked for what leads inside.
func TestProxiesLeadNowhereInside(t *testing.T) {
	tr := newPublicTransport()
	tr.proxied.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("http://127.0.0.1:1") }
	for _, at := range []string{"https://localhost/", "https://10.0.0.1/", "https://[::1]/"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := tr.RoundTrip(r)
		if err == nil || !strings.Contains(err.Error(), ErrInside.Error()) {
			t.Errorf("%s: %v", at, err)
		}
		if err == nil {
			_ = a.Body.Close()
		}
	}
}
