package replies

import (
	"os"
	"testing"
	"time"

	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/testkit/jsonvalid"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/grammar/jsonschema"
	"github.com/tally-network/tally/model/lm"
)

// The model that TALLY_GGUF names writes JSON of a schema. With -v the test tells what, and how long draws take.
func TestRealModelsKeepForms(t *testing.T) {
	path := os.Getenv("TALLY_GGUF")
	if path == "" {
		t.Skip("TALLY_GGUF names no model")
	}
	f, err := files.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := Start(f.Weights, cpu.New(2), Options{})
	defer s.Close()
	prompt, err := f.Tokenizer.Encode("<|im_start|>user\nWho was Ada Lovelace? Answer as JSON.<|im_end|>\n<|im_start|>assistant\n", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range []string{
		`{"type":"object","properties":{"name":{"type":"string","maxLength":30},"born":{"type":"integer","minimum":1000,"maximum":2100},"fields":{"type":"array","items":{"type":"string","maxLength":20},"maxItems":3},"alive":{"type":"boolean"}},"required":["name","born","fields","alive"],"additionalProperties":false}`,
		`{"type":"object"}`,
		`{"type":"object","properties":{"when":{"type":"string","format":"date"},"kind":{"enum":["person","place"]}},"required":["when","kind"]}`,
	} {
		form, err := jsonschema.Compile([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		q := &lm.Request{Prompt: prompt, MaxTokens: 120, Ends: f.Ends, Seed: 1, Sampling: lm.Sampling{Temperature: 0.7, TopP: 0.9}, Form: form}
		var reply []int32
		var last lm.Token
		begun := time.Now()
		for tok, err := range s.Reply(t.Context(), q) {
			if err != nil {
				t.Fatal(err)
			}
			reply, last = append(reply, tok.ID), tok
		}
		text, err := f.Tokenizer.Decode(reply, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d states, %d tokens, %v: %s", form.Len(), len(reply), time.Since(begun), text)
		if err := jsonvalid.Check(schema, text); err != nil && last.Reason == lm.Stop {
			t.Errorf("%s: %v", text, err)
		}
	}
}
