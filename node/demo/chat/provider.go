package chat

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/replies"
	"github.com/tally-network/tally/node/contest"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/runner"
	"github.com/tally-network/tally/node/serve"
)

// Who serves.
const (
	validators = 1 // all see the same blocks at the same time: a provider knows a session as soon as the consumer does
	providers  = 3
	cheater    = "provider-1"
)

// prices are in utally for a million tokens: one or a few for each token, so that a short demo shows sums.
var prices = session.Prices{Prompt: 2_000_000, Reply: 6_000_000, Check: 2_000_000}

// credit is what is paid ahead: about one reply at first, as that is what a cheater can get away with.
var credit = session.Credit{First: 500, GrowthBps: 5_000, Cap: 2_000}

// cacheBytes is the memory of a provider for keys and values.
const cacheBytes = 256 << 20

// start starts the network, whose providers serve in place of computing orders.
func (d *demo) start(ctx context.Context) (err error) {
	d.network, err = devnet.Start(ctx, devnet.Config{
		Dir: filepath.Join(d.o.Dir, "network"), Validators: validators, Providers: providers, Challengers: 1, Threads: 1, Log: d.o.Log,
		Run: func(ctx context.Context, h *home.Home, env *role.Env) error {
			if h.Settings.Role != home.Provider {
				return runner.Run(ctx, h, env)
			}
			return runner.RunOnly(ctx, h, env, d.provide)
		},
	})
	if err != nil {
		return err
	}
	for _, m := range d.network.Providers {
		d.report.Names[m.Home.Address] = m.Env.Name
	}
	d.report.Names[d.network.Consumer.Home.Address] = d.network.Consumer.Env.Name
	return nil
}

// provide serves the model.
func (d *demo) provide(ctx context.Context, env *role.Env) error {
	e := cpu.New(1)
	r := replies.Start(d.files.Weights, e, replies.Options{Sequences: 4, Bytes: cacheBytes, Threads: 1})
	defer r.Close()
	m := &serve.Model{
		Listing: session.Listing{
			Name: d.o.Name, Prices: prices, Credit: credit, Context: uint64(r.Context()), Parallel: 4,
		},
		Manifest: d.manifest, Texts: d.files.Texts, Weights: d.files.Weights, Replier: r, Checker: check.New(d.files.Weights, e),
		Contest: contest.NewModel(d.manifest.Disputed(), d.files.Weights, e, runtime.GOMAXPROCS(0)),
	}
	if env.Name == cheater {
		m.Listing.Prices.Prompt /= 2
		m.Listing.Prices.Reply /= 2
		lie, err := d.files.Tokenizer.Encode(" not", false)
		if err != nil {
			return err
		}
		m.Contest = liar{m.Contest}
		m.Replier = &bent{Replier: r, lie: lie, of: m.Contest}
	}
	p := serve.OfEnv(env)
	p.Dir, p.Models = filepath.Join(d.o.Dir, "serve", env.Name), []*serve.Model{m}
	s, err := serve.New(p)
	if err != nil {
		return fmt.Errorf("serve %s: %w", d.o.Name, err)
	}
	d.mu.Lock()
	d.servers[env.Name] = s
	d.mu.Unlock()
	return s.Run(ctx, env)
}

// bent is the replier of a provider that changes a token, once: in its second reply, or in the first one after it that is long enough.
type bent struct {
	lm.Replier
	lie     []int32 // tokens, of which one is put in
	of      contest.Model
	asked   atomic.Int64
	cheated atomic.Bool
}

// changed is the token that is changed, counted from zero.
const changed = 2

// Reply implements lm.Replier.
func (b *bent) Reply(ctx context.Context, r *lm.Request) iter.Seq2[lm.Token, error] {
	honest := b.asked.Add(1) < 2
	return func(yield func(lm.Token, error) bool) {
		var told []int32
		lied := false
		for t, err := range b.Replier.Reply(ctx, r) {
			if !honest && len(told) == changed && err == nil && t.Reason == "" && b.cheated.CompareAndSwap(false, true) {
				t.ID, lied = b.another(t.ID), true
			}
			told = append(told, t.ID)
			if lied && t.Reason != "" && err == nil {
				t.Pages, err = b.pages(ctx, r, told)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// pages are those of what was told, so that the lie is in a token alone.
func (b *bent) pages(ctx context.Context, r *lm.Request, told []int32) (canon.Hash, error) {
	w, err := b.of.Account(ctx, r, told)
	if err != nil {
		return canon.Hash{}, err
	}
	chunks, _, err := w.Pages()
	return canon.Root(chunks), err
}

// another returns a token that is not id.
func (b *bent) another(id int32) int32 {
	for _, x := range b.lie {
		if x != id {
			return x
		}
	}
	return max(id-1, 1-id) // 1 in place of 0
}
