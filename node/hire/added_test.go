package hire_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/replies"
	"github.com/tally-network/tally/node/contest"
	"github.com/tally-network/tally/node/hire"
	"github.com/tally-network/tally/node/serve"
)

// A model that is added to a running provider is listed with the next block and sold. Another one under its name takes its place on the list, and what was sold goes on.
func TestModelsThatAreAdded(t *testing.T) {
	n := start(t, hire.Options{}, map[string]bend{"a": nil})
	s := n.servers["a"]
	model := func(name, of string) (*serve.Model, *files.Files) {
		f := n.files
		if of != "" {
			var err error
			if f, err = n.files.Adapted(lmtest.Adapter(t, of)); err != nil {
				t.Fatal(err)
			}
		}
		m, err := f.Manifest(1)
		if err != nil {
			t.Fatal(err)
		}
		r := replies.Start(f.Weights, cpu.New(1), replies.Options{})
		t.Cleanup(r.Close)
		return &serve.Model{
			Listing:  session.Listing{Name: name, Prices: prices, Credit: credit, Context: 64, Parallel: 4},
			Manifest: m, Texts: f.Texts, Weights: f.Weights, Replier: r, Checker: check.New(f.Weights, cpu.New(1)), Contest: contest.NewModel(m.Disputed(), f.Weights, cpu.New(1), 1),
		}, f
	}
	block := func() {
		if err := s.Block(t.Context(), n.chain.As("a").Head()); err != nil {
			t.Fatal(err)
		}
	}
	names := func() (all []string) {
		listed, err := n.chain.Listings(t.Context(), canon.Hash{}, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range listed {
			all = append(all, l.Listing.Name+"@"+l.Listing.Model.String()[:8])
		}
		return all
	}
	said := func(m *serve.Model) (out []int32) {
		t.Helper()
		for tok, err := range n.Reply(t.Context(), m.Manifest.Root(), &lm.Request{Prompt: []int32{3, 4}, MaxTokens: 8}) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, tok.ID)
		}
		return out
	}
	some, _ := model("legal", "llama-some")
	if err := s.Add(some); err != nil {
		t.Fatal(err)
	}
	block()
	if got := names(); len(got) != 2 {
		t.Fatalf("%v are listed", got)
	}
	if len(said(some)) == 0 {
		t.Error("the model that was added says nothing")
	}
	other, _ := model("legal", "llama-other")
	if err := s.Add(other); err != nil {
		t.Fatal(err)
	}
	block()
	if got := strings.Join(names(), " "); !strings.Contains(got, "legal@"+other.Manifest.Root().String()[:8]) || strings.Contains(got, some.Manifest.Root().String()[:8]) {
		t.Errorf("%s are listed", got)
	}
	until(t, "the consumer sees what took its place", func() bool { // it asks every few seconds
		listed, err := n.Offers(t.Context())
		return err == nil && slices.ContainsFunc(listed, func(l wire.Listed) bool { return l.Model == other.Manifest.Root() })
	})
	if len(said(other)) == 0 {
		t.Error("the model that took its place says nothing")
	}
	again, _ := model("again", "llama-other")
	bare, _ := model("bare", "llama-all")
	bare.Contest = nil
	for says, m := range map[string]*serve.Model{"served already": again, "contest.Model": bare} {
		if err := s.Add(m); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	back, _ := model("legal", "llama-some") // as it was before
	if err := s.Add(back); err != nil {
		t.Fatal(err)
	}
	block()
	if got := strings.Join(names(), " "); !strings.Contains(got, "legal@"+some.Manifest.Root().String()[:8]) {
		t.Errorf("%s are listed", got)
	}
}
