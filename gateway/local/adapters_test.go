package local

import (
	"strings"
	"sync"
	"testing"

	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/model/lm"
)

// Adapted models are listed and reply beside their base, which stays open as long as one of them is; they make room for each other alone.
func TestAdapters(t *testing.T) {
	path := folder(t, "tiny", nil)
	var all []Adapter
	for _, name := range []string{"llama-some", "llama-other", "llama-all"} {
		all = append(all, Adapter{Name: name, Base: "tiny", Dir: lmtest.Adapter(t, name)})
	}
	m := models(t, Options{Adapters: all, MaxOpen: 1, MaxAdapters: 2}, path, folder(t, "y", nil))
	listed, err := m.List(t.Context())
	if err != nil || len(listed) != 5 {
		t.Fatalf("%+v, %v", listed, err)
	}
	digests := map[string]bool{}
	for _, l := range listed {
		digests[l.Digest] = true
	}
	if len(digests) != 4 { // tiny and y are the same
		t.Errorf("%d digests of %+v", len(digests), listed)
	}
	seed := uint64(5)
	ask := func(name string) *reply.Ask {
		return &reply.Ask{Model: name, MaxTokens: 12, Seed: &seed, Sampling: lm.Sampling{Temperature: 1}, Chat: &reply.Conversation{Messages: []reply.Message{{Role: "user", Text: "why?"}}}}
	}
	texts := map[string]string{}
	for range 2 { // the second time those are opened again that had made room
		for _, name := range []string{"tiny", "llama-some", "llama-other", "llama-all"} {
			text, _ := said(t, m, ask(name))
			if old, known := texts[name]; known && old != text {
				t.Errorf("%s says %q, and before it said %q", name, text, old)
			}
			texts[name] = text
		}
	}
	if texts["llama-all"] == texts["tiny"] || texts["llama-some"] == texts["llama-all"] {
		t.Errorf("%q", texts)
	}
	loaded, err := m.Loaded(t.Context())
	if err != nil || len(loaded) != 3 {
		t.Errorf("%+v, %v: want the base and two that it is adapted to", loaded, err)
	}
	if _, err := m.Open(t.Context(), "y", nil); err != nil { // idle adapters leave their base
		t.Error(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		for name, want := range texts { // each alone
			if name == "llama-all" {
				continue
			}
			wg.Go(func() {
				if text, _ := said(t, m, ask(name)); text != want {
					t.Errorf("%s says %q beside others, %q alone", name, text, want)
				}
			})
		}
	}
	wg.Wait()
}

func TestAdaptersThatFail(t *testing.T) {
	path, good := folder(t, "tiny", nil), lmtest.Adapter(t, "llama-some")
	for says, a := range map[string]Adapter{
		"there is no model other": {"x", "other", good}, "two models are called tiny": {"tiny", "tiny", good}, "adapter_config.json": {"x", "tiny", t.TempDir()},
		"has no adapters": {"x", "minilm", good},
	} {
		if _, err := New(Options{Adapters: []Adapter{a}}, path, lmtest.Encoder(t, "minilm", nil)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	m := models(t, Options{Adapters: []Adapter{{"x", "tiny", lmtest.Adapter(t, "gpt2")}}}, path) // found when it is opened
	for range 2 {
		if _, err := m.Open(t.Context(), "x", nil); err == nil || !strings.Contains(err.Error(), "take the adapter's own base") {
			t.Errorf("%v", err)
		}
	}
	if _, err := m.Open(t.Context(), "tiny", nil); err != nil {
		t.Error(err)
	}
}
