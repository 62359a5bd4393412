package consensus

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cometbft/cometbft/libs/log"
	"github.com/cometbft/cometbft/rpc/core"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	rpcserver "github.com/cometbft/cometbft/rpc/jsonrpc/server"
	rpctypes "github.com/cometbft/cometbft/rpc/jsonrpc/types"
	"github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/internal/testkit/memory"
)

// recorder takes a reply, whenever it comes.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetWriteDeadline(time.Time) error { return nil }

// A batch of ten full blocks took 181 MB while it was made, and four are made at a time.
func TestBatchesAreMadeOneByOne(t *testing.T) {
	made, size, kept := 0, 4<<20, true
	routes := core.RoutesMap{"block": rpcserver.NewRPCFunc(func(*rpctypes.Context) (*coretypes.ResultBlock, error) {
		made++
		return &coretypes.ResultBlock{Block: &types.Block{Data: types.Data{Txs: types.Txs{make([]byte, size)}}}}, nil
	}, "")}
	budget := newReplyBudget()
	h := budget.http(boundedRPC(http.NewServeMux(), routes, log.NewNopLogger()))
	ask := func(body string) *httptest.ResponseRecorder {
		made = 0
		req, w := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), recorder{httptest.NewRecorder()}
		if !kept {
			w.Body = nil
		}
		req.RemoteAddr = "203.0.113.1:1"
		h.ServeHTTP(w, req)
		return w.ResponseRecorder
	}
	call := func(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"block"}`, i) }
	batch := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, call(i))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	const whole = 112 << 20
	kept = false
	if peak := memory.Peak(func() { ask(batch(10)) }, func(peak int64) bool { return peak < whole }); made != 10 || peak > whole {
		t.Errorf("%d blocks were made, %d MB at once", made, peak>>20)
	} else {
		t.Logf("%d MB at once", peak>>20)
	}
	kept = true
	budget.maxOfAddress = 20 << 20 // three blocks
	var w *httptest.ResponseRecorder
	const most = 64 << 20
	peak := memory.Peak(func() { w = ask(batch(10)) }, func(peak int64) bool { return peak < most })
	if w.Code != http.StatusServiceUnavailable || made > 4 || peak > most {
		t.Errorf("%d blocks were made, %d MB at once, and %d is told", made, peak>>20, w.Code)
	}
	size = 10
	for body, want := range map[string]struct {
		made  int
		reply string
	}{
		batch(10): {10, "list of 10"}, batch(2): {2, "list of 2"}, batch(11): {0, "one"}, batch(1): {1, "one"}, call(1): {1, "one"},
		"[" + call(1) + `,{"jsonrpc":"2.0","id":2,"method":"none"}]`: {1, "list of 2"}, "[" + call(1) + `,{"jsonrpc":"2.0","method":"block"}]`: {1, "list of 1"},
		"[" + call(1) + ",null]": {1, "list of 1"}, "[" + batch(2) + "," + batch(2) + "]": {0, "one"}, "[]": {0, "nothing"}, "[1,2]": {0, "one"}, `[null,null]`: {0, "nothing"},
	} {
		w := ask(body)
		if reply := replyOf(w.Body.Bytes()); made != want.made || reply != want.reply {
			t.Errorf("%.90s: %d made, want %d; %s, want %s: %.200s", body, made, want.made, reply, want.reply, w.Body)
		}
	}
	if budget.all != 0 {
		t.Errorf("%d bytes are held for ever", budget.all)
	}
}

// replyOf says what a body holds: "nothing", "one" reply, or a "list of 2".
func replyOf(body []byte) string {
	var list []rpctypes.RPCResponse
	switch {
	case len(body) == 0:
		return "nothing"
	case json.Unmarshal(body, &list) == nil:
		return fmt.Sprintf("list of %d", len(list))
	case json.Unmarshal(body, new(rpctypes.RPCResponse)) == nil:
		return "one"
	}
	return "no JSON"
}

// A reply that was written in parts had a comma before each.
func TestRepliesOfABatchMayBeWrittenInParts(t *testing.T) {
	h := oneByOne(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0",`))
		_, _ = w.Write([]byte(`"id":1,"result":{}}`))
	}))
	const call = `{"jsonrpc":"2.0","id":1,"method":"x"}`
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("["+call+","+call+"]")))
	if got := replyOf(w.Body.Bytes()); got != "list of 2" {
		t.Errorf("%s: %s", got, w.Body)
	}
}
