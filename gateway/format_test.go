package gateway_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tally-network/tally/gateway"
	"github.com/tally-network/tally/internal/testkit/jsonvalid"
)

// person is a schema as clients make one of a type.
const person = `{"type":"object","properties":{"name":{"type":"string","maxLength":20},"age":{"type":"integer","minimum":0,"maximum":150},"tags":{"type":"array","items":{"enum":["a","b"]},"maxItems":3}},"required":["name","age","tags"],"additionalProperties":false}`

// Replies of every API have the form that is asked for, whole and in a stream.
func TestFormats(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	valid := func(what, schema string, text any) {
		t.Helper()
		if err := jsonvalid.Check(schema, text.(string)); err != nil {
			t.Errorf("%s: %s: %v", what, text, err)
		}
	}
	const object = `{"type":"object"}`
	for _, x := range []struct{ what, path, body, schema string }{
		{"chat", "/v1/chat/completions", user("hello", `,"seed":5,"response_format":{"type":"json_schema","json_schema":{"name":"person","strict":true,"schema":`+person+`}}`), person},
		{"chat, any object", "/v1/chat/completions", user("hello", `,"seed":5,"response_format":{"type":"json_object"}`), object},
		{"responses", "/v1/responses", `{"model":"hello","input":"Hi","text":{"format":{"type":"json_schema","name":"person","schema":` + person + `}}}`, person},
		{"messages", "/v1/messages", said("hello", `,"output_format":{"type":"json_schema","schema":`+person+`}`), person},
		{"messages, configured", "/v1/messages", said("hello", `,"output_config":{"format":{"type":"json_schema","schema":`+person+`}}`), person},
		{"ollama", "/api/chat", user("hello", `,"stream":false,"format":`+person), person},
		{"ollama, any object", "/api/chat", user("hello", `,"stream":false,"format":"json"`), object},
		{"ollama, generated", "/api/generate", `{"model":"hello","prompt":"Hi","stream":false,"format":` + person + `}`, person},
		{"completion", "/v1/completions", `{"model":"plain","prompt":"Hi","max_tokens":3000,"response_format":{"type":"json_schema","json_schema":{"schema":` + person + `}}}`, person},
	} {
		a := s.ask(t, "POST", x.path, strings.Replace(x.body, `"max_tokens":100`, `"max_tokens":3000`, 1), "Tally-Seed", "5")
		var text any
		for _, path := range [][]any{
			{"choices", 0, "message", "content"}, {"choices", 0, "text"}, {"output", 0, "content", 0, "text"}, {"content", 0, "text"}, {"message", "content"}, {"response"},
		} {
			if got, ok := dig(t, a.body, path...).(string); ok {
				text = got
			}
		}
		if a.status != 200 || text == nil {
			t.Errorf("%s: %d %s", x.what, a.status, a.body)
			continue
		}
		valid(x.what, x.schema, text)
	}
	a := s.ask(t, "POST", "/v1/responses", `{"model":"hello","input":"Hi","text":{"format":{"type":"json_object"}}}`)
	if dig(t, a.body, "text", "format", "type") != "json_object" {
		t.Errorf("%s", a.body)
	}
	var streamed strings.Builder
	_, data := events(t, s.ask(t, "POST", "/v1/chat/completions", user("hello", `,"seed":5,"stream":true,"response_format":{"type":"json_schema","json_schema":{"schema":`+person+`}}`)).body)
	for _, d := range data[:len(data)-1] {
		if text, ok := dig(t, d, "choices", 0, "delta", "content").(string); ok {
			streamed.WriteString(text)
		}
	}
	valid("a stream", person, streamed.String())
}

// A model that must call a tool does, with arguments of its schema; one that may, beside a format, does either.
func TestForcedCalls(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	tools := `,"tools":[{"type":"function","function":{"name":"note","parameters":` + person + `,"strict":true}},{"type":"function","function":{"name":"stop"}}]`
	for choice, names := range map[string]string{`"required"`: "note stop", `{"type":"function","function":{"name":"note"}}`: "note", `{"type":"function","name":"stop"}`: "stop"} {
		for _, stream := range []string{"", `,"stream":true`} {
			a := s.ask(t, "POST", "/v1/chat/completions", user("hello", `,"seed":11,"tool_choice":`+choice+tools+stream))
			made, reason := []any{"choices", 0, "message"}, any(nil)
			from := a.body
			if stream != "" {
				_, data := events(t, a.body)
				made = []any{"choices", 0, "delta"}
				for _, d := range data[:len(data)-1] {
					if dig(t, d, "choices", 0, "delta", "tool_calls", 0) != nil {
						from = d
					}
					reason = dig(t, d, "choices", 0, "finish_reason")
				}
			} else {
				reason = dig(t, from, "choices", 0, "finish_reason")
			}
			f, _ := dig(t, from, append(made, "tool_calls", 0, "function")...).(map[string]any)
			if f == nil || !strings.Contains(names, f["name"].(string)) || reason != "tool_calls" {
				t.Errorf("%s%s: %s", choice, stream, a.body)
				continue
			}
			schema := person
			if f["name"] == "stop" {
				schema = `{"type":"object"}`
			}
			if err := jsonvalid.Check(schema, f["arguments"].(string)); err != nil {
				t.Errorf("%s: %s: %v", choice, f["arguments"], err)
			}
		}
	}
	a := s.ask(t, "POST", "/v1/messages", strings.Replace(said("hello", `,"tool_choice":{"type":"tool","name":"weather"}`+anthropicTool), `"max_tokens":100`, `"max_tokens":3000`, 1), "Tally-Seed", "3")
	if dig(t, a.body, "content", 0, "name") != "weather" || dig(t, a.body, "stop_reason") != "tool_use" {
		t.Errorf("%s", a.body)
	}
	const small = `{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}`
	calls, texts := 0, 0
	for seed := range 10 {
		a := s.ask(t, "POST", "/v1/chat/completions", user("hello", weather+`,"response_format":{"type":"json_schema","json_schema":{"schema":`+small+`}},"seed":`+strconv.Itoa(seed)))
		if dig(t, a.body, "choices", 0, "finish_reason") == "tool_calls" {
			calls++
			continue
		}
		texts++
		if err := jsonvalid.Check(small, dig(t, a.body, "choices", 0, "message", "content").(string)); err != nil {
			t.Errorf("%s: %v", a.body, err)
		}
	}
	if calls == 0 || texts == 0 {
		t.Errorf("%d calls, %d texts", calls, texts)
	}
}
