package e2e_test

import (
	"context"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/engine/cpu"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/replies"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/contest"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/hire"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/serve"
	"github.com/tally-network/tally/node/tabs"
)

// served is a network whose providers serve a tiny model in place of computing orders.
type served struct {
	*nettest.Network
	*hire.Consumer

	t        *testing.T
	files    *files.Files
	manifest *files.Manifest

	mu   sync.Mutex
	slow time.Duration // before each token of a reply
	liar string        // the provider whose fourth tokens are others than the model's
	busy string        // the provider that made the last one
}

// serveTiny starts it, with so many providers and a consumer that has all replies checked.
func serveTiny(t *testing.T, providers int) *served {
	s := &served{t: t}
	var err error
	if s.files, err = files.Open(lmtest.Folder(t, "tiny", nil)); err != nil {
		t.Fatal(err)
	}
	if s.manifest, err = s.files.Manifest(1); err != nil {
		t.Fatal(err)
	}
	o := nettest.Options{Play: map[string]func(context.Context, *role.Env) error{}, Config: func(c *devnet.Config) { c.Providers = providers }}
	dir := t.TempDir()
	for _, name := range []string{"provider-0", "provider-1", "provider-2"}[:providers] {
		o.Play[name] = func(ctx context.Context, env *role.Env) error { return s.provide(ctx, env, filepath.Join(dir, name)) }
	}
	s.Network = nettest.Start(t, o)
	p := hire.OfEnv(s.Network.Consumer.Env)
	p.Dir, p.Options = t.TempDir(), hire.Options{CheckBps: 10_000, Patience: 10 * time.Second}
	if s.Consumer, err = hire.New(p); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx, s.Network.Consumer.Env); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); s.Close(); running.Wait() })
	s.until("all providers are listed", func() bool {
		all, err := s.Chain.Listings(t.Context(), s.manifest.Root(), "")
		return err == nil && len(all) == providers
	})
	return s
}

// provide is what a provider does.
func (s *served) provide(ctx context.Context, env *role.Env, dir string) error {
	r := replies.Start(s.files.Weights, cpu.New(1), replies.Options{Threads: 1})
	defer r.Close()
	p := serve.OfEnv(env)
	p.Dir, p.Models = dir, []*serve.Model{{
		Listing: session.Listing{
			Name: "tiny", Prices: session.Prices{Prompt: 2_000_000, Reply: 6_000_000, Check: 2_000_000},
			Credit: session.Credit{First: 10_000, GrowthBps: 5_000, Cap: 100_000}, Context: uint64(r.Context()), Parallel: 4,
		},
		Manifest: s.manifest, Texts: s.files.Texts, Weights: s.files.Weights, Replier: slowly{r, s, env.Name}, Checker: check.New(s.files.Weights, cpu.New(1)),
		Contest: contest.NewModel(s.manifest.Disputed(), s.files.Weights, cpu.New(1), 1),
	}}
	server, err := serve.New(p)
	if err != nil {
		return err
	}
	return server.Run(ctx, env)
}

// slowly replies as slowly as the test wants.
type slowly struct {
	lm.Replier
	s    *served
	name string
}

// Reply implements lm.Replier.
func (r slowly) Reply(ctx context.Context, q *lm.Request) iter.Seq2[lm.Token, error] {
	return func(yield func(lm.Token, error) bool) {
		told := 0
		for t, err := range r.Replier.Reply(ctx, q) {
			r.s.mu.Lock()
			wait := r.s.slow
			r.s.busy = r.name
			if told++; told == 4 && r.s.liar == r.name && err == nil && t.Reason == "" {
				t.ID = (t.ID + 7) % 40
			}
			r.s.mu.Unlock()
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

func (s *served) slowDown(wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = wait
}

func (s *served) busyOne() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy
}

func (s *served) until(what string, ok func() bool) {
	s.t.Helper()
	if err := s.EachBlock(func(client.Block) (bool, error) { return !ok(), nil }); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// question is the i-th.
func question(i int) *lm.Request {
	q := &lm.Request{MaxTokens: 16, Seed: uint64(i), Sampling: lm.Sampling{Temperature: 1}}
	for j := range 4 + i {
		q.Prompt = append(q.Prompt, int32(5+(7*i+3*j)%40))
	}
	return q
}

// alone is the reply that the model gives by itself.
func (s *served) alone(q *lm.Request) (out []int32) {
	r := replies.Start(s.files.Weights, cpu.New(1), replies.Options{Threads: 1})
	defer r.Close()
	for t, err := range r.Reply(s.t.Context(), q) {
		if err != nil {
			s.t.Fatal(err)
		}
		out = append(out, t.ID)
	}
	return out
}

// ask wants the reply of the network to be the model's. After the third token it calls third.
func (s *served) ask(q *lm.Request, third func()) {
	s.t.Helper()
	var got []int32
	for t, err := range s.Reply(s.t.Context(), s.manifest.Root(), q) {
		if err != nil {
			s.t.Fatal(err)
		}
		if got = append(got, t.ID); len(got) == 3 && third != nil {
			third()
		}
	}
	if want := s.alone(q); !slices.Equal(got, want) {
		s.t.Fatalf("the network replies %v, the model %v", got, want)
	}
}

// allChecked reports whether nothing is checked any more, and all of it was.
func (s *served) allChecked() bool {
	x := s.Stats()
	return x.Checked == x.Replies && !slices.ContainsFunc(s.Sessions(), func(t *tabs.Tab) bool { return len(t.Open()) > 0 })
}

// settle ends all sessions, and holds what the chain has paid against what was billed.
func (s *served) settle() {
	s.t.Helper()
	s.until("all replies are checked", s.allChecked)
	paid, got, ids := uint64(0), map[string]int64{}, []canon.Hash{}
	for _, x := range s.Sessions() {
		ids = append(ids, x.ID())
		if err := s.Finish(s.t.Context(), x.ID()); err != nil {
			s.t.Errorf("session %s: %v", x.ID(), err)
		}
	}
	for _, id := range ids {
		on, err := s.Chain.Session(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		l := on.Ledger
		if on.Phase != session.Ended || l.Escrow != 0 || l.Locked != l.Paid+l.Burnt+l.Refunded {
			s.t.Errorf("session %s is %s, and its ledger %+v", id, on.Phase, l)
		}
		paid += l.Paid + l.Burnt
		got[on.Terms.Provider.Account] += int64(l.Paid)
		got[on.Terms.Consumer.Account] -= int64(l.Paid + l.Burnt)
	}
	if err := s.Hold(got); err != nil {
		s.t.Error(err)
	}
	x := s.Stats()
	if paid != x.Paid+x.PaidChecks || paid == 0 {
		s.t.Errorf("the chain has paid %d utally, the bills are of %d and %d", paid, x.Paid, x.PaidChecks)
	}
	if x.Wrong > 0 || len(s.Blamed()) > 0 {
		s.t.Errorf("honest providers are blamed: %v", s.Blamed())
	}
	r, err := supplyv1.NewQueryClient(s.Network.Consumer.Env.Chain.Conn).Check(s.t.Context(), &supplyv1.QueryCheckRequest{})
	if err != nil || !r.Ok {
		s.t.Errorf("the supply does not add up: %+v, %v", r, err)
	}
}

// On a real chain strangers reply as the model does, each reply is checked by another, and sessions settle to what was billed. A provider
// that is stopped in a reply loses it to another, with the same tokens; when it begins again, it serves again.
func TestStrangersServeAModel(t *testing.T) {
	t.Parallel()
	s := serveTiny(t, 3)
	for i := range 10 {
		s.ask(question(i), nil)
	}
	s.until("all replies are checked", s.allChecked)
	if x := s.Stats(); x.Replies != 10 {
		t.Errorf("ten questions: %+v", x)
	}
	broken := s.Stats().Broken // a provider may not have seen a block yet, in which a session is opened

	s.slowDown(20 * time.Millisecond)
	var stopped string
	q := question(10)
	q.MaxTokens = 30
	s.ask(q, func() {
		stopped = s.busyOne()
		s.End(stopped)
	})
	s.slowDown(0)
	if x := s.Stats(); x.Broken == broken || s.busyOne() == stopped {
		t.Errorf("%s was stopped, and nobody went on: %+v", stopped, x)
	}
	s.Begin(stopped)
	s.settle()
}

// A provider that changes a token is found by the one that checks it, which disputes the reply on the chain. The provider cannot defend it: it is convicted, and
// whoever asks is told the rest by others.
func TestAWrongReplyIsConvicted(t *testing.T) {
	t.Parallel()
	s := serveTiny(t, 3)
	s.mu.Lock()
	s.liar = "provider-0"
	s.mu.Unlock()
	liar := s.Network.Providers[0].Home.Address
	for i := 0; len(s.Blamed()) == 0; i++ {
		for _, err := range s.Reply(t.Context(), s.manifest.Root(), question(i%8)) {
			if err != nil {
				t.Fatal(err)
			}
		}
		s.until("all replies are checked", func() bool { return s.allChecked() || len(s.Blamed()) > 0 })
	}
	if _, is := s.Blamed()[liar]; !is || len(s.Blamed()) > 1 {
		t.Fatalf("blamed are %v", s.Blamed())
	}
	s.until("the provider is convicted", func() bool {
		r, err := sessionsv1.NewQueryClient(s.Network.Consumer.Env.Chain.Conn).Record(t.Context(), &sessionsv1.QueryRecordRequest{Provider: liar})
		return err == nil && r.Record.Convictions == 1
	})
}
