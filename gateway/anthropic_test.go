package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/gateway"
)

func said(model, more string) string { return user(model, `,"max_tokens":100`+more) }

const anthropicTool = `,"tools":[{"name":"weather","input_schema":{"type":"object"}}]`

func TestAnthropicMessages(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	a := s.ask(t, "POST", "/v1/messages", said("hello", `,"system":[{"type":"text","text":"Brief.","cache_control":{"type":"ephemeral"}}],"stop_sequences":["wö","xyz"]`), "Tally-Seed", "18446744073709551615")
	if dig(t, a.body, "type") != "message" || dig(t, a.body, "content", 0, "text") != "Hello there, " || dig(t, a.body, "stop_reason") != "stop_sequence" ||
		dig(t, a.body, "stop_sequence") != "wö" || !strings.Contains(string(a.body), `"seed":18446744073709551615`) || dig(t, a.body, "usage", "input_tokens").(float64) < 10 {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "POST", "/v1/messages", user("long", `,"max_tokens":2`)); dig(t, a.body, "stop_reason") != "max_tokens" || dig(t, a.body, "usage", "output_tokens") != 2.0 {
		t.Errorf("%s", a.body)
	}
	a = s.ask(t, "POST", "/v1/messages", said("caller", anthropicTool))
	if dig(t, a.body, "content", 1, "type") != "tool_use" || dig(t, a.body, "content", 1, "input", "city") != "Zürich" || dig(t, a.body, "stop_reason") != "tool_use" {
		t.Errorf("%s", a.body)
	}
	history := `{"model":"hello","max_tokens":100,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"text","text":"Wait."},{"type":"tool_use","id":"t","name":"weather","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"rain"}]},{"type":"text","text":"So?"}]}]}`
	if a := s.ask(t, "POST", "/v1/messages", history); dig(t, a.body, "stop_reason") != "end_turn" {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "POST", "/v1/messages/count_tokens", user("hello", "")); dig(t, a.body, "input_tokens").(float64) < 10 {
		t.Errorf("%s", a.body)
	}
}

func TestAnthropicStreamed(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	a := s.ask(t, "POST", "/v1/messages", said("caller", anthropicTool+`,"stream":true`))
	names, data := events(t, a.body)
	text, input := "", ""
	for i, d := range data {
		if dig(t, d, "type") != names[i] {
			t.Errorf("event %s is %s", names[i], d)
		}
		piece, _ := dig(t, d, "delta", "text").(string)
		part, _ := dig(t, d, "delta", "partial_json").(string)
		text, input = text+piece, input+part
	}
	want := []string{"message_start", "ping", "content_block_start", "content_block_delta", "content_block_stop", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}
	if got := slices.Compact(names); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	last := data[len(data)-2]
	if text != "Let me see." || input != `{"city":"Zürich"}` || dig(t, last, "delta", "stop_reason") != "tool_use" || dig(t, last, "tally", "seed") == nil || dig(t, last, "usage", "output_tokens").(float64) < 10 {
		t.Errorf("%q %q %s", text, input, last)
	}
	names, data = events(t, s.ask(t, "POST", "/v1/messages", said("breaks", `,"stream":true`)).body)
	if n := len(names) - 1; names[n] != "error" || dig(t, data[n], "error", "type") != "api_error" {
		t.Errorf("%v %s", names, data)
	}
}

func TestAnthropicRefuses(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	for _, x := range []struct {
		body   string
		status int
		kind   string
		says   string
	}{
		{user("hello", ""), 400, "invalid_request_error", "max_tokens is missing"},
		{said("hello", `,"thinking":{"type":"enabled","budget_tokens":1024}`), 400, "invalid_request_error", "thinking is not supported"},
		{said("hello", `,"temperature":1.5`), 400, "invalid_request_error", "want 0 to 1"},
		{said("hello", `,"tool_choice":{"type":"any"}`), 400, "invalid_request_error", "not among the tools"},
		{said("hello", `,"tool_choice":{"type":"some"}`+anthropicTool), 400, "invalid_request_error", "use auto, any, tool or none"},
		{said("hello", `,"output_format":{"type":"json_schema","schema":{"not":{}}}`), 400, "invalid_request_error", `output_format.schema: the schema: the keyword "not" is not supported`},
		{said("hello", `,"output_config":{"effort":"low"}`), 400, "invalid_request_error", "effort is not supported"},
		{said("hello", `,"tools":[{"type":"bash_20250124","name":"bash"}]`), 400, "invalid_request_error", "bash_20250124"},
		{said("hello", `,"stop_sequences":"x"`), 400, "invalid_request_error", "stop_sequences is a string: want an array"},
		{`{"model":"hello","max_tokens":1,"messages":[]}`, 400, "invalid_request_error", "0 messages"},
		{`{"model":"hello","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image"}]}]}`, 400, "invalid_request_error", "messages.0.content.0 is of type"},
		{said("none", ""), 404, "not_found_error", "not found"},
		{said("broken", ""), 500, "api_error", "log"},
		{`{`, 400, "invalid_request_error", "not JSON"},
	} {
		a := s.ask(t, "POST", "/v1/messages", x.body)
		message, _ := dig(t, a.body, "error", "message").(string)
		if a.status != x.status || dig(t, a.body, "type") != "error" || dig(t, a.body, "error", "type") != x.kind || !strings.Contains(message, x.says) || dig(t, a.body, "request_id") == nil {
			t.Errorf("%.80s: %d %s, want %d %s %q", x.body, a.status, a.body, x.status, x.kind, x.says)
		}
	}
	if a := s.ask(t, "POST", "/v1/messages", said("hello", ""), "Tally-Seed", "x"); a.status != 400 {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "GET", "/v1/messages/batches", ""); a.status != 404 || dig(t, a.body, "type") != "error" {
		t.Errorf("%s", a.body)
	}
}
