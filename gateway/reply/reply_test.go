package reply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/internal/testkit/replytest"
	"github.com/tally-network/tally/model/lm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func service(t testing.TB, scripts map[string]replytest.Script) *reply.Service {
	return &reply.Service{Models: replytest.New(t, scripts)}
}

func chat(text string, tools ...string) *reply.Ask {
	c := &reply.Conversation{Messages: []reply.Message{{Role: "user", Text: text}}}
	for _, name := range tools {
		c.Tools = append(c.Tools, reply.Tool{Name: name})
	}
	return &reply.Ask{Model: "m", Chat: c, Field: "messages"}
}

func collect(t *testing.T, s *reply.Service, a *reply.Ask) []reply.Choice {
	t.Helper()
	run, err := s.Begin(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	all, err := run.Collect()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// cut gives the tokens of a text that has been cut anywhere, as a model may write it.
func cut(tok *tokenizer.Tokenizer, text string, at func(n int) int) (out []int32) {
	for text != "" {
		n := at(len(text))
		ids, err := tok.Encode(text[:n], false)
		if err != nil {
			n = len(text)
			ids, _ = tok.Encode(text, false)
		}
		out, text = append(out, ids...), text[n:]
	}
	return out
}

// A stop string ends the reply where it would if text came byte by byte.
func TestStopsDoNotDependOnTokens(t *testing.T) {
	tok := replytest.Tokenizer(t)
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringMatching(`[abcé ]{1,40}`).Draw(r, "text")
		stops := rapid.SliceOfN(rapid.StringMatching(`[abcé ]{1,4}`), 1, 3).Draw(r, "stops")
		tokens := cut(tok, text, func(n int) int { return rapid.IntRange(1, n).Draw(r, "cut") })
		want, stopped := text, ""
	bytes:
		for end := 1; end <= len(text); end++ {
			longest := slices.SortedFunc(slices.Values(stops), func(a, b string) int { return len(b) - len(a) })
			for _, s := range longest {
				if strings.HasSuffix(text[:end], s) {
					want, stopped = text[:end-len(s)], s
					break bytes
				}
			}
		}
		s := &reply.Service{Models: replytest.New(t, map[string]replytest.Script{"m": {Tokens: func(*lm.Request) []int32 { return tokens }}})}
		a := chat("hi")
		a.Stops, a.Likeliest = stops, new(int)
		got := collect(t, s, a)[0]
		if got.Text != want || got.End.Stop != stopped {
			r.Fatalf("%q stopped by %q, want %q by %q", got.Text, got.End.Stop, want, stopped)
		}
		for _, token := range got.Tokens {
			if token.Offset >= len(want) {
				r.Fatalf("token %q at %d is not in %q", token.Text, token.Offset, want)
			}
		}
	})
}

// Calls are found however the text comes, and what is none stays text.
func TestCalls(t *testing.T) {
	one := `{"name": "f", "arguments": {"x": [1, "</tool_call"]}}`
	for _, x := range []struct {
		name, text, want string
		calls            []string
	}{
		{"none", "Just words, 1 < 2.", "Just words, 1 < 2.", nil},
		{"hermes", "<tool_call>\n" + one + "\n</tool_call>", "", []string{`f{"x":[1,"</tool_call"]}`}},
		{"hermes twice", "So:\n<tool_call>" + one + "</tool_call>\n<tool_call>" + `{"name":"g","arguments":"{}"}` + "</tool_call>\n", "So:", []string{`f{"x":[1,"</tool_call"]}`, `g{}`}},
		{"hermes, open", "<tool_call>" + `{"name":"g"}`, "", []string{`g{}`}},
		{"hermes, unknown tool", `<tool_call>{"name":"h"}</tool_call> ok`, `<tool_call>{"name":"h"}</tool_call> ok`, nil},
		{"hermes, no JSON", `<tool_call>f(1)</tool_call>`, `<tool_call>f(1)</tool_call>`, nil},
		{"hermes, arguments of no object", `<tool_call>{"name":"f","arguments":[1]}</tool_call>`, `<tool_call>{"name":"f","arguments":[1]}</tool_call>`, nil},
		{"llama", ` {"name": "f", "parameters": {"y": "é"}}`, "", []string{`f{"y":"é"}`}},
		{"llama, twice", `<|python_tag|>{"name": "f", "parameters": {}}; {"name": "g", "parameters": {}}`, "", []string{"f{}", "g{}"}},
		{"llama, other JSON", `{"answer": 42}`, `{"answer": 42}`, nil},
		{"JSON after words", `Like {"name": "f"}`, `Like {"name": "f"}`, nil},
		{"mistral", `[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]`, "", []string{`f{"a":1}`, "g{}"}},
		{"mistral, newer", `[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{}`, "", []string{`f{"a":1}`, "g{}"}},
		{"mistral, broken", `[TOOL_CALLS][{"name": "f"`, `[TOOL_CALLS][{"name": "f"`, nil},
		{"a mark that is not finished", "a <tool_cal", "a <tool_cal", nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				tok := replytest.Tokenizer(t)
				tokens := cut(tok, x.text, func(n int) int { return rapid.IntRange(1, n).Draw(r, "cut") })
				s := &reply.Service{Models: replytest.New(t, map[string]replytest.Script{"m": {Tokens: func(*lm.Request) []int32 { return tokens }}})}
				got := collect(t, s, chat("hi", "f", "g"))[0]
				var calls []string
				for _, c := range got.Calls {
					if len(c.ID) != 9 {
						r.Fatalf("id %q", c.ID)
					}
					calls = append(calls, c.Name+string(c.Arguments))
				}
				reason := reply.Stop
				if x.calls != nil {
					reason = reply.Calls
				}
				if got.Text != x.want || !slices.Equal(calls, x.calls) || got.End.Reason != reason {
					r.Fatalf("%q %q %s, want %q %q", got.Text, calls, got.End.Reason, x.want, x.calls)
				}
			})
		})
	}
}

// Who wants one call at a time gets the first, and the reply ends with it.
func TestOneCall(t *testing.T) {
	one := `{"name": "f", "arguments": {}}`
	for _, text := range []string{"<tool_call>" + one + "</tool_call><tool_call>" + one + "</tool_call> and words", "[TOOL_CALLS][" + one + "," + one + "]"} {
		a := chat("hi", "f")
		a.OneCall = true
		got := collect(t, service(t, map[string]replytest.Script{"m": {Text: text}}), a)[0]
		if len(got.Calls) != 1 || got.Text != "" || got.End.Reason != reply.Calls {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// Characters of several tokens come whole.
func TestTextIsWholeCharacters(t *testing.T) {
	s := service(t, map[string]replytest.Script{"m": {Text: "日本 🙂 é"}})
	run, err := s.Begin(context.Background(), chat("hi"))
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	text := ""
	for e, err := range run.Events() {
		if err != nil || strings.Contains(e.Text, "\ufffd") {
			t.Fatalf("%q %v", e.Text, err)
		}
		text += e.Text
	}
	if text != "日本 🙂 é" || run.Written() < 10 {
		t.Fatalf("%q, %d tokens", text, run.Written())
	}
}

func TestChoices(t *testing.T) {
	seeds := make(chan uint64, 4)
	s := service(t, map[string]replytest.Script{"m": {Tokens: func(q *lm.Request) []int32 {
		seeds <- q.Seed
		return []int32{int32(40 + q.Seed%7)}
	}}})
	seed := uint64(7)
	got := collect(t, s, &reply.Ask{Model: "m", Prompts: []reply.Prompt{{Text: "a"}, {Tokens: []int32{66}}}, Field: "prompt", Choices: 2, Seed: &seed})
	close(seeds)
	all := slices.Sorted(func(yield func(uint64) bool) {
		for s := range seeds {
			yield(s)
		}
	})
	if !slices.Equal(all, []uint64{7, 8, 9, 10}) {
		t.Fatalf("seeds %v", all)
	}
	for i, c := range got {
		if want, _ := replytest.Tokenizer(t).Decode([]int32{40 + int32(i)}, true); c.Text != want || c.End.Tokens != 2 {
			t.Errorf("choice %d is %+v, want %q", i, c, want)
		}
	}
}

func TestRefused(t *testing.T) {
	s := service(t, map[string]replytest.Script{"m": {Text: "x"}, "plain": {Text: "x", Plain: true}})
	long := strings.Repeat("zq", 5000)
	for _, x := range []struct {
		name string
		ask  reply.Ask
		want string
	}{
		{"no model", reply.Ask{Chat: chat("a").Chat}, "model is missing"},
		{"unknown model", reply.Ask{Model: "other", Chat: chat("a").Chat}, `model "other" not found`},
		{"no messages", reply.Ask{Model: "m", Chat: &reply.Conversation{}, Field: "messages"}, "messages has no message"},
		{"template", *chat("raise_exception"), "the chat template of m refuses the messages"},
		{"no template", reply.Ask{Model: "plain", Chat: chat("a").Chat}, "has no chat template"},
		{"only vectors", reply.Ask{Model: replytest.Embedder, Chat: chat("a").Chat}, "gives vectors"},
		{"too long", *chat(long), "the context of m holds 4096"},
		{"longer than asked", reply.Ask{Model: "m", Chat: chat("hello").Chat, Context: 3}, "holds 3"},
		{"token", reply.Ask{Model: "m", Prompts: []reply.Prompt{{Tokens: []int32{-1}}}, Field: "prompt"}, "prompt has token -1"},
		{"no tokens", reply.Ask{Model: "m", Prompts: []reply.Prompt{{Text: ""}}, Field: "prompt"}, "has no tokens"},
		{"choices", reply.Ask{Model: "m", Chat: chat("a").Chat, Choices: 65}, "n is 65"},
		{"stops", reply.Ask{Model: "m", Chat: chat("a").Chat, Stops: []string{""}}, "a stop string has 0 bytes"},
		{"bias", reply.Ask{Model: "m", Chat: chat("a").Chat, Sampling: lm.Sampling{Bias: map[int32]float32{1 << 20: 1}}}, "logit_bias names token 1048576"},
	} {
		_, err := s.Begin(context.Background(), &x.ask)
		var f *api.Fault
		if !errors.As(err, &f) || f.Status >= 500 || !strings.Contains(f.Message, x.want) {
			t.Errorf("%s: %v, want %q", x.name, err, x.want)
		}
	}
}

// A reply that the assistant has begun goes on.
func TestContinued(t *testing.T) {
	var prompt []int32
	s := service(t, map[string]replytest.Script{"m": {Tokens: func(q *lm.Request) []int32 { prompt = q.Prompt; return nil }}})
	for _, begun := range []string{"Well", ""} {
		a := chat("hi")
		a.Chat.Messages = append(a.Chat.Messages, reply.Message{Role: "assistant", Text: begun})
		collect(t, s, a)
		text, err := replytest.Tokenizer(t).Decode(prompt, false)
		if err != nil || !strings.HasSuffix(text, "<|im_start|>assistant\n"+begun) || strings.Count(text, "assistant") != 1 {
			t.Fatalf("%q %v", text, err)
		}
	}
}

// purse is an account of so many tokens.
type purse struct{ left atomic.Int64 }

func (*purse) Name() string                               { return "purse" }
func (*purse) Owner() bool                                { return false }
func (*purse) Enter(context.Context, int) (func(), error) { return func() {}, nil }
func (*purse) Count(string, int, int)                     {}
func (p *purse) Return(tokens int)                        { p.left.Add(int64(tokens)) }

func (p *purse) Reserve(tokens int) error {
	for {
		left := p.left.Load()
		if left < int64(tokens) {
			return errors.New("spent")
		}
		if p.left.CompareAndSwap(left, left-int64(tokens)) {
			return nil
		}
	}
}

// No budget is overrun, however many replies draw on it, and what is not used is given back.
func TestBudgetEndsReplies(t *testing.T) {
	for _, choices := range []int{1, 8} {
		s := service(t, map[string]replytest.Script{"m": {Text: strings.Repeat("word ", 100)}, "short": {Text: "a"}})
		var p purse
		p.left.Store(100)
		a := chat("hi")
		a.Choices = choices
		run, err := s.Begin(reply.WithAccount(context.Background(), &p), a)
		if err != nil {
			t.Fatal(err)
		}
		all, err := run.Collect()
		run.Close()
		if err != nil || all[0].End.Reason != reply.Length || run.Read+run.Written()+int(p.left.Load()) != 100 || p.left.Load() > int64(choices) {
			t.Fatalf("%+v, read %d, written %d, left %d, %v", all, run.Read, run.Written(), p.left.Load(), err)
		}
		if _, err := s.Begin(reply.WithAccount(context.Background(), &p), a); err == nil {
			t.Error("a reply begins without a budget")
		}
		p.left.Store(1000)
		a.Model = "short"
		if run, err = s.Begin(reply.WithAccount(context.Background(), &p), a); err != nil {
			t.Fatal(err)
		}
		run.Close() // nobody has listened
		if got := p.left.Load(); got != int64(1000-run.Read) {
			t.Errorf("%d are left, of 1000 less %d that were read", got, run.Read)
		}
	}
}

func TestDates(t *testing.T) {
	for text, ok := range map[string]bool{"2026-02-03": true, "1900-01-01": true, "0001-01-01": false, "1899-12-31": false, "9999-12-31": true, "2026-2-3": false, "10000-01-01": false} {
		err := (&reply.Ask{}).ReadHeaders(http.Header{reply.DateHeader: {text}})
		if (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestBrokenReplies(t *testing.T) {
	s := service(t, map[string]replytest.Script{"m": {Text: "some words", Break: errors.New("the machine is on fire")}})
	for _, choices := range []int{1, 5} {
		a := chat("hi")
		a.Choices = choices
		run, err := s.Begin(context.Background(), a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Collect(); err == nil || api.FaultOf(err).Status != 500 || strings.Contains(api.FaultOf(err).Message, "fire") {
			t.Fatalf("%v", err)
		}
		run.Close()
	}
}

func FuzzCalls(f *testing.F) {
	f.Add(`<tool_call>{"name":"f","arguments":{}}</tool_call>`)
	f.Add(`[TOOL_CALLS]f[ARGS]{}`)
	f.Add(`{"name":"f"};`)
	tok := replytest.Tokenizer(f)
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := tok.Encode(text, false)
		if err != nil || len(tokens) > 1000 {
			return
		}
		s := service(t, map[string]replytest.Script{"m": {Tokens: func(*lm.Request) []int32 { return tokens }}})
		got := collect(t, s, chat("hi", "f"))[0]
		for _, c := range got.Calls {
			if c.Name != "f" || !json.Valid(c.Arguments) {
				t.Fatal(fmt.Sprint(c))
			}
		}
	})
}
