package hire_test

import (
	"context"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/internal/testkit/sessiontest"
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/replies"
	"github.com/tally-network/tally/node/hire"
	"github.com/tally-network/tally/node/serve"
	"github.com/tally-network/tally/node/tabs"
)

// A checker of two models that has found a reply wrong for one disputes no reply of the same tokens by the other, where they are right.
func TestAFindingIsOfOneModel(t *testing.T) {
	n := start(t, hire.Options{}, map[string]bend{})
	config, err := os.ReadFile(filepath.Join("..", "..", "model", "lm", "testdata", "llama", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	other := regexp.MustCompile(`"rms_norm_eps": [^,]*,`).ReplaceAllString(string(config), `"rms_norm_eps": 0.5,`)
	if other == string(config) {
		t.Fatal("no eps: ", string(config))
	}
	b, err := files.Open(lmtest.Folder(t, "other", map[string]string{"config.json": other}))
	if err != nil {
		t.Fatal(err)
	}
	bm, err := b.Manifest(1)
	if err != nil {
		t.Fatal(err)
	}
	h, key := hostOf(t, "checker"), keyOf("checker")
	n.chain.Join("checker", sessiontest.Peer{Key: key.Public().(ed25519.PublicKey), Addrs: h.Addrs()})
	model := func(f *files.Files, m *files.Manifest, name string) *serve.Model {
		r := replies.Start(f.Weights, cpu.New(1), replies.Options{})
		t.Cleanup(r.Close)
		return &serve.Model{Listing: session.Listing{Name: name, Prices: prices, Credit: credit, Context: 64, Parallel: 4}, Manifest: m, Texts: f.Texts, Weights: f.Weights, Replier: r, Checker: check.New(f.Weights, cpu.New(1))}
	}
	o := &opened{}
	s, err := serve.New(serve.Parts{ChainID: sessiontest.ID, Account: "checker", Key: key, Host: h, Chain: n.chain.As("checker"), Dir: t.TempDir(), Log: quiet, Disputes: o,
		Models: []*serve.Model{model(n.files, n.manifest, "tiny"), model(b, bm, "other")}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	s.Handle(ctx)
	if err := s.Block(t.Context(), n.chain.As("checker").Head()); err != nil {
		t.Fatal(err)
	}

	q := &lm.Request{Prompt: []int32{8, 9, 10, 11}, MaxTokens: 12, Seed: 3, Sampling: lm.Sampling{Temperature: 1}, Pages: true}
	r := replies.Start(b.Weights, cpu.New(1), replies.Options{})
	defer r.Close()
	var reply []int32
	var pages canon.Hash
	for tok, err := range r.Reply(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		reply, pages = append(reply, tok.ID), tok.Pages
	}
	if v, err := check.New(b.Weights, cpu.New(1)).Check(t.Context(), q, reply); err != nil || v.Wrong >= 0 || v.Pages != pages {
		t.Fatalf("the reply of the other model is wrong: %v, %v", v, err)
	}
	all, err := n.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(l wire.Listed) bool { return l.Model == n.manifest.Root() })
	wrong, err := n.CheckBy(t.Context(), &all[at], q, reply)
	if err != nil || wrong < 0 {
		t.Fatalf("checked by the first model: %d, %v", wrong, err)
	}
	// A friend signs terms with a price of its own, and a true receipt.
	friend := keyOf("friend")
	terms := session.Terms{Chain: sessiontest.ID, Consumer: session.Party{Account: "consumer", Key: keyOf("consumer").Public().(ed25519.PublicKey)},
		Provider: session.Party{Account: "friend", Key: friend.Public().(ed25519.PublicKey)}, Model: bm.Root(), Prices: session.Prices{Reply: session.MaxPrice}, CheckBps: 10_000,
		Credit: session.Credit{First: 1, Cap: 1}, Escrow: 1, OpenBy: 1, End: 2}
	rec := session.Receipt{Session: terms.ID(), Request: q.ID(), Model: bm.Root(), Prompt: uint64(len(q.Prompt)), Reply: uint64(len(reply)),
		Tokens: lm.TokensRoot(slices.Concat(q.Prompt, reply)), Pages: dispute.SaltedPages(pages, terms.Provider.Key)}
	id := rec.ID()
	p := tabs.Proof{Terms: terms, TermsSignature: ed25519.Sign(friend, terms.SignBytes()), Signed: tabs.Signed{Receipt: rec, Signature: ed25519.Sign(friend, id[:])}, Request: *q, Reply: reply}
	err = n.HandOver(t.Context(), &all[at], p)
	if err == nil || len(o.all) > 0 {
		t.Errorf("the checker disputes a reply that is right: %v", err)
	}
}

// opened counts disputes.
type opened struct{ all []*tabs.Proof }

// Block implements serve.Disputes.
func (o *opened) Block(context.Context) error { return nil }

// Open implements serve.Disputes.
func (o *opened) Open(_ context.Context, p *tabs.Proof) error {
	o.all = append(o.all, p)
	return nil
}
