package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/replies"
	"github.com/tally-network/tally/node/contest"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/hire"
	"github.com/tally-network/tally/node/serve"
)

// Served is a reply of the trained model, which two of the providers serve to the consumer in the end. Anybody who has folder and receipt can check it.
type Served struct {
	Folder  string `json:"folder"` // the model, as tally run and tally gateway take it
	Root    string `json:"root"`
	Prompt  string `json:"prompt"`
	Reply   string `json:"reply"`
	Seed    uint64 `json:"seed"`
	Tokens  int    `json:"tokens"`
	Price   uint64 `json:"price_utally"`
	Checks  uint64 `json:"check_utally"` // paid for the check
	By      string `json:"by"`           // account
	Checker string `json:"checked_by"`   // account
	Right   bool   `json:"right"`
	Receipt string `json:"receipt"` // file
}

// What is asked for in the end: a reply by the settings that tally run has.
const (
	replyTokens      = 120
	replyTemperature = 0.7
	replyTopP        = 0.95
)

// Prices are a few utally for each token, so that a short reply shows sums; what is paid ahead is a reply's.
var (
	servedPrices = session.Prices{Prompt: 2_000_000, Reply: 6_000_000, Check: 2_000_000}
	servedCredit = session.Credit{First: 2_000, GrowthBps: 5_000, Cap: 4_000}
)

const (
	servers    = 2 // of four providers two cheat; of the others one replies, and the other checks
	folderName = "model"
	cacheBytes = 64 << 20 // for keys and values of a provider's replies
)

// serve has those providers that never cheat serve the trained model, and shows a reply.
func (d *demo) serve(ctx context.Context, n *devnet.Network, prompt string) (err error) {
	d.scribe.stage("serving the model")
	f, err := files.Open(d.folder)
	if err != nil {
		return fmt.Errorf("the trained model: %w", err)
	}
	m, err := f.Manifest(1)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	all, serving := errgroup.WithContext(ctx)
	defer func() {
		stop()
		if e := all.Wait(); e != nil && !errors.Is(e, context.Canceled) {
			err = errors.Join(err, e)
		}
	}()
	for _, p := range n.Providers {
		if _, cheats := cheaters[p.Env.Name]; !cheats { // who was convicted gets no work
			all.Go(func() error { return d.provide(serving, p, f, m) })
		}
	}
	return d.askServed(serving, f, m, prompt)
}

// provide serves the model as one provider, beside its other work.
func (d *demo) provide(ctx context.Context, p *devnet.Member, f *files.Files, m *files.Manifest) error {
	e := cpu.New(max(1, d.o.Threads))
	r := replies.Start(f.Weights, e, replies.Options{Sequences: 2, Bytes: cacheBytes, Threads: 1})
	defer r.Close()
	parts := serve.OfEnv(p.Env)
	parts.Dir, parts.Models = filepath.Join(d.o.Dir, "serve", p.Env.Name), []*serve.Model{{
		Listing:  session.Listing{Name: folderName, Prices: servedPrices, Credit: servedCredit, Context: uint64(r.Context()), Parallel: 2},
		Manifest: m, Texts: f.Texts, Weights: f.Weights, Replier: r, Checker: check.New(f.Weights, e),
		Contest: contest.NewModel(m.Disputed(), f.Weights, e, max(1, d.o.Threads)),
	}}
	s, err := serve.New(parts)
	if err != nil {
		return fmt.Errorf("serve the trained model: %w", err)
	}
	return s.Run(ctx, p.Env)
}

// maxReceipt bounds the file of a receipt, in bytes.
const maxReceipt = 1 << 20

// patience bounds what the serving of the model is waited for.
const patience = 4 * time.Minute

// askServed asks the providers as a consumer of theirs, and has the reply checked.
func (d *demo) askServed(ctx context.Context, f *files.Files, m *files.Manifest, prompt string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	parts := hire.OfEnv(d.env)
	parts.Dir, parts.Options = filepath.Join(d.o.Dir, "sessions"), hire.Options{CheckBps: money.Bps}
	c, err := hire.New(parts)
	if err != nil {
		return err
	}
	within, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	var failed error
	running.Go(func() {
		if failed = c.Run(within, d.env); within.Err() != nil {
			failed = nil
		}
	})
	defer func() {
		stop()
		c.Close()
		running.Wait()
		err = errors.Join(err, failed)
	}()
	if err := d.listed(ctx, m.Root()); err != nil {
		return err
	}
	ids, err := f.Tokenizer.Encode(prompt, true)
	if err != nil {
		return err
	}
	d.report.Served = &Served{Folder: d.folder, Root: m.Root().String(), Prompt: prompt, Seed: seed}
	if err := d.reply(ctx, c, f, m, &lm.Request{
		Prompt: ids, MaxTokens: replyTokens, Ends: f.Ends, Seed: seed, Sampling: lm.Sampling{Temperature: replyTemperature, TopP: replyTopP},
	}); err != nil {
		return fmt.Errorf("a reply of the trained model: %w", err)
	}
	for _, t := range c.Sessions() {
		if err := c.Finish(ctx, t.ID()); err != nil {
			return fmt.Errorf("settle a session: %w", err)
		}
	}
	return nil
}

// listed waits until the chain lists who serves a model.
func (d *demo) listed(ctx context.Context, root canon.Hash) error {
	for height := int64(0); ; {
		all, err := d.env.Chain.Listings(ctx, root, "")
		if err != nil || len(all) >= servers {
			return err
		}
		b, err := d.env.Chain.Next(ctx, height)
		if err != nil {
			return fmt.Errorf("wait for providers that serve the model: %w", err)
		}
		height = b.Height
	}
}

// reply asks, and waits for the check.
func (d *demo) reply(ctx context.Context, c *hire.Consumer, f *files.Files, m *files.Manifest, r *lm.Request) error {
	var bill hire.Bill
	var said []int32
	for t, err := range c.Reply(hire.WithBills(ctx, func(b hire.Bill) { bill = b }), m.Root(), r) {
		if err != nil {
			return err
		}
		said = append(said, t.ID)
	}
	receipt, err := c.Checked(ctx, bill.Receipt)
	if err != nil {
		return err
	}
	s := d.report.Served
	if s.Reply, err = f.Tokenizer.Decode(said, true); err != nil {
		return err
	}
	s.Tokens, s.Price, s.By, s.Checks = bill.Tokens, bill.Price, bill.Provider, c.Stats().PaidChecks
	s.Checker, s.Right = receipt.Check.By, receipt.Check.Right()
	d.scribe.say("%s serves the trained model: %d tokens for %d utally; checked by %s for %d utally: %s",
		d.scribe.name(s.By), s.Tokens, s.Price, d.scribe.name(s.Checker), s.Checks, receipt.Check.Says())
	text, err := bounded.ReadFile(hire.ReceiptPath(c.Dir, bill.Receipt.String()), maxReceipt)
	if err != nil {
		return err
	}
	s.Receipt = filepath.Join(filepath.Dir(d.folder), "reply.receipt.json")
	return replace.File(s.Receipt, text)
}
