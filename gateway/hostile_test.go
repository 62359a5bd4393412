package gateway_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tally-network/tally/gateway/anthropic"
	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/ollama"
	"github.com/tally-network/tally/gateway/openai"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/internal/testkit/memory"
	"github.com/tally-network/tally/internal/testkit/replytest"
)

// Bodies that are made to become large take memory in proportion to their bytes.
func TestHostileBodies(t *testing.T) {
	const size = 4 << 20
	fill := func(before, each, after string) string {
		return before + strings.TrimSuffix(strings.Repeat(each, (size-len(before)-len(after))/len(each)), ",") + after
	}
	bodies := map[string]string{
		"objects": fill(`{"model":"hello","max_tokens":1,"messages":[`, `{},`, `]}`), "nulls": fill(`{"messages":[`, `null,`, `]}`), "tools": fill(`{"tools":[`, `{},`, `]}`),
		"calls": fill(`{"messages":[{"role":"assistant","tool_calls":[`, `{},`, `]}]}`), "texts": fill(`{"input":[`, `"",`, `]}`), "keys": fill(`{"logit_bias":{`, `"1":1,`, `}}`),
		"tokens": fill(`{"model":"plain","prompt":[`, `1,`, `]}`), "parts": fill(`{"messages":[{"role":"user","content":[`, `{},`, `]}]}`), "brackets": fill("", "[", ""), "quotes": fill(`{"model":"`, `\"`, `"}`),
		"some objects": `{"model":"hello","messages":[` + strings.TrimSuffix(strings.Repeat(`{},`, 1<<16), ",") + `]}`, "some parts": `{"messages":[{"role":"user","content":[` + strings.TrimSuffix(strings.Repeat(`{},`, 1<<16), ",") + `]}]}`,
	}
	replies := &reply.Service{Models: replytest.New(t, scripts)}
	for _, a := range []api.API{openai.New(replies), anthropic.New(replies), ollama.New(replies)} {
		for _, route := range a.Routes {
			if route.Request == nil {
				continue
			}
			for name, body := range bodies { // each alone
				var err error
				took := memory.Allocated(func() {
					err = route.Serve(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body)))
				})
				if took > memory.Slack {
					t.Errorf("%s %s: %d MiB (%v)", route.Path, name, took>>20, err)
				}
			}
		}
	}
}
