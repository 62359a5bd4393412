package library

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// What a page or a redirect names leads to no machine of the user's network, unless the user has named it.
func TestPagesLeadNowhereInside(t *testing.T) {
	var reached atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(inside.Close)
	port := inside.URL[strings.LastIndexByte(inside.URL, ':')+1:]
	w := newWorld(t)
	for i, at := range []string{inside.URL, "http://localhost:" + port, "http://[::1]:" + port, "https://127.0.0.1:" + port, "https://169.254.169.254", "https://[::ffff:127.0.0.1]:" + port, "https://2130706433:" + port} {
		project := fmt.Sprintf("p%d", i)
		w.mux.HandleFunc("/simple/"+project+"/", func(a http.ResponseWriter, _ *http.Request) {
			a.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(a, `<a href="%s/%s-1-py3-none-any.whl">x</a>`, at, project)
		})
		w.mux.Handle("/"+project+".gguf", http.RedirectHandler(at+"/a.gguf", http.StatusFound))
		for _, source := range []string{"pypi:" + project, w.URL + "/" + project + ".gguf"} {
			if at == "https://2130706433:"+port { // a name that some resolvers take for an address, and others for none
				if _, err := w.Pull(t.Context(), source, Options{}); err == nil {
					t.Errorf("%s by %s", at, source)
				}
				continue
			}
			w.refuses(t, source, errInside.Error())
		}
	}
	// Somebody elsewhere does not reach it by naming it either.
	for _, source := range []string{inside.URL + "/a.gguf", "https://127.0.0.1:" + port + "/a.gguf"} {
		if _, err := w.Pull(t.Context(), source, Options{Public: true}); err == nil || !strings.Contains(err.Error(), errInside.Error()) {
			t.Errorf("%s: %v", source, err)
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d requests came through", n)
	}
}

func TestPublicAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "151.101.0.223": true, "203.0.113.80": true, "198.18.0.1": true,
		"127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.31.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "0.0.0.0": false, "::": false,
		"100.64.0.1": false, "fe80::1": false, "fc00::1": false, "fec0::1": false, "224.0.0.1": false, "255.255.255.255": false, "::ffff:10.0.0.1": false,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false, "::7f00:1": false, "240.0.0.1": false,
	} {
		if got := isPublic(netip.MustParseAddr(text)); got != want {
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
		if err == nil || !strings.Contains(err.Error(), errInside.Error()) {
			t.Errorf("%s: %v", at, err)
		}
		if err == nil {
			_ = a.Body.Close()
		}
	}
}
