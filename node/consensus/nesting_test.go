package consensus

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestDepthOfJSON(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `1`: 0, `{}`: 1, `{"a":[{}]}`: 3, `"[[["`: 0, `["\"[["]`: 1, `["\\",[]]`: 2, `[[[`: 3, `]]][[`: 0,
	} {
		if got := depthOf([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

func TestDeepBodiesAreRefused(t *testing.T) {
	read := 0
	h := limitNesting(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		n, _ := req.Body.Read(make([]byte, 1<<10))
		read = n
	}))
	for depth, code := range map[int]int{1: 200, maxNesting: 200, maxNesting + 1: 400, 100_000: 400} {
		w := httptest.NewRecorder()
		body := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/cosmos/tx/v1beta1/simulate", strings.NewReader(body)))
		if w.Code != code || code == 200 && read != len(body) {
			t.Errorf("depth %d: %d, %d bytes of %d handed on", depth, w.Code, read, len(body))
		}
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != 200 {
		t.Errorf("without a body: %d", w.Code)
	}
}
