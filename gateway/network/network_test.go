package network_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/gateway"
	"github.com/tally-network/tally/gateway/network"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/internal/testkit/sessiontest"
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/replies"
	"github.com/tally-network/tally/node/hire"
	"github.com/tally-network/tally/node/serve"
	"github.com/tally-network/tally/p2p"
)

// bend changes what a provider replies.
type bend func(lm.Replier) lm.Replier

type replier func(context.Context, *lm.Request) iter.Seq2[lm.Token, error]

// Reply implements lm.Replier.
func (f replier) Reply(ctx context.Context, r *lm.Request) iter.Seq2[lm.Token, error] {
	return f(ctx, r)
}

// market is a chain with providers of a tiny model, and a gateway before a consumer of theirs.
type market struct {
	*hire.Consumer
	chain *sessiontest.Chain
	root  canon.Hash
	url   string
}

func host(t *testing.T, name string) (*p2p.Host, ed25519.PrivateKey) {
	t.Helper()
	seed := canon.Sum("test", []byte(name))
	key := ed25519.NewKeyFromSeed(seed[:])
	h, err := p2p.New(p2p.Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h, key
}

var quiet = slog.New(slog.DiscardHandler)

// open starts providers, bent as they say (nil is honest), and the gateway. If known, the model is known here as tiny.
func open(t *testing.T, known bool, keys *gateway.Keys, o hire.Options, providers map[string]bend) *market {
	t.Helper()
	f, err := files.Open(lmtest.Folder(t, "tiny", nil))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := f.Manifest(1)
	if err != nil {
		t.Fatal(err)
	}
	m := &market{chain: sessiontest.New(t), root: manifest.Root()}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	for name, b := range providers { // each alone
		h, key := host(t, name)
		r := replies.Start(f.Weights, cpu.New(1), replies.Options{})
		t.Cleanup(r.Close)
		x := &serve.Model{
			Listing:  session.Listing{Name: "tiny", Prices: session.Prices{Prompt: 1_000_000, Reply: 5_000_000, Check: 1_000_000}, Credit: session.Credit{First: 1000, GrowthBps: 5000, Cap: 2000}, Context: 64, Parallel: 4},
			Manifest: manifest, Texts: f.Texts, Weights: f.Weights, Replier: r, Checker: check.New(f.Weights, cpu.New(1)),
		}
		if b != nil {
			x.Replier = b(r)
		}
		m.chain.Join(name, sessiontest.Peer{Key: key.Public().(ed25519.PublicKey), Addrs: h.Addrs()})
		s, err := serve.New(serve.Parts{ChainID: sessiontest.ID, Account: name, Key: key, Host: h, Chain: m.chain.As(name), Dir: t.TempDir(), Log: quiet, Models: []*serve.Model{x}})
		if err != nil {
			t.Fatal(err)
		}
		s.Handle(ctx)
		if err := s.Block(ctx, m.chain.As(name).Head()); err != nil {
			t.Fatal(err)
		}
	}
	h, key := host(t, "consumer")
	if m.Consumer, err = hire.New(hire.Parts{ChainID: sessiontest.ID, Account: "consumer", Key: key, Host: h, Chain: m.chain.As("consumer"), Dir: t.TempDir(), Log: quiet, Options: o}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	names := map[string]canon.Hash{}
	if known {
		names["tiny"] = m.root
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- gateway.New(gateway.Config{Models: network.New(m.Consumer, names), Keys: keys, Log: quiet}).Serve(ctx, l)
	}()
	t.Cleanup(func() { stop(); <-ended })
	m.url = "http://" + l.Addr().String()
	return m
}

// ask sends a body, with a key if there is one, and returns status and answer.
func (m *market) ask(t *testing.T, path, body, key string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Set("Content-Type", "application/json"); key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	r.Header.Set("anthropic-version", "2023-06-01")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text)
}

// asks are questions for a reply of a model, by API, with what their errors look like.
var asks = map[string]struct{ path, body, fault string }{
	"openai":    {"/v1/chat/completions", `{"model": "MODEL", "max_tokens": 20, "seed": 3, "messages": [{"role": "user", "content": "why?"}]}`, `{"error":{"message":`},
	"responses": {"/v1/responses", `{"model": "MODEL", "max_output_tokens": 20, "input": "why?"}`, `{"error":{"message":`},
	"anthropic": {"/v1/messages", `{"model": "MODEL", "max_tokens": 20, "messages": [{"role": "user", "content": "why?"}]}`, `{"type":"error","error":{"type":`},
	"ollama":    {"/api/chat", `{"model": "MODEL", "stream": false, "options": {"num_predict": 20}, "messages": [{"role": "user", "content": "why?"}]}`, `{"error":"`},
}

// Whatever goes wrong on the network is an error in the shape of the API that was asked.
func TestErrorsHaveTheShapeOfTheirAPI(t *testing.T) {
	breaks := func(lm.Replier) lm.Replier {
		return replier(func(context.Context, *lm.Request) iter.Seq2[lm.Token, error] {
			return func(yield func(lm.Token, error) bool) { yield(lm.Token{}, errors.New("the power is out")) }
		})
	}
	for name, c := range map[string]struct {
		model     string
		known     bool
		options   hire.Options
		providers map[string]bend
		status    int
		says      string
	}{
		"nobody serves anything":       {"tiny", true, hire.Options{}, nil, http.StatusNotFound, "tiny"},
		"an unknown model":             {"huge", true, hire.Options{}, map[string]bend{"a": nil}, http.StatusNotFound, "huge"},
		"a name that proves nothing":   {"tiny", false, hire.Options{}, map[string]bend{"a": nil}, http.StatusNotFound, "by its root"},
		"prices above what is allowed": {"tiny", true, hire.Options{MaxPrices: session.Prices{Reply: 1}}, map[string]bend{"a": nil}, http.StatusNotFound, "tiny"},
		"nobody can check":             {"tiny", true, hire.Options{CheckBps: 10_000}, map[string]bend{"a": nil}, http.StatusServiceUnavailable, "nobody can check"},
		"all providers break off":      {"tiny", true, hire.Options{Patience: 2 * time.Second}, map[string]bend{"a": breaks, "b": breaks}, http.StatusServiceUnavailable, "provider"},
	} {
		t.Run(name, func(t *testing.T) {
			m := open(t, c.known, nil, c.options, c.providers)
			for api, q := range asks { // each alone
				status, text := m.ask(t, q.path, strings.ReplaceAll(q.body, "MODEL", c.model), "")
				if status != c.status || !strings.HasPrefix(strings.Join(strings.Fields(text), ""), strings.Join(strings.Fields(q.fault), "")) || !strings.Contains(text, c.says) {
					t.Errorf("%s: %d %s, want %d, %q and %q", api, status, text, c.status, q.fault, c.says)
				}
			}
		})
	}
}

// tally is what a reply of OpenAI's API tells of its cost.
type tally struct {
	Tally struct {
		Model string `json:"model"`
		Cost  uint64 `json:"cost_utally"`
		Check uint64 `json:"check_utally"`
		Bills []struct {
			Provider, Receipt string
			Tokens            int
			Price             uint64 `json:"price_utally"`
		} `json:"bills"`
	} `json:"tally"`
	Usage struct {
		Written int `json:"completion_tokens"`
		Read    int `json:"prompt_tokens"`
	} `json:"usage"`
}

// A reply tells what it has cost, and what its check costs at most; both are what is paid then. A provider that breaks off is not paid.
func TestCostIsTold(t *testing.T) {
	breaks := func(r lm.Replier) lm.Replier {
		return replier(func(ctx context.Context, q *lm.Request) iter.Seq2[lm.Token, error] {
			return func(yield func(lm.Token, error) bool) {
				n := 0
				for x, err := range r.Reply(ctx, q) {
					if n++; n == 4 {
						yield(lm.Token{}, errors.New("the power is out"))
						return
					}
					if !yield(x, err) {
						return
					}
				}
			}
		})
	}
	m := open(t, true, nil, hire.Options{CheckBps: 10_000, Patience: 5 * time.Second}, map[string]bend{"a": breaks, "b": nil, "c": nil})
	q := asks["openai"]
	status, text := m.ask(t, q.path, strings.ReplaceAll(q.body, "MODEL", "tiny"), "")
	var a tally
	if err := json.Unmarshal([]byte(text), &a); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s, %v", status, text, err)
	}
	x := &a.Tally
	if x.Model != m.root.String() || len(x.Bills) == 0 || x.Cost == 0 || x.Check == 0 {
		t.Fatalf("%s", text)
	}
	cost := uint64(0)
	for _, b := range x.Bills {
		if cost += b.Price; b.Provider == "a" {
			t.Errorf("who broke off is paid: %+v", b)
		}
		id, err := canon.ParseHash(b.Receipt)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := m.Checked(t.Context(), id); err != nil || !r.Check.Right() {
			t.Errorf("receipt %s: %+v, %v", id, r, err)
		}
	}
	if s := m.Stats(); s.Paid != cost || x.Cost != cost || s.PaidChecks < x.Check {
		t.Errorf("%+v, bills of %d, told %d and %d for checks", s, cost, x.Cost, x.Check)
	}
	for _, s := range m.Sessions() { // what is settled is gone
		if err := m.Finish(t.Context(), s.ID()); err != nil && s.Terms().Provider.Account != "a" {
			t.Error(err)
		}
	}
	for _, s := range m.Sessions() {
		if s.Terms().Provider.Account != "a" {
			t.Errorf("session %s was settled, and is still listed", s.ID())
		}
	}
}

// A key's budget bounds replies of the network, too.
func TestBudget(t *testing.T) {
	key, digest := gateway.NewKey()
	keys, err := gateway.ReadKeys([]byte("keys:\n- name: poor\n  sha256: " + digest + "\n  budget: 30\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := open(t, true, keys, hire.Options{}, map[string]bend{"a": nil})
	q := asks["openai"]
	body := strings.ReplaceAll(q.body, "MODEL", "tiny")
	if status, text := m.ask(t, q.path, body, "guess"); status != http.StatusUnauthorized {
		t.Errorf("a key that nobody gave: %d %s", status, text)
	}
	status, text := m.ask(t, q.path, body, key)
	var a tally
	if err := json.Unmarshal([]byte(text), &a); err != nil || status != http.StatusOK || a.Usage.Read+a.Usage.Written > 30 {
		t.Fatalf("%d %s, %v", status, text, err)
	}
	if status, text = m.ask(t, q.path, body, key); status != http.StatusTooManyRequests {
		t.Errorf("beyond the budget: %d %s", status, text)
	}
}

// Who leaves pays for what was made, and the provider stops.
func TestCancelledRequest(t *testing.T) {
	slow := func(r lm.Replier) lm.Replier {
		return replier(func(ctx context.Context, q *lm.Request) iter.Seq2[lm.Token, error] {
			return func(yield func(lm.Token, error) bool) {
				for x, err := range r.Reply(ctx, q) {
					time.Sleep(50 * time.Millisecond)
					select {
					case <-q.Enough:
						x.Reason = lm.Cut
					default:
					}
					if !yield(x, err) || x.Reason == lm.Cut {
						return
					}
				}
			}
		})
	}
	m := open(t, true, nil, hire.Options{}, map[string]bend{"a": slow})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	body := strings.ReplaceAll(`{"model": "MODEL", "max_tokens": 40, "seed": 3, "stream": true, "messages": [{"role": "user", "content": "why?"}]}`, "MODEL", "tiny")
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if _, err := a.Body.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	leave()
	for end := time.Now().Add(time.Minute); m.Stats().Replies == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("there is no bill")
		}
	}
	if s := m.Stats(); s.Written == 0 || s.Written >= 40 || s.Paid == 0 {
		t.Errorf("%+v: want the bill of a part", s)
	}
}
