package hire_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/internal/testkit/sessiontest"
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/grammar"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/replies"
	"github.com/tally-network/tally/node/hire"
	"github.com/tally-network/tally/node/serve"
	"github.com/tally-network/tally/p2p"
)

// bend changes what a provider replies.
type bend func(lm.Replier) lm.Replier

// network is a chain with providers of one model, and a consumer.
type network struct {
	t        *testing.T
	chain    *sessiontest.Chain
	files    *files.Files
	manifest *files.Manifest
	servers  map[string]*serve.Server
	checkers map[string]checker // of providers that check otherwise than they should
	hosts    map[string]*p2p.Host
	*hire.Consumer
}

func keyOf(name string) ed25519.PrivateKey {
	seed := canon.Sum("test", []byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func hostOf(t *testing.T, name string) *p2p.Host {
	h, err := p2p.New(p2p.Options{Key: keyOf(name)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// prices are such that a token costs something.
var (
	prices = session.Prices{Prompt: 1_000_000, Reply: 5_000_000, Check: 1_000_000}
	credit = session.Credit{First: 400, GrowthBps: 5000, Cap: 2000}
)

// start starts a network. Providers are bent as they say; nil is honest.
func start(t *testing.T, o hire.Options, providers map[string]bend) *network {
	t.Helper()
	f, err := files.Open(lmtest.Folder(t, "tiny", nil))
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, f, o, providers)
}

// startWith is start, of a model that is open.
func startWith(t *testing.T, f *files.Files, o hire.Options, providers map[string]bend) *network {
	t.Helper()
	m, err := f.Manifest(1)
	if err != nil {
		t.Fatal(err)
	}
	n := &network{t: t, chain: sessiontest.New(t), files: f, manifest: m, servers: map[string]*serve.Server{}, hosts: map[string]*p2p.Host{}}
	for name, b := range providers { // each alone
		n.provide(name, t.TempDir(), b)
	}
	n.consume(o, t.TempDir())
	return n
}

// provide lets a provider begin, with the tabs in a folder.
func (n *network) provide(name, dir string, b bend) {
	h := hostOf(n.t, name)
	r := replies.Start(n.files.Weights, cpu.New(1), replies.Options{})
	n.t.Cleanup(r.Close)
	var replier lm.Replier = r
	if b != nil {
		replier = b(r)
	}
	var checks serve.Checker = check.New(n.files.Weights, cpu.New(1))
	if c := n.checkers[name]; c != nil {
		checks = c
	}
	key := keyOf(name)
	n.chain.Join(name, sessiontest.Peer{Key: key.Public().(ed25519.PublicKey), Addrs: h.Addrs()})
	s, err := serve.New(serve.Parts{
		ChainID: sessiontest.ID, Account: name, Key: key, Host: h, Chain: n.chain.As(name), Dir: dir, Log: quiet,
		Models: []*serve.Model{{
			Listing:  session.Listing{Name: "tiny", Prices: prices, Credit: credit, Context: 64, Parallel: 4},
			Manifest: n.manifest, Texts: n.files.Texts, Weights: n.files.Weights, Replier: replier, Checker: checks,
		}},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n.t.Cleanup(stop)
	s.Handle(ctx)
	if err := s.Block(n.t.Context(), n.chain.As(name).Head()); err != nil {
		n.t.Fatal(err)
	}
	n.servers[name], n.hosts[name] = s, h
}

func (n *network) consume(o hire.Options, dir string) {
	key := keyOf("consumer")
	c, err := hire.New(hire.Parts{ChainID: sessiontest.ID, Account: "consumer", Key: key, Host: hostOf(n.t, "consumer"), Chain: n.chain.As("consumer"), Dir: dir, Log: quiet, Options: o})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(c.Close)
	n.Consumer = c
	c.Resume()
}

// alone is the reply that the model gives by itself.
func (n *network) alone(r *lm.Request) (out []int32) {
	s := replies.Start(n.files.Weights, cpu.New(1), replies.Options{})
	defer s.Close()
	for t, err := range s.Reply(n.t.Context(), r) {
		if err != nil {
			n.t.Fatal(err)
		}
		out = append(out, t.ID)
	}
	return out
}

// told is the reply that the network gives.
func (n *network) told(ctx context.Context, r *lm.Request) (out []int32, bills []hire.Bill, err error) {
	var mu sync.Mutex
	ctx = hire.WithBills(ctx, func(b hire.Bill) {
		mu.Lock()
		defer mu.Unlock()
		bills = append(bills, b)
	})
	for t, err := range n.Reply(ctx, n.manifest.Root(), r) {
		if err != nil {
			return out, bills, err
		}
		out = append(out, t.ID)
	}
	return out, bills, nil
}

func random(r *rand.Rand) *lm.Request {
	q := &lm.Request{MaxTokens: 1 + r.IntN(40), Ends: []int32{7}, Seed: r.Uint64(), Sampling: lm.Sampling{Temperature: 1, Frequency: 0.5}}
	for range 1 + r.IntN(20) {
		q.Prompt = append(q.Prompt, r.Int32N(48))
	}
	return q
}

// formed is a random request whose reply is some words and a full stop.
func formed(r *rand.Rand) *lm.Request {
	q := random(r)
	b := grammar.NewBuilder()
	letter := func(next grammar.Node) grammar.Node { return b.Bytes('a', 'z', next) }
	form, err := b.Build(b.Repeat(1, 4, b.Text(".", b.End()), func(next grammar.Node) grammar.Node {
		return b.Repeat(2, 5, b.Text(" ", next), letter)
	}))
	if err != nil {
		panic(err) // it is the same always
	}
	q.Form, q.Ends, q.MaxTokens = form, []int32{1}, 40
	return q
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Replies of the network are the model's, bit for bit; all are checked by another provider; and the money adds up.
func TestRepliesOfTheNetwork(t *testing.T) {
	n := start(t, hire.Options{CheckBps: 10_000, Forced: 3000}, map[string]bend{"a": nil, "b": nil})
	r := rand.New(rand.NewPCG(1, 1))
	var group sync.WaitGroup
	billed := atomic.Uint64{}
	const asked = 24
	for i := range asked {
		q := random(r)
		if i%3 == 0 {
			q = formed(r)
		}
		group.Go(func() {
			got, bills, err := n.told(t.Context(), q)
			if err != nil {
				t.Errorf("%+v: %v", q, err)
				return
			}
			if want := n.alone(q); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			for _, b := range bills {
				billed.Add(b.Price)
			}
		})
	}
	group.Wait()
	until(t, "all replies are checked", func() bool { s := n.Stats(); return s.Checked == s.Replies })
	s := n.Stats()
	if s.Wrong > 0 || s.Broken > 0 || s.Replies < asked || s.Paid != billed.Load() || len(n.Blamed()) > 0 {
		t.Errorf("%+v, bills of %d, blamed %v", s, billed.Load(), n.Blamed())
	}
	n.settle(s.Paid + s.PaidChecks)
}

// settle ends all sessions, which come to so much.
func (n *network) settle(cost uint64) {
	n.t.Helper()
	for _, x := range n.Sessions() {
		until(n.t, "nothing is under way", func() bool { return x.State().Held == 0 })
		if err := n.Finish(n.t.Context(), x.ID()); err != nil {
			n.t.Error(err)
		}
	}
	paid := uint64(0)
	for _, s := range n.chain.Sessions() {
		if s.Phase != session.Ended {
			n.t.Errorf("session %s is %s", s.ID(), s.Phase)
		}
		paid += s.Ledger.Paid + s.Ledger.Burnt
	}
	if paid != cost || n.chain.Balance("consumer") != -int64(cost) {
		n.t.Errorf("the consumer has paid %d (%d): want %d", paid, n.chain.Balance("consumer"), cost)
	}
}

// weights are those of the model on the consumer's machine.
func (n *network) weights() hire.Checker {
	return self{n.manifest.Root(), check.New(n.files.Weights, cpu.New(1))}
}

type self struct {
	root canon.Hash
	c    *check.Checker
}

// Has implements hire.Checker.
func (s self) Has(model canon.Hash) bool { return model == s.root }

// Check implements hire.Checker.
func (s self) Check(ctx context.Context, _ canon.Hash, r *lm.Request, reply []int32) (check.Verdict, error) {
	return s.c.Check(ctx, r, reply)
}

// bent lets a provider change each token.
func bent(change func(i int, t *lm.Token) error) bend {
	return func(r lm.Replier) lm.Replier {
		return replier(func(ctx context.Context, q *lm.Request) iter.Seq2[lm.Token, error] {
			return func(yield func(lm.Token, error) bool) {
				i := 0
				for t, err := range r.Reply(ctx, q) {
					if err == nil {
						err = change(i, &t)
					}
					if i++; !yield(t, err) || err != nil {
						return
					}
				}
			}
		})
	}
}

type replier func(context.Context, *lm.Request) iter.Seq2[lm.Token, error]

// Reply implements lm.Replier.
func (f replier) Reply(ctx context.Context, r *lm.Request) iter.Seq2[lm.Token, error] {
	return f(ctx, r)
}

// A provider that replies otherwise than the model is found and dealt with no more. It has got one instalment at most.
func TestCheatsAreFound(t *testing.T) {
	for name, b := range map[string]bend{
		"another token": bent(func(i int, t *lm.Token) error {
			if i == 2 && t.Reason == "" {
				t.ID = (t.ID + 1) % 7
			}
			return nil
		}),
		"another seed": func(r lm.Replier) lm.Replier {
			return replier(func(ctx context.Context, q *lm.Request) iter.Seq2[lm.Token, error] {
				x := *q
				x.Seed++
				return r.Reply(ctx, &x)
			})
		},
		"a shorter context": func(r lm.Replier) lm.Replier {
			return replier(func(ctx context.Context, q *lm.Request) iter.Seq2[lm.Token, error] {
				x := *q
				x.Prompt = x.Prompt[len(x.Prompt)/2:]
				x.Made = 0
				return r.Reply(ctx, &x)
			})
		},
		"pages that it has not computed": bent(func(_ int, t *lm.Token) error {
			t.Pages = canon.Sum("test", []byte("invented"))
			return nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			for _, self := range []bool{true, false} {
				o := hire.Options{CheckBps: 10_000, Forced: 0}
				n := start(t, o, map[string]bend{"a": nil, "b": nil, "c": nil, "cheat": b})
				if self {
					o.SelfFirst, o.Self = true, n.weights()
					n.consume(o, t.TempDir())
				}
				r := rand.New(rand.NewPCG(2, 2))
				for range 60 {
					q := random(r)
					q.MaxTokens, q.Ends = 20, nil
					if _, _, err := n.told(t.Context(), q); err != nil {
						t.Fatal(err)
					}
					if len(n.Blamed()) > 0 {
						break
					}
				}
				until(t, "it is found", func() bool { return len(n.Blamed()) > 0 })
				if b := n.Blamed(); b["cheat"].Why == "" || len(b) > 1 {
					t.Fatalf("blamed: %v", b)
				}
				for range 3 {
					q := random(r)
					got, bills, err := n.told(t.Context(), q)
					if err != nil || !slices.Equal(got, n.alone(q)) {
						t.Errorf("%v, %v", got, err)
					}
					for _, b := range bills {
						if b.Provider == "cheat" {
							t.Error("it is asked again")
						}
					}
				}
				for _, x := range n.Sessions() {
					if terms := x.Terms(); terms.Provider.Account == "cheat" && x.State().Paid > credit.Cap {
						t.Errorf("it was paid %d", x.State().Paid)
					}
				}
			}
		})
	}
}

// Whoever replies by the base, or by another adapter, is found as anybody who replies by another model.
func TestAnotherAdapterIsFound(t *testing.T) {
	base, err := files.Open(lmtest.Folder(t, "tiny", nil))
	if err != nil {
		t.Fatal(err)
	}
	f, err := base.Adapted(lmtest.Adapter(t, "llama-some"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := base.Adapted(lmtest.Adapter(t, "llama-other"))
	if err != nil {
		t.Fatal(err)
	}
	for _, played := range []*files.Files{base, other} {
		cheap := replies.Start(played.Weights, cpu.New(1), replies.Options{})
		n := startWith(t, f, hire.Options{CheckBps: 10_000}, map[string]bend{"a": nil, "b": nil, "c": nil, "cheat": func(lm.Replier) lm.Replier { return cheap }})
		r := rand.New(rand.NewPCG(3, 2))
		for range 60 {
			q := random(r)
			q.MaxTokens, q.Ends = 20, nil
			if _, _, err := n.told(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			if len(n.Blamed()) > 0 {
				break
			}
		}
		until(t, "it is found", func() bool { return len(n.Blamed()) > 0 })
		if b := n.Blamed(); b["cheat"].Why == "" || len(b) > 1 {
			t.Errorf("blamed: %v", b)
		}
		cheap.Close()
	}
}

// checker is how a provider checks.
type checker func(reply []int32) check.Verdict

// Check implements serve.Checker.
func (c checker) Check(_ context.Context, _ *lm.Request, reply []int32) (check.Verdict, error) {
	return c(reply), nil
}

// A checker that does not compute, or finds fault with what is right, is found by others that are drawn. Nobody honest is blamed for long.
func TestCheckersThatLie(t *testing.T) {
	for name, c := range map[string]checker{
		"nothing is ever wrong": func([]int32) check.Verdict { return check.Verdict{Wrong: -1} },
		"all is wrong":          func([]int32) check.Verdict { return check.Verdict{Wrong: 0} },
		"all ends are wrong":    func(reply []int32) check.Verdict { return check.Verdict{Wrong: len(reply) - 1} },
	} {
		t.Run(name, func(t *testing.T) {
			n := start(t, hire.Options{CheckBps: 10_000, Forced: 5000}, nil)
			n.checkers = map[string]checker{"liar": c}
			for _, p := range []string{"a", "b", "d", "liar"} {
				b := bend(nil)
				if p == "liar" { // it is busy for replies
					b = func(lm.Replier) lm.Replier {
						return replier(func(context.Context, *lm.Request) iter.Seq2[lm.Token, error] {
							return func(yield func(lm.Token, error) bool) { yield(lm.Token{}, errors.New("busy")) }
						})
					}
				}
				n.provide(p, t.TempDir(), b)
			}
			r := rand.New(rand.NewPCG(6, 6))
			for range 60 {
				q := random(r)
				if got, _, err := n.told(t.Context(), q); err != nil || !slices.Equal(got, n.alone(q)) {
					t.Fatalf("%v, %v", got, err)
				}
				until(t, "it is checked", func() bool { s := n.Stats(); return s.Checked == s.Replies })
				if len(n.Blamed()) > 0 {
					break
				}
			}
			if b := n.Blamed(); b["liar"].Why == "" || len(b) > 1 || time.Until(b["liar"].Until) > time.Hour {
				t.Errorf("blamed: %v", b)
			}
		})
	}
}

// A consumer that has the model decides by itself what a checker disputes.
func TestDisputesAreDecidedHere(t *testing.T) {
	n := start(t, hire.Options{CheckBps: 10_000}, map[string]bend{"a": nil})
	n.checkers = map[string]checker{"liar": func([]int32) check.Verdict { return check.Verdict{Wrong: 0} }}
	n.provide("liar", t.TempDir(), nil)
	n.consume(hire.Options{CheckBps: 10_000, Self: n.weights()}, t.TempDir())
	r := rand.New(rand.NewPCG(7, 7))
	for i := 0; len(n.Blamed()) == 0 && i < 20; i++ {
		if _, _, err := n.told(t.Context(), random(r)); err != nil {
			t.Fatal(err)
		}
		until(t, "it is checked", func() bool { s := n.Stats(); return s.Checked == s.Replies })
	}
	if b := n.Blamed(); b["liar"].Why == "" || len(b) > 1 {
		t.Errorf("blamed: %v", b)
	}
}

// A consumer that vanishes has paid: its provider claims that before the session ends.
func TestConsumersThatVanish(t *testing.T) {
	n := start(t, hire.Options{Lasts: time.Hour}, map[string]bend{"a": nil})
	if _, _, err := n.told(t.Context(), random(rand.New(rand.NewPCG(8, 8)))); err != nil {
		t.Fatal(err)
	}
	spent := n.Stats().Paid
	n.Close()
	n.Host.Close()
	for range 400 { // of ten minutes each: beyond the time in which vouchers count
		if err := n.servers["a"].Block(t.Context(), n.chain.Advance(10*60*1000)); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range n.chain.Sessions() {
		if s.Phase != session.Ended || s.Ledger.Paid+s.Ledger.Burnt < spent || s.Ledger.Paid+s.Ledger.Burnt > credit.First {
			t.Errorf("%s: %+v, spent %d", s.Phase, s.Ledger, spent)
		}
	}
	if b := n.chain.Balance("a"); b < int64(spent)*9/10 {
		t.Errorf("the provider has got %d of %d", b, spent)
	}
	if sent := n.chain.Sent(); sent > 4 {
		t.Errorf("%d messages for one session and one listing", sent)
	}
}

// What a consumer pays ahead has limits of its own, and nothing is asked that nobody can check.
func TestLimitsOfAConsumer(t *testing.T) {
	n := start(t, hire.Options{MaxFirst: credit.First - 1}, map[string]bend{"a": nil, "b": nil})
	q := &lm.Request{Prompt: []int32{1}, MaxTokens: 1}
	if _, _, err := n.told(t.Context(), q); !errors.Is(err, hire.ErrNobody) {
		t.Error(err)
	}
	n = start(t, hire.Options{CheckBps: 1000}, map[string]bend{"a": nil})
	if _, _, err := n.told(t.Context(), q); !errors.Is(err, hire.ErrUncheckable) || n.chain.Sent() > 1 {
		t.Error(err, n.chain.Sent())
	}
	q.Prompt = make([]int32, 64)
	if _, _, err := n.told(t.Context(), q); !errors.Is(err, hire.ErrTooLong) {
		t.Error(err)
	}
}

// A provider that breaks off, stays silent, or is gone holds nothing up: others go on, and the reply is the same.
func TestProvidersThatFail(t *testing.T) {
	n := start(t, hire.Options{Patience: 2 * time.Second}, map[string]bend{
		"breaks": bent(func(i int, t *lm.Token) error {
			if i == 3 {
				return errors.New("out of memory")
			}
			return nil
		}),
		"silent": func(lm.Replier) lm.Replier {
			return replier(func(ctx context.Context, q *lm.Request) iter.Seq2[lm.Token, error] {
				return func(func(lm.Token, error) bool) { <-q.Enough }
			})
		},
		"works": nil,
	})
	r := rand.New(rand.NewPCG(3, 3))
	for range 6 {
		q := random(r)
		got, _, err := n.told(t.Context(), q)
		if want := n.alone(q); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v, %v, want %v", got, err, want)
		}
	}
	if s := n.Stats(); s.Broken == 0 {
		t.Errorf("nobody has failed: %+v", s)
	}
}

// A token that leaves the form of a reply, and an end before the form is complete, are heard by nobody: others go on.
func TestFormsOfTheNetwork(t *testing.T) {
	n := start(t, hire.Options{Patience: 20 * time.Second}, map[string]bend{
		"leaves": bent(func(i int, t *lm.Token) error {
			if i == 4 && t.Reason == "" {
				t.ID = 4 // the end of a line is nowhere in it
			}
			return nil
		}),
		"stops": bent(func(i int, t *lm.Token) error {
			if i == 2 {
				t.Reason = lm.Stop
			}
			return nil
		}),
		"works": nil,
	})
	r := rand.New(rand.NewPCG(5, 5))
	for range 6 {
		q := formed(r)
		got, _, err := n.told(t.Context(), q)
		if want := n.alone(q); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v, %v, want %v", got, err, want)
		}
		text, err := n.files.Tokenizer.Decode(got, true)
		if err != nil || !q.Form.Accepts([]byte(text)) && len(got) < q.MaxTokens {
			t.Errorf("%q, %v", text, err)
		}
	}
	if s := n.Stats(); s.Broken < 2 {
		t.Errorf("%+v", s)
	}
	q := formed(r)
	b := grammar.NewBuilder()
	var err error
	if q.Form, err = b.Build(b.Text("{}", b.End())); err != nil {
		t.Fatal(err)
	}
	if _, _, err := n.told(t.Context(), q); err == nil || !strings.Contains(err.Error(), "cannot write this form") {
		t.Errorf("%v", err)
	}
}

// Who leaves before the end pays for what was made, and no more than that.
func TestWhoLeavesPays(t *testing.T) {
	n := start(t, hire.Options{}, map[string]bend{"a": bent(func(i int, _ *lm.Token) error { time.Sleep(2 * time.Millisecond); return nil })})
	q := &lm.Request{Prompt: []int32{1, 2, 3}, MaxTokens: 50, Seed: 1, Sampling: lm.Sampling{Temperature: 1}}
	i := 0
	for _, err := range n.Reply(t.Context(), n.manifest.Root(), q) {
		if err != nil {
			t.Fatal(err)
		}
		if i++; i == 5 {
			break
		}
	}
	until(t, "it is billed", func() bool { return n.Stats().Replies == 1 })
	if s := n.Stats(); s.Written < 5 || s.Written > 40 {
		t.Errorf("billed %d tokens", s.Written)
	}
	n.settle(n.Stats().Paid)
}

// Either side may be killed and begin again: sessions go on, no receipt is counted twice, and what is paid is settled.
func TestBothSidesBeginAgain(t *testing.T) {
	n := start(t, hire.Options{CheckBps: 5000}, nil)
	provider, consumer := t.TempDir(), t.TempDir()
	n.provide("a", provider, nil)
	n.provide("b", t.TempDir(), nil)
	n.consume(hire.Options{CheckBps: 5000, Patience: 5 * time.Second}, consumer)
	r := rand.New(rand.NewPCG(4, 4))
	for round := range 6 {
		for range 3 {
			q := random(r)
			got, _, err := n.told(t.Context(), q)
			if want := n.alone(q); err != nil || !slices.Equal(got, want) {
				t.Fatalf("round %d: %v, %v, want %v", round, got, err, want)
			}
		}
		if round%2 == 0 {
			n.Close()
			n.Host.Close()
			n.consume(hire.Options{CheckBps: 5000, Patience: 5 * time.Second}, consumer)
		} else {
			n.hosts["a"].Close()
			n.provide("a", provider, nil)
		}
	}
	for _, x := range n.Sessions() {
		until(t, "nothing is under way", func() bool { return x.State().Held == 0 && (len(x.Open()) == 0 || x.State().Left) })
		if x.State().Left {
			t.Errorf("session %s went wrong", x.ID())
		}
		until(t, "it is settled", func() bool { return n.Finish(t.Context(), x.ID()) == nil }) // connections of before break first
	}
	for _, s := range n.chain.Sessions() {
		if s.Phase != session.Ended {
			t.Errorf("session %s is %s", s.ID(), s.Phase)
		}
	}
}

// What a consumer keeps of a reply is enough for anybody who has the model.
func TestReceiptsStandAlone(t *testing.T) {
	n := start(t, hire.Options{}, map[string]bend{"a": nil})
	q := random(rand.New(rand.NewPCG(5, 5)))
	got, bills, err := n.told(t.Context(), q)
	if err != nil || len(bills) == 0 {
		t.Fatal(err, bills)
	}
	x, err := hire.ReadReceipt(hire.ReceiptPath(n.Dir, bills[0].Receipt.String()))
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Verify(); err != nil {
		t.Error(err)
	}
	v, err := check.New(n.files.Weights, cpu.New(1)).Check(t.Context(), &x.Request, x.Reply)
	if err != nil || v.Wrong >= 0 || dispute.SaltedPages(v.Pages, x.Terms.Provider.Key) != x.Receipt.Pages || !slices.Equal(x.Reply, got[:len(x.Reply)]) {
		t.Errorf("%+v, %v", v, err)
	}
	for name, change := range map[string]func(*hire.Receipt){
		"reply": func(x *hire.Receipt) { x.Reply[0]++ }, "prompt": func(x *hire.Receipt) { x.Request.Prompt[0]++ }, "seed": func(x *hire.Receipt) { x.Request.Seed++ },
		"price": func(x *hire.Receipt) { x.Terms.Prices.Reply++ }, "number": func(x *hire.Receipt) { x.Receipt.Number++ }, "signature": func(x *hire.Receipt) { x.Signature[5]++ },
	} {
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		var y hire.Receipt
		if err := json.Unmarshal(text, &y); err != nil {
			t.Fatal(err)
		}
		if change(&y); y.Verify() == nil {
			t.Errorf("another %s is taken", name)
		}
	}
	if !strings.Contains(bills[0].Provider, "a") {
		t.Errorf("%+v", bills)
	}
}

// Without a provider, or at too high a price, it says so.
func TestNobodyServes(t *testing.T) {
	n := start(t, hire.Options{MaxPrices: session.Prices{Reply: 1}}, map[string]bend{"a": nil})
	if _, _, err := n.told(t.Context(), &lm.Request{Prompt: []int32{1}, MaxTokens: 1}); !errors.Is(err, hire.ErrNobody) {
		t.Error(err)
	}
	if _, err := n.Model(t.Context(), canon.Sum("test", nil)); !errors.Is(err, hire.ErrNobody) {
		t.Error(err)
	}
}
