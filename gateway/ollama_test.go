package gateway_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/gateway"
)

func TestOllamaReplies(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	for path, at := range map[string][]any{"/api/chat": {"message", "content"}, "/api/generate": {"response"}} { // each alone
		body := `{"model":"hello:latest","prompt":"Hi","messages":[{"role":"user","content":"Hi"}],"options":{"seed":5,"num_gpu":1,"stop":["rld"],"num_ctx":4096}`
		a := s.ask(t, "POST", path, body+`}`)
		lines := bytes.Split(bytes.TrimSpace(a.body), []byte("\n"))
		text := ""
		for _, l := range lines {
			text += dig(t, l, at...).(string)
		}
		last := lines[len(lines)-1]
		if a.header.Get("Content-Type") != "application/x-ndjson" || text != "Hello there, wö" || dig(t, last, "done") != true || dig(t, last, "done_reason") != "stop" ||
			dig(t, last, "tally", "seed") != 5.0 || dig(t, lines[0], "done") != false {
			t.Errorf("%s: %q %s", path, text, last)
		}
		for _, key := range []string{"total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"} {
			if n, _ := dig(t, last, key).(float64); n <= 0 {
				t.Errorf("%s: %s is %v", path, key, n)
			}
		}
		if a := s.ask(t, "POST", path, body+`,"stream":false}`); dig(t, a.body, at...) != text || dig(t, a.body, "done") != true {
			t.Errorf("%s: %s", path, a.body)
		}
		if a := s.ask(t, "POST", path, `{"model":"hello","keep_alive":"5m"}`); dig(t, a.body, "done_reason") != "load" {
			t.Errorf("%s: %s", path, a.body)
		}
		if a := s.ask(t, "POST", path, `{"model":"hello","keep_alive":0}`); dig(t, a.body, "done_reason") != "unload" {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	if !slices.Equal(s.Keeps, []time.Duration{5 * time.Minute, 0, 5 * time.Minute, 0}) {
		t.Errorf("%v", s.Keeps)
	}
	a := s.ask(t, "POST", "/api/chat", user("caller", weather+`,"stream":false`))
	if dig(t, a.body, "message", "tool_calls", 0, "function", "arguments", "city") != "Zürich" {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","raw":true,"stream":false,"options":{"num_predict":2}}`); dig(t, a.body, "done_reason") != "length" || dig(t, a.body, "eval_count") != 2.0 {
		t.Errorf("%s", a.body)
	}
}

func TestOllamaModels(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	if a := s.ask(t, "GET", "/", ""); string(a.body) != "Ollama is running" {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "HEAD", "/", ""); a.status != 200 {
		t.Errorf("%d", a.status)
	}
	if a := s.ask(t, "GET", "/api/version", ""); !strings.HasPrefix(dig(t, a.body, "version").(string), "0.") {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "GET", "/api/tags", ""); dig(t, a.body, "models", 0, "name") != "breaks" || dig(t, a.body, "models", 0, "details", "families", 0) != "llama" || dig(t, a.body, "models", 0, "modified_at") == nil {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "GET", "/api/ps", ""); dig(t, a.body, "models", 0, "expires_at") == nil || dig(t, a.body, "models", 0, "size_vram") != 0.0 {
		t.Errorf("%s", a.body)
	}
	a := s.ask(t, "POST", "/api/show", `{"name":"vectors:latest"}`)
	if dig(t, a.body, "capabilities", 1) != "embedding" || dig(t, a.body, "model_info", "llama.context_length") != 4096.0 || dig(t, a.body, "license") != "Apache-2.0" {
		t.Errorf("%s", a.body)
	}
	a = s.ask(t, "POST", "/api/pull", `{"model":"new"}`)
	if lines := bytes.Split(bytes.TrimSpace(a.body), []byte("\n")); len(lines) != 3 || dig(t, lines[2], "status") != "success" || dig(t, lines[1], "completed") != 10.0 {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "POST", "/api/embed", `{"model":"vectors","input":["a","bc"]}`); dig(t, a.body, "embeddings", 1, 0) != 2.0 {
		t.Errorf("%s", a.body)
	}
	long := strings.Repeat("word ", 5000)
	if a := s.ask(t, "POST", "/api/embed", `{"model":"vectors","input":"`+long+`"}`); dig(t, a.body, "prompt_eval_count") != 4096.0 { // it is cut
		t.Errorf("%.200s", a.body)
	}
	if a := s.ask(t, "POST", "/api/embed", `{"model":"vectors","input":"`+long+`","truncate":false}`); a.status != 400 {
		t.Errorf("%d %.200s", a.status, a.body)
	}
	if a := s.ask(t, "POST", "/api/embed", `{"model":"vectors","input":["a"],"dimensions":1}`); dig(t, a.body, "embeddings", 0, 0) != 1.0 {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(t, "POST", "/api/embeddings", `{"model":"vectors","prompt":"abc"}`); dig(t, a.body, "embedding", 0) != 3.0 {
		t.Errorf("%s", a.body)
	}
}

func TestOllamaRefuses(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	for _, x := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/api/chat", user("none", ""), 404, `model "none" not found`},
		{"/api/chat", user("hello", `,"format":"xml"`), 400, "neither \"json\" nor a JSON schema"},
		{"/api/chat", user("hello", `,"format":{"type":"string","format":"regex"}`), 400, `format: the schema: the format "regex" is not supported`},
		{"/api/generate", `{"model":"hello","prompt":"x","format":{"if":{}}}`, 400, `the keyword "if" is not supported`},
		{"/api/chat", user("hello", `,"think":true`), 400, "think is not supported"},
		{"/api/chat", user("hello", `,"keep_alive":"soon"`), 400, "keep_alive"},
		{"/api/chat", user("hello", `,"options":{"mirostat":2}`), 400, "mirostat is not supported"},
		{"/api/chat", user("hello", `,"options":{"top_p":-1}`), 400, "top_p is -1"},
		{"/api/chat", user("hello", `,"options":7`), 400, "options is a number: want an object"},
		{"/api/chat", `{"model":"hello","messages":[{"role":"user","content":"x","images":["aGk="]}]}`, 400, "images"},
		{"/api/generate", `{"model":"hello","prompt":"x","suffix":"y"}`, 400, "suffix is not supported"},
		{"/api/generate", `{"model":"hello","prompt":"x","options":{"num_ctx":2}}`, 400, "the context of hello holds 2"},
		{"/api/generate", `{"prompt":"x"}`, 400, "model is missing"},
		{"/api/show", `{}`, 400, "model is missing"},
		{"/api/show", `{"model":"none"}`, 404, "not found"},
		{"/api/pull", `{"model":"missing"}`, 404, "not found"},
		{"/api/pull", `{"model":"missing","stream":false}`, 404, "not found"},
		{"/api/embed", `{"model":"hello","input":"x"}`, 400, "gives no vectors"},
		{"/api/create", `{}`, 404, "nothing is at /api/create"},
		{"/api/tags", `{}`, 405, "is for GET"},
	} {
		a := s.ask(t, "POST", x.path, x.body)
		if message, _ := dig(t, a.body, "error").(string); a.status != x.status || !strings.Contains(message, x.says) {
			t.Errorf("%s %.80s: %d %s, want %d %q", x.path, x.body, a.status, a.body, x.status, x.says)
		}
	}
	a := s.ask(t, "POST", "/api/chat", user("breaks", ""))
	lines := bytes.Split(bytes.TrimSpace(a.body), []byte("\n"))
	if dig(t, lines[len(lines)-1], "error") == nil {
		t.Errorf("%s", a.body)
	}
}
