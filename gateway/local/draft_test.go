package local

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/model/library"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/replies"
)

// A draft model changes no text. It drafts for models with its tokens; of others those that were named are refused, and those that were pulled go without.
func TestDraftModels(t *testing.T) {
	tiny, draft := folder(t, "tiny", nil), folder(t, "draft", nil)
	seed := uint64(5)
	ask := func(name string) *reply.Ask {
		return &reply.Ask{Model: name, MaxTokens: 50, Seed: &seed, Sampling: lm.Sampling{Temperature: 1}, Chat: &reply.Conversation{Messages: []reply.Message{{Role: "user", Text: "why?"}}}}
	}
	plain := models(t, Options{}, tiny)
	want, _ := said(t, plain, ask("tiny"))
	if n, _ := plain.Drafts(); n != 0 {
		t.Errorf("%d tokens are drafted by nobody", n)
	}
	l, err := library.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other := folder(t, "other", map[string]string{"tokenizer.json": otherTokens(t, tiny)})
	if _, err := l.Pull(t.Context(), other, library.Options{Name: "pulled"}); err != nil {
		t.Fatal(err)
	}
	m := models(t, Options{Draft: draft, Find: NewLibrary(l), Replies: replies.Options{Speculative: replies.Speculation{Ngram: true}}, MaxOpen: 1}, tiny, other)
	if got, _ := said(t, m, ask("tiny")); got != want {
		t.Errorf("%q with a draft model, %q without", got, want)
	}
	drafted, accepted := m.Drafts()
	if drafted == 0 || accepted == 0 || accepted > drafted {
		t.Errorf("%d tokens are drafted, and %d of them drawn", drafted, accepted)
	}
	if _, err := m.Open(t.Context(), "other", nil); err == nil || !strings.Contains(err.Error(), "of the same family") {
		t.Errorf("%v of a model with other tokens", err)
	}
	said(t, m, ask("pulled"))
	if n, _ := m.Drafts(); n < drafted { // what is closed counts on
		t.Errorf("%d tokens are drafted after %d", n, drafted)
	}
	broken := models(t, Options{Draft: "nowhere"}, tiny)
	if _, err := broken.Open(t.Context(), "tiny", nil); err == nil || !strings.Contains(err.Error(), "draft model") {
		t.Errorf("%v of a draft model that is not there", err)
	}
}

// otherTokens is a tokenizer in which two tokens have changed their places.
func otherTokens(t *testing.T, dir string) string {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	text := string(f.Language.Texts["tokenizer.json"])
	for _, x := range [][2]string{{`"a":`, `"?!":`}, {`"b":`, `"a":`}, {`"?!":`, `"b":`}} {
		if !strings.Contains(text, x[0]) {
			t.Fatalf("no %s in the tokenizer", x[0])
		}
		text = strings.Replace(text, x[0], x[1], 1)
	}
	return text
}
