package gateway_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tally-network/tally/gateway"
	"github.com/tally-network/tally/gateway/anthropic"
	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/ollama"
	"github.com/tally-network/tally/gateway/openai"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/internal/testkit/replytest"
)

// fuzz gives bodies to all routes of an API: each is answered, or refused in the API's shape.
func fuzz(f *testing.F, of func(*reply.Service) api.API, wellFormed func(fault []byte) bool, seeds ...string) {
	a := of(&reply.Service{Models: replytest.New(f, scripts)})
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, route := range a.Routes {
			if route.Request == nil {
				continue
			}
			r := httptest.NewRequest(route.Method, "/", bytes.NewReader(body))
			w := httptest.NewRecorder()
			err := route.Serve(w, r)
			if err != nil && w.Body.Len() == 0 {
				fault := api.FaultOf(err)
				a.Fail(w, fault)
				if !wellFormed(w.Body.Bytes()) || fault.Status == http.StatusInternalServerError && !bytes.Contains(body, []byte("br")) {
					t.Fatalf("%s: %d %s: %v", route.Path, w.Code, w.Body, err)
				}
				continue
			}
			for line := range strings.Lines(w.Body.String()) {
				line = strings.TrimSpace(strings.TrimPrefix(line, "data: "))
				if line != "" && line != "[DONE]" && !strings.HasPrefix(line, "event: ") && !json.Valid([]byte(line)) {
					t.Fatalf("%s: line %q", route.Path, line)
				}
			}
		}
	})
}

func hasMessage(path ...string) func([]byte) bool {
	return func(text []byte) bool {
		var v any
		_ = json.Unmarshal(text, &v)
		for _, p := range path {
			o, _ := v.(map[string]any)
			v = o[p]
		}
		s, _ := v.(string)
		return s != ""
	}
}

func FuzzOpenAI(f *testing.F) {
	fuzz(f, openai.New, hasMessage("error", "message"),
		user("hello", `,"stream":true,"n":2,"stop":["a"],"logprobs":true,"top_logprobs":3,"logit_bias":{"1":2}`), user("caller", weather), user("breaks", `,"stream":true`),
		`{"model":"plain","prompt":["a",[1]],"logprobs":2,"max_tokens":2}`, `{"model":"vectors","input":["a"],"encoding_format":"base64"}`,
		`{"model":"caller","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call","name":"f","arguments":"{}"}],"stream":true,"tools":[{"type":"function","name":"f"}]}`,
		`{"model":"hello","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}]}`,
	)
}

func FuzzAnthropic(f *testing.F) {
	fuzz(f, anthropic.New, hasMessage("error", "message"),
		said("hello", `,"stream":true,"stop_sequences":["e"],"system":[{"type":"text","text":"a"}],"top_k":3`), said("caller", anthropicTool), said("breaks", ""),
		`{"model":"hello","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}]}`,
	)
}

func FuzzOllama(f *testing.F) {
	fuzz(f, ollama.New, hasMessage("error"),
		user("hello", `,"options":{"stop":["a"],"num_ctx":100,"seed":-1},"keep_alive":"1m"`), user("caller", weather+`,"stream":false`), `{"model":"hello:latest","prompt":"x","raw":true,"keep_alive":1e300}`,
		`{"model":"vectors","input":["a","b"],"prompt":"x"}`, `{"name":"hello","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]}]}`,
	)
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("keys: [{name: a, sha256: " + strings.Repeat("a0", 32) + ", budget: 1, requests_per_minute: 3}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if k, err := gateway.ReadKeys(text); err == nil && k.Empty() {
			t.Fatal("keys that are none")
		}
	})
}
