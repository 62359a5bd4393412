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
	h := budget.http(rpcOver(http.NewServeMux(), routes, log.NewNopLogger()))
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
	for body, want := range map[string]struct{ replies, made int }{
		batch(10): {10, 10}, batch(2): {2, 2}, batch(11): {-1, 0}, batch(1): {-1, 1}, call(1): {-1, 1},
		"[" + call(1) + `,{"jsonrpc":"2.0","id":2,"method":"none"}]`: {2, 1}, "[" + call(1) + `,{"jsonrpc":"2.0","method":"block"}]`: {1, 1},
		"[" + call(1) + ",null]": {1, 1}, "[" + batch(2) + "," + batch(2) + "]": {-1, 0}, "[]": {-2, 0}, "[1,2]": {-1, 0}, `[null,null]`: {-2, 0},
	} {
		w := ask(body)
		var list []rpctypes.RPCResponse
		switch err := json.Unmarshal(w.Body.Bytes(), &list); {
		case made != want.made, want.replies >= 0 && (err != nil || len(list) != want.replies), want.replies == -1 && !json.Valid(w.Body.Bytes()), want.replies == -2 && w.Body.Len() != 0:
			t.Errorf("%.90s: %d made, %v: %.200s", body, made, err, w.Body)
		}
	}
	if budget.all != 0 {
		t.Errorf("%d bytes are held for ever", budget.all)
	}
}
