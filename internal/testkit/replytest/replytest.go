// Package replytest has models for tests of the gateway: a real tokenizer, and replies that are known beforehand.
//
// Call [New] with scripts, by the names of models.
//
// Invariant: a reply follows from its request and its script alone, up to when it comes.
package replytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/model/grammar"
	"github.com/tally-network/tally/model/lm"
)

// Script says what a model replies to a prompt. A reply that is bound to a form is some text of it, which follows from its seed.
type Script struct {
	Text   string                                     // the reply
	Tokens func(r *lm.Request) []int32                // … or its tokens
	Break  error                                      // after the tokens, instead of an end
	Wait   func(ctx context.Context, token int) error // before each token
	Plain  bool                                       // it does not chat
}

// Models are [reply.Models] whose replies are known.
type Models struct {
	Tokenizer *tokenizer.Tokenizer
	Running   atomic.Int64 // replies that are computed now
	Keeps     []time.Duration
	scripts   map[string]Script
	words     *grammar.Vocabulary
	lock      sync.Mutex
}

// Special tokens that the tokenizer has beside those of its file.
var Special = []string{"<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<|python_tag|>"}

// Embedder is the model that embeds.
const Embedder = "vectors"

// New returns models. Beside the scripts there is one that embeds.
func New(t testing.TB, scripts map[string]Script) *Models {
	t.Helper()
	tok := Tokenizer(t)
	words := grammar.NewVocabulary(tok.Size(), func(id int32) []byte {
		text, _ := tok.Bytes(id)
		return text
	})
	return &Models{Tokenizer: tok, scripts: scripts, words: words}
}

var (
	lock sync.Mutex
	read *tokenizer.Tokenizer
)

// Tokenizer returns a small tokenizer of SmolLM's kind, with [Special].
func Tokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	lock.Lock()
	defer lock.Unlock()
	if read != nil {
		return read
	}
	text, err := os.ReadFile(filepath.Join(root(t), "format/tokenizer/testdata/smollm.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	added := file["added_tokens"].([]any)
	size := len(file["model"].(map[string]any)["vocab"].(map[string]any))
	for i, s := range Special {
		added = append(added, map[string]any{"id": size + i, "content": s, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
	}
	file["added_tokens"] = added
	if text, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	read = tok
	return tok
}

func root(t testing.TB) string {
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the folder of the test")
	return ""
}

func (m *Models) end() int32 {
	id, _ := m.Tokenizer.ID("<|im_end|>")
	return id
}

func (m *Models) listing(name string) reply.Listing {
	return reply.Listing{
		Name: name, Digest: strings.Repeat("ab", 32), Size: 1 << 20, Modified: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Context: 4096,
		Replies: name != Embedder, Tools: true, Embeds: name == Embedder,
		Details: reply.Details{Format: "gguf", Family: "llama", Parameters: "135M", Quantization: "Q4_1", License: "Apache-2.0", Template: "{{ messages }}"},
	}
}

// List returns the models, sorted by name.
func (m *Models) List(context.Context) (all []reply.Listing, err error) {
	names := []string{Embedder}
	for name := range m.scripts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, n := range names {
		all = append(all, m.listing(n))
	}
	return all, nil
}

// Open returns a model, and notes how long it shall stay.
func (m *Models) Open(_ context.Context, name string, keep *time.Duration) (*reply.Model, error) {
	if keep != nil {
		m.lock.Lock()
		m.Keeps = append(m.Keeps, *keep)
		m.lock.Unlock()
	}
	out := &reply.Model{Listing: m.listing(name), Tokenizer: m.Tokenizer, Ends: []int32{m.end()}, Forms: lm.NewForms(func() *grammar.Vocabulary { return m.words })}
	if name == Embedder {
		out.Embedder = lengths{m.Tokenizer}
		return out, nil
	}
	s, ok := m.scripts[name]
	if !ok {
		return nil, reply.Unknown(name)
	}
	out.Replier = &replier{m, s}
	if !s.Plain {
		out.Prompter = Prompter{}
	}
	return out, nil
}

// Loaded returns the first model.
func (m *Models) Loaded(ctx context.Context) ([]reply.Loaded, error) {
	all, err := m.List(ctx)
	return []reply.Loaded{{Listing: all[0], Memory: 1 << 21}}, err
}

// Pull tells two steps, or fails for the model "missing".
func (m *Models) Pull(_ context.Context, name string, tell func(reply.Progress)) error {
	if name == "missing" {
		return reply.Unknown(name)
	}
	tell(reply.Progress{Status: "pulling manifest"})
	tell(reply.Progress{Status: "pulling " + name, Digest: "sha256:00", Total: 10, Ready: 10})
	return nil
}

// Prompter writes a conversation in lines.
type Prompter struct{}

// Prompt refuses a text that says so.
func (Prompter) Prompt(c *reply.Conversation) (string, error) {
	var b strings.Builder
	for i, m := range c.Messages {
		if strings.Contains(m.Text, "raise_exception") {
			return "", errors.New("the template raises an exception")
		}
		fmt.Fprintf(&b, "<|im_start|>%s\n%s", m.Role, m.Text)
		for _, k := range m.Calls {
			fmt.Fprintf(&b, "<tool_call>%s %s</tool_call>", k.Name, k.Arguments)
		}
		if c.Continue && i == len(c.Messages)-1 {
			return b.String(), nil
		}
		b.WriteString("<|im_end|>\n")
	}
	for _, t := range c.Tools {
		fmt.Fprintf(&b, "tool %s %s\n", t.Name, t.Parameters)
	}
	return b.String() + "<|im_start|>assistant\n", nil
}

// lengths embeds a text as its length in bytes, and two other numbers.
type lengths struct{ of *tokenizer.Tokenizer }

func (l lengths) Embed(_ context.Context, texts [][]int32) (out [][]float32, err error) {
	for _, t := range texts {
		text, err := l.of.Decode(t, false)
		if err != nil {
			return nil, err
		}
		out = append(out, []float32{float32(len(text)), 0.5, -1})
	}
	return out, nil
}

type replier struct {
	models *Models
	script Script
}

// Reply gives the script's tokens, and the end. Each token's likelihood is −0.5, and the token after it is the next likeliest.
func (r *replier) Reply(ctx context.Context, q *lm.Request) iter.Seq2[lm.Token, error] {
	return func(yield func(lm.Token, error) bool) {
		r.models.Running.Add(1)
		defer r.models.Running.Add(-1)
		var tokens []int32
		if q.Form != nil {
			tokens = r.models.formed(q)
		} else if r.script.Tokens != nil {
			tokens = r.script.Tokens(q)
		} else {
			tokens, _ = r.models.Tokenizer.Encode(r.script.Text, false)
		}
		if r.script.Break == nil {
			tokens = append(tokens[:len(tokens):len(tokens)], r.models.end())
		}
		for i, id := range tokens {
			if r.script.Wait != nil {
				if err := r.script.Wait(ctx, i); err != nil {
					yield(lm.Token{}, err)
					return
				}
			}
			if err := ctx.Err(); err != nil {
				yield(lm.Token{}, err)
				return
			}
			t := lm.Token{ID: id}
			if q.Likeliest > 0 {
				t.LogProb = -0.5
				for k := range q.Likeliest {
					t.Likeliest = append(t.Likeliest, lm.Candidate{ID: (id + int32(k)) % 500, LogProb: -0.5 - float32(k)})
				}
			}
			if slices.Contains(q.Ends, id) {
				t.Reason = lm.Stop
			} else if i+1 == q.MaxTokens {
				t.Reason = lm.Length
			}
			if !yield(t, nil) || t.Reason != "" {
				return
			}
		}
		if r.script.Break != nil {
			yield(lm.Token{}, r.script.Break)
		}
	}
}

// formed returns some text of a request's form, in tokens. What closes something comes often, so that it ends.
func (m *Models) formed(q *lm.Request) (tokens []int32) {
	x, err := grammar.NewIndex(q.Form, m.words)
	if err != nil {
		return nil
	}
	chance := rand.New(rand.NewPCG(q.Seed, 0))
	for state := 0; !x.Final(state) && len(tokens) < 1<<12; {
		if x.Accepts(state) && chance.IntN(3) == 0 {
			break
		}
		var may, closing []int32
		for id, ok := range x.Mask(state) {
			if ok == 0 {
				continue
			}
			may = append(may, int32(id))
			if strings.ContainsAny(string(m.words.Text(int32(id))), `"]}`) {
				closing = append(closing, int32(id))
			}
		}
		if len(closing) > 0 && chance.IntN(2) == 0 {
			may = closing
		}
		if len(may) == 0 {
			break
		}
		id := may[chance.IntN(len(may))]
		tokens = append(tokens, id)
		state, _ = x.Next(state, id)
	}
	return tokens
}
