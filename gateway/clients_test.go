package gateway_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tally-network/tally/gateway"
	"github.com/tally-network/tally/internal/testkit/replytest"
	"github.com/tally-network/tally/model/lm"
)

// asks is a model that calls a tool, and then says what it answered.
func asks(t testing.TB) replytest.Script {
	tok := replytest.Tokenizer(t)
	return replytest.Script{Tokens: func(q *lm.Request) []int32 {
		prompt, _ := tok.Decode(q.Prompt, true)
		text := call
		if _, after, ok := strings.Cut(prompt, "tool\n"); ok {
			text, _, _ = strings.Cut("It said: "+after, "\n")
		}
		out, _ := tok.Encode(text, false)
		return out
	}}
}

// plain returns a value as it would come through JSON.
func plain(v any) (out any) {
	text, _ := json.Marshal(v)
	_ = json.Unmarshal(text, &out)
	return out
}

// The official clients of three APIs call the gateway. They run where Node and their packages can
// be had; with TALLY_REQUIRE_NODE=1 they must.
func TestOfficialClients(t *testing.T) {
	missing := t.Skipf
	if os.Getenv("TALLY_REQUIRE_NODE") == "1" {
		missing = t.Fatalf
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing("%v", err)
		}
	}
	dir := "clients"
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		dir = t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("clients")); err != nil {
			t.Fatal(err)
		}
		install := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		install.Dir = dir
		if out, err := install.CombinedOutput(); err != nil {
			missing("npm ci: %v\n%s", err, out)
		}
	}
	all := map[string]replytest.Script{"asks": asks(t)}
	for name, s := range scripts {
		all[name] = s
	}
	s := start(t, gateway.Config{}, all)
	script := exec.Command("node", "calls.mjs", s.url)
	var stderr bytes.Buffer
	script.Dir, script.Stderr = dir, &stderr
	out, err := script.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	const hello = "Hello there, wörld."
	tokens, err := s.Tokenizer.Encode(hello, false)
	if err != nil {
		t.Fatal(err)
	}
	n := len(tokens) + 1
	var got map[string]map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	names := []string{"asks", "breaks", "broken", "caller", "hello", "long", "plain", "vectors"}
	city := map[string]string{"city": "Zürich"}
	for client, want := range map[string]map[string]any{ // each client alone
		"openai": {
			"whole": []string{hello, hello}, "seed": 7, "logprob": -0.5, "streamed": hello, "usage": n, "drawn": true,
			"called": map[string]any{"name": "weather", "arguments": `{"city":"Zürich"}`}, "reason": "tool_calls", "ran": "It said: rain in Zürich",
			"parsed": []any{[]string{"city", "rain"}, "string", "boolean"}, "formed": []string{"city", "rain"}, "forced": []string{"tool_calls", "weather"},
			"unfit":   []any{400, "invalid_json_schema", "response_format.json_schema.schema"},
			"missing": []any{true, "model_not_found", "model", true}, "completion": "once upon", "vectors": [][]float64{{1, 0.5, -1}, {3, 0.5, -1}}, "short": []float64{1}, "used": true,
			"response": hello, "told": hello, "first": "response.created", "last": "response.completed", "models": names, "model": "hello",
		},
		"anthropic": {
			"whole": hello, "reason": "end_turn", "seed": 9, "streamed": "Let me see.", "called": city, "called_reason": "tool_use",
			"missing": []any{404, "not_found_error"},
		},
		"ollama": {
			"whole": hello, "seed": 3, "streamed": hello, "done": []any{true, "stop", n}, "generated": hello, "called": city,
			"formed":  []string{"city", "rain"},
			"missing": []any{404, `model "none" not found: see the list of models`}, "tags": names, "show": "llama", "ps": 1, "version": "0.12.6",
			"pulled": []string{"pulling manifest", "pulling new", "success"}, "embed": [][]float64{{3, 0.5, -1}}, "cut": [][]float64{{1}}, "embedding": []float64{2, 0.5, -1},
		},
	} {
		for key, w := range want { // each alone
			if g := got[client][key]; !reflect.DeepEqual(g, plain(w)) {
				t.Errorf("%s: %s is %v, want %v", client, key, g, w)
			}
		}
	}
	if got["anthropic"]["count"].(float64) < 10 || got["anthropic"]["output"].(float64) < 10 {
		t.Errorf("%v", got["anthropic"])
	}
}

// PyPI's client calls the gateway, in the Python that TALLY_PYTHON names, or else python3, if openai is installed in it.
func TestPythonClient(t *testing.T) {
	python := cmp.Or(os.Getenv("TALLY_PYTHON"), "python3")
	look := exec.Command(python, "-c", "import openai")
	look.Dir = "clients" // beside which there is no folder of that name
	if err := look.Run(); err != nil {
		t.Skipf("%s has no openai: %v", python, err)
	}
	s := start(t, gateway.Config{}, scripts)
	script := exec.Command(python, "calls.py", s.url)
	var stderr bytes.Buffer
	script.Dir, script.Stderr = "clients", &stderr
	out, err := script.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	var got any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const hello = "Hello there, wörld."
	want := map[string]any{
		"whole": hello, "seed": 7, "streamed": hello, "called": `{"city":"Zürich"}`, "completion": "once upon", "vector": []float64{3, 0.5, -1},
		"models": []string{"breaks", "broken", "caller", "hello", "long", "plain", "vectors"}, "response": hello, "told": hello, "status": "completed", "missing": "model_not_found",
	}
	if !reflect.DeepEqual(got, plain(want)) {
		t.Errorf("%s, want %v", out, want)
	}
}
