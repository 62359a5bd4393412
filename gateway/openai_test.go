package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tally-network/tally/gateway"
)

func user(model, more string) string {
	return `{"model":"` + model + `","messages":[{"role":"user","content":"Hi"}]` + more + `}`
}

const weather = `,"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]`

func TestOpenAIChat(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	a := s.ask(t, "POST", "/v1/chat/completions", user("hello", `,"n":2,"seed":7,"user":"u","metadata":{},"store":false,"temperature":0,"logit_bias":{"5":-100}`), "Tally-Date", "2026-02-03")
	for _, x := range []struct {
		want any
		path []any
	}{
		{"chat.completion", []any{"object"}}, {"hello", []any{"model"}}, {"fp_abababababab", []any{"system_fingerprint"}},
		{"assistant", []any{"choices", 0, "message", "role"}}, {"Hello there, wörld.", []any{"choices", 0, "message", "content"}},
		{"stop", []any{"choices", 1, "finish_reason"}}, {1.0, []any{"choices", 1, "index"}}, {nil, []any{"choices", 0, "logprobs"}},
		{7.0, []any{"tally", "seed"}}, {strings.Repeat("ab", 32), []any{"tally", "model"}}, {"2026-02-03", []any{"tally", "date"}},
		{a.header.Get("X-Request-Id"), []any{"tally", "request"}},
	} {
		if got := dig(t, a.body, x.path...); got != x.want {
			t.Errorf("%v is %v, want %v: %s", x.path, got, x.want, a.body)
		}
	}
	u := func(key string) float64 { return dig(t, a.body, "usage", key).(float64) }
	if u("prompt_tokens") < 10 || u("completion_tokens") < 20 || u("total_tokens") != u("prompt_tokens")+u("completion_tokens") {
		t.Errorf("%s", a.body)
	}
	drawn := s.ask(t, "POST", "/v1/chat/completions", user("hello", ""))
	if seed := dig(t, drawn.body, "tally", "seed").(float64); seed < 1 || seed >= 1<<53 {
		t.Errorf("the seed that was drawn is %v", seed)
	}
}

func TestOpenAIChatStreamed(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	a := s.ask(t, "POST", "/v1/chat/completions", user("hello", `,"stream":true,"stream_options":{"include_usage":true},"stop":["rld"],"logprobs":true,"top_logprobs":2`))
	_, data := events(t, a.body)
	n := len(data)
	if a.header.Get("Content-Type") != "text/event-stream" || string(data[n-1]) != "[DONE]" {
		t.Fatalf("%v %s", a.header, a.body)
	}
	text, logprobs := "", ""
	for _, d := range data[:n-2] {
		piece, _ := dig(t, d, "choices", 0, "delta", "content").(string)
		text += piece
		tokens, _ := dig(t, d, "choices", 0, "logprobs", "content").([]any)
		for _, token := range tokens {
			m := token.(map[string]any)
			logprobs += m["token"].(string)
			if m["logprob"] != -0.5 || len(m["top_logprobs"].([]any)) != 2 {
				t.Errorf("%v", m)
			}
		}
	}
	if text != "Hello there, wö" || !strings.HasPrefix(logprobs, "Hello there, w") {
		t.Errorf("%q, logprobs %q", text, logprobs)
	}
	if dig(t, data[0], "choices", 0, "delta", "role") != "assistant" || dig(t, data[n-3], "choices", 0, "finish_reason") != "stop" || dig(t, data[n-3], "tally", "seed") == nil {
		t.Errorf("%s\n%s", data[0], data[n-3])
	}
	if dig(t, data[n-2], "usage", "completion_tokens").(float64) < 10 || len(dig(t, data[n-2], "choices").([]any)) != 0 {
		t.Errorf("%s", data[n-2])
	}
}

func TestOpenAITools(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	a := s.ask(t, "POST", "/v1/chat/completions", user("caller", weather))
	message := []any{"choices", 0, "message"}
	if dig(t, a.body, append(message, "content")...) != "Let me see." || dig(t, a.body, append(message, "tool_calls", 0, "function", "arguments")...) != `{"city":"Zürich"}` ||
		dig(t, a.body, "choices", 0, "finish_reason") != "tool_calls" {
		t.Errorf("%s", a.body)
	}
	a = s.ask(t, "POST", "/v1/chat/completions", user("caller", weather+`,"stream":true`))
	_, data := events(t, a.body)
	found := false
	for _, d := range data[:len(data)-1] {
		if dig(t, d, "choices", 0, "delta", "tool_calls", 0, "function", "name") == "weather" {
			found = dig(t, d, "choices", 0, "delta", "tool_calls", 0, "index") == 0.0
		}
	}
	if !found {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "POST", "/v1/chat/completions", user("caller", weather+`,"tool_choice":"none"`)); !strings.Contains(dig(t, a.body, append(message, "content")...).(string), "weather") {
		t.Errorf("%s", a.body)
	}
	history := `{"model":"hello","messages":[{"role":"developer","content":[{"type":"text","text":"Be brief."}]},{"role":"user","content":"Hi"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"weather","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"abcdefghi","content":"rain"}]}`
	if a := s.ask(t, "POST", "/v1/chat/completions", history); a.status != 200 {
		t.Errorf("%s", a.body)
	}
}

func TestOpenAICompletions(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	a := s.ask(t, "POST", "/v1/completions", `{"model":"plain","prompt":["a",  "b"],"max_tokens":3,"logprobs":1,"n":2}`)
	if dig(t, a.body, "choices", 3, "finish_reason") != "length" || dig(t, a.body, "choices", 3, "index") != 3.0 || dig(t, a.body, "usage", "completion_tokens") != 12.0 ||
		dig(t, a.body, "choices", 0, "logprobs", "token_logprobs", 2) != -0.5 || dig(t, a.body, "choices", 0, "logprobs", "text_offset", 0) != 0.0 {
		t.Errorf("%s", a.body)
	}
	for _, prompt := range []string{`"x"`, `[66, 67]`, `[[66],[67,68]]`} {
		if a := s.ask(t, "POST", "/v1/completions", `{"model":"plain","prompt":`+prompt+`}`); a.status != 200 || dig(t, a.body, "choices", 0, "text") != "once upon" {
			t.Errorf("%s: %s", prompt, a.body)
		}
	}
	a = s.ask(t, "POST", "/v1/completions", `{"model":"plain","prompt":"x","stream":true,"stream_options":{"include_usage":true}}`)
	_, data := events(t, a.body)
	text := ""
	for _, d := range data[:len(data)-2] {
		text += dig(t, d, "choices", 0, "text").(string)
	}
	if text != "once upon" || dig(t, data[len(data)-3], "tally", "seed") == nil {
		t.Errorf("%s", a.body)
	}
}

func TestOpenAIModelsAndEmbeddings(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	if a := s.ask(t, "GET", "/v1/models", ""); dig(t, a.body, "object") != "list" || dig(t, a.body, "data", 0, "id") != "breaks" || dig(t, a.body, "data", 0, "created").(float64) < 1e9 {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "GET", "/v1/models/hello", ""); dig(t, a.body, "id") != "hello" {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "GET", "/v1/models/org/none", ""); a.status != 404 || dig(t, a.body, "error", "code") != "model_not_found" {
		t.Errorf("%s", a.body)
	}
	a := s.ask(t, "POST", "/v1/embeddings", `{"model":"vectors","input":["a","bcd"]}`)
	if dig(t, a.body, "data", 1, "embedding", 0) != 3.0 || dig(t, a.body, "usage", "prompt_tokens").(float64) < 2 {
		t.Errorf("%s", a.body)
	}
	tokens, err := s.Tokenizer.Encode("bcd", false)
	if err != nil {
		t.Fatal(err)
	}
	ids, _ := json.Marshal([][]int32{tokens, tokens})
	if a := s.ask(t, "POST", "/v1/embeddings", fmt.Sprintf(`{"model":"vectors","input":%s}`, ids)); dig(t, a.body, "data", 1, "embedding", 0) != 3.0 || dig(t, a.body, "usage", "total_tokens") != float64(2*len(tokens)) {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "POST", "/v1/embeddings", `{"model":"vectors","input":"a","dimensions":1}`); dig(t, a.body, "data", 0, "embedding", 0) != 1.0 {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "POST", "/v1/embeddings", `{"model":"vectors","input":"a","encoding_format":"base64"}`); dig(t, a.body, "data", 0, "embedding") != "AACAPwAAAD8AAIC/" {
		t.Errorf("%s", a.body)
	}
}

func TestOpenAIResponses(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	a := s.ask(t, "POST", "/v1/responses", `{"model":"hello","input":"Hi","instructions":"Be brief.","max_output_tokens":5}`)
	if dig(t, a.body, "status") != "incomplete" || dig(t, a.body, "incomplete_details", "reason") != "max_output_tokens" || dig(t, a.body, "usage", "output_tokens") != 5.0 ||
		dig(t, a.body, "output", 0, "content", 0, "type") != "output_text" || dig(t, a.body, "tally", "seed") == nil || dig(t, a.body, "instructions") != "Be brief." {
		t.Errorf("%s", a.body)
	}
	input := `[{"role":"user","content":[{"type":"input_text","text":"Hi"}]},{"type":"function_call","call_id":"abcdefghi","name":"weather","arguments":"{}"},
		{"type":"function_call_output","call_id":"abcdefghi","output":"rain"}]`
	tools := `,"tools":[{"type":"function","name":"weather","parameters":{"type":"object"},"strict":false}]`
	a = s.ask(t, "POST", "/v1/responses", `{"model":"caller","stream":true,"input":`+input+tools+`}`)
	names, data := events(t, a.body)
	want := []string{"created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done", "output_item.done",
		"output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done", "completed"}
	var got []string
	for i, n := range names {
		if dig(t, data[i], "type") != n || dig(t, data[i], "sequence_number") != float64(i) {
			t.Errorf("event %d %s is %s", i, n, data[i])
		}
		if short := strings.TrimPrefix(n, "response."); len(got) == 0 || got[len(got)-1] != short {
			got = append(got, short)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%v, want %v", got, want)
	}
	last := data[len(data)-1]
	if dig(t, last, "response", "output", 0, "content", 0, "text") != "Let me see." || dig(t, last, "response", "output", 1, "arguments") != `{"city":"Zürich"}` {
		t.Errorf("%s", last)
	}
}

func TestOpenAIRefuses(t *testing.T) {
	s := start(t, gateway.Config{Body: 1 << 16}, scripts)
	const chat, completions, responses, embeddings = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings"
	for _, x := range []struct {
		path, body  string
		status      int
		param, says string
	}{
		{chat, ``, 400, "", "the body is empty"},
		{chat, `{"model"`, 400, "", "not JSON"},
		{chat, `[]`, 400, "", "the body is an array: want an object"},
		{chat, `{"model":7}`, 400, "model", "model is a number: want a string"},
		{chat, user("hello", `,"max_tokens":1.5`), 400, "max_tokens", "max_tokens is 1.5: want an integer"},
		{chat, user("hello", `,"max_tokens":0`), 400, "max_tokens", "max_tokens is 0"},
		{chat, user("hello", `,"temperature":3`), 400, "temperature", "want 0 to 2"},
		{chat, user("hello", `,"n":0`), 400, "n", "n is 0"},
		{chat, user("hello", `,"stop":[1]`), 400, "stop", "stop is a number: want a string"},
		{chat, user("hello", `,"logit_bias":{"x":1}`), 400, "logit_bias", `names "x"`},
		{chat, user("hello", `,"response_format":{"type":"xml"}`), 400, "response_format.type", `of type "xml"`},
		{chat, user("hello", `,"response_format":"json"`), 400, "response_format", "is a string"},
		{chat, user("hello", `,"response_format":{"type":"json_schema"}`), 400, "response_format.schema", "is missing"},
		{chat, user("hello", `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"properties":{"a":{"not":{}}}}}}`), 400, "response_format.json_schema.schema", `properties.a: the keyword "not" is not supported`},
		{chat, user("hello", `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"string","maxLength":100000}}}`), 400, "response_format.json_schema.schema", "too large"},
		{chat, user("hello", `,"guided_json":{}`), 400, "guided_json", "response_format has the schema"},
		{completions, `{"model":"plain","prompt":"a","response_format":{"type":"grammar"}}`, 400, "response_format.type", "want text, json_object or json_schema"},
		{responses, `{"model":"hello","input":"a","text":{"format":{"type":"json_schema","name":"x","schema":{"uniqueItems":true}}}}`, 400, "text.format.schema", `"uniqueItems" is not supported`},
		{responses, `{"model":"hello","input":"a","text":{"verbosity":"low"}}`, 400, "verbosity", "is not supported"},
		{chat, user("hello", `,"store":true`), 400, "store", "set it to false"},
		{chat, user("hello", `,"tool_choice":"required"`), 400, "tool_choice", "not among the tools"},
		{chat, user("hello", `,"tool_choice":"sometimes"`+weather), 400, "tool_choice", "want auto, none, required"},
		{chat, user("hello", `,"tool_choice":{"type":"function","function":{"name":"sun"}}`+weather), 400, "tool_choice", `"sun", which is not among`},
		{chat, user("hello", `,"tools":[{"type":"function","function":{"name":"f","strict":true}}]`), 400, "tools[0].strict", "where tool_choice makes the model call"},
		{chat, user("hello", `,"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","parameters":{"dependentRequired":{}}}}]`), 400, "tools", `the parameters of f: the schema: the keyword "dependentRequired"`},
		{chat, user("hello", `,"top_logprobs":2`), 400, "top_logprobs", "needs logprobs"},
		{chat, user("hello", `,"deep":`+strings.Repeat("[", 99)+strings.Repeat("]", 99)), 400, "", "nested"},
		{chat, user("none", ""), 404, "model", "not found"},
		{chat, `{"model":"hello","messages":[{"role":"pope","content":""}]}`, 400, "messages[0].role", "pope"},
		{chat, `{"model":"hello","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400, "messages[0].content[0].type", "image_url"},
		{chat, `{"model":"hello","messages":[{"role":"user"}]}`, 400, "messages[0].content", "is missing"},
		{chat, `{"model":"hello","messages":[{"role":"user","content":"raise_exception"}]}`, 400, "messages", "template"},
		{chat, user("hello", `,"x":"`+strings.Repeat("x", 1<<16)+`"`), 413, "", "more than 65536 bytes"},
		{completions, `{"model":"plain"}`, 400, "prompt", "missing"},
		{completions, `{"model":"plain","prompt":"a","echo":true}`, 400, "echo", "not supported"},
		{completions, `{"model":"plain","prompt":[[]]}`, 400, "prompt", ""},
		{responses, `{"model":"hello","input":"a","previous_response_id":"r"}`, 400, "previous_response_id", "nothing is kept"},
		{responses, `{"model":"hello","input":[{"type":"item_reference"}]}`, 400, "input[0].type", "item_reference"},
		{embeddings, `{"model":"vectors","input":[1,99999999]}`, 400, "input", "has token 99999999"},
		{embeddings, `{"model":"vectors","input":[[1],[]]}`, 400, "input", "no tokens"},
		{embeddings, `{"model":"vectors"}`, 400, "input", "missing"},
		{embeddings, `{"model":"vectors","input":"a","encoding_format":"hex"}`, 400, "encoding_format", "float or base64"},
		{embeddings, `{"model":"vectors","input":"a","dimensions":0}`, 400, "dimensions", "at least 1"},
		{embeddings, `{"model":"vectors","input":"a","dimensions":4}`, 400, "dimensions", "have 1 to 3"},
		{embeddings, `{"model":"vectors","input":"` + strings.Repeat("word ", 5000) + `"}`, 400, "input", "takes 4096"},
		{embeddings, `{"model":"hello","input":"a"}`, 400, "model", "gives no vectors"},
		{chat, user("broken", ""), 500, "", "the gateway's log says why"},
		{chat, user("broken", `,"stream":true`), 500, "", "the gateway's log says why"},
		{"/v1/nothing", `{}`, 404, "", "nothing is at"},
	} {
		a := s.ask(t, "POST", x.path, x.body)
		message, _ := dig(t, a.body, "error", "message").(string)
		param, _ := dig(t, a.body, "error", "param").(string)
		if a.status != x.status || param != x.param || !strings.Contains(message, x.says) || dig(t, a.body, "error", "type") == nil || strings.Contains(message, "secret") {
			t.Errorf("%.80s: %d %s, want %d, %s, %q", x.body, a.status, a.body, x.status, x.param, x.says)
		}
	}
	a := s.ask(t, "POST", chat, user("breaks", `,"stream":true`))
	_, data := events(t, a.body)
	if last := data[len(data)-1]; a.status != 200 || dig(t, last, "error", "type") != "server_error" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.ask(t, "DELETE", chat, ""); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "POST" {
		t.Errorf("%d %v", a.status, a.header)
	}
}
