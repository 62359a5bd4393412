package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/gateway"
	"github.com/tally-network/tally/gateway/network"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/hire"
	"github.com/tally-network/tally/node/serve"
)

// Options say what the demo does.
type Options struct {
	Dir   string // holds the network; a new one
	Model string // a GGUF file or a folder
	Name  string // what the model is called
	Stay  bool   // goes on until the context is done
	Log   *slog.Logger
	Line  func(string) // one line about something that happened
}

// questions are asked one after another, until the cheater is found and one more is answered.
var questions = []string{
	"What is a prime number?", "Why is the sky blue?", "What does a baker do?", "Name three rivers.", "What is a ledger?", "How do bees find flowers?", "What is ice?", "Who paints houses?",
}

// demo is one run.
type demo struct {
	o        Options
	files    *files.Files
	manifest *files.Manifest
	network  *devnet.Network
	consumer *hire.Consumer
	report   *Report
	begun    time.Time

	mu      sync.Mutex
	servers map[string]*serve.Server // by name
}

// Run runs the demo to its end.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Line == nil {
		o.Line = func(string) {}
	}
	d := &demo{o: o, begun: time.Now(), servers: map[string]*serve.Server{}, report: &Report{Model: o.Name, Names: map[string]string{}}}
	if err := d.open(); err != nil {
		return nil, err
	}
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.network.Stop()) }()
	close, err := d.hire(ctx)
	if err != nil {
		return nil, err
	}
	defer close()
	if err := d.listed(ctx); err != nil {
		return nil, err
	}
	end, err := d.listen(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if err := d.converse(ctx); err != nil {
		return nil, err
	}
	if err := d.settle(ctx); err != nil {
		return nil, err
	}
	d.report.Seconds = time.Since(d.begun).Seconds()
	d.tellMoney()
	if o.Stay {
		d.say("the network goes on until Ctrl-C; ask it yourself:\n  %s", d.report.Curl)
		<-ctx.Done()
	}
	return d.report, nil
}

func (d *demo) say(format string, a ...any) { d.o.Line(fmt.Sprintf(format, a...)) }

// open opens the model.
func (d *demo) open() (err error) {
	if d.files, err = files.Open(d.o.Model); err != nil {
		return err
	}
	if d.files.Template == nil {
		return fmt.Errorf("%s has no chat template: nobody can talk to it", d.o.Model)
	}
	if d.manifest, err = d.files.Manifest(1); err != nil {
		return err
	}
	d.report.Root = d.manifest.Root().String()
	d.say("model     %s, root %.16s…", d.o.Name, d.report.Root)
	return nil
}

// hire makes the consumer, whose sessions are kept until close.
func (d *demo) hire(ctx context.Context) (close func(), err error) {
	env := d.network.Consumer.Env
	p := hire.OfEnv(env)
	p.Log = slog.New(slog.DiscardHandler) // the demo tells itself who is blamed
	p.Dir, p.Options = filepath.Join(d.o.Dir, "consumer", "sessions"), hire.Options{CheckBps: money.Bps}
	if d.consumer, err = hire.New(p); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := d.consumer.Run(ctx, env); err != nil && ctx.Err() == nil {
			d.o.Log.Error("the consumer's sessions are not kept any more", "error", err)
		}
	})
	return func() { stop(); d.consumer.Close(); running.Wait() }, nil
}

// listed waits until all providers list the model.
func (d *demo) listed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	chain := d.network.Consumer.Env.Chain
	for height := int64(0); ; {
		all, err := chain.Listings(ctx, d.manifest.Root(), "")
		if err != nil {
			return fmt.Errorf("ask who serves the model: %w", err)
		}
		if len(all) >= providers {
			d.say("network   %d validator; %d providers serve %s, on a thread each", len(d.network.Validators), len(all), d.o.Name)
			d.say("          %s asks half the price of the others, and is made to cheat: it changes a token of its second reply", cheater)
			return nil
		}
		b, err := chain.Next(ctx, height)
		if err != nil {
			return fmt.Errorf("wait for providers that serve the model: %w", errors.Join(d.network.Wait(stopped), err))
		}
		height = b.Height
	}
}

// stopped is a context that is done.
var stopped = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// patience bounds each thing that is waited for.
const patience = 4 * time.Minute

// listen starts a gateway, which runs until end.
func (d *demo) listen(ctx context.Context) (end func() error, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d.report.URL = "http://" + l.Addr().String()
	d.say("gateway   %s, for clients of OpenAI, Anthropic and ollama\n", d.report.URL)
	s := gateway.New(gateway.Config{Models: network.New(d.consumer, map[string]canon.Hash{d.o.Name: d.manifest.Root()}), Log: d.o.Log})
	within, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Serve(within, l) }()
	return func() error {
		stop()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, nil
}

// converse asks until the cheater is found, and once more.
func (d *demo) converse(ctx context.Context) error {
	for i, q := range questions {
		found := len(d.report.Blamed) > 0
		a, err := d.ask(ctx, i, q)
		if err != nil {
			return err
		}
		d.report.Answers = append(d.report.Answers, *a)
		if found {
			return nil
		}
	}
	return fmt.Errorf("%s was not found to cheat in %d replies: run it again", cheater, len(questions))
}

// settle ends all sessions with who was honest, and asks the chain what everybody has.
func (d *demo) settle(ctx context.Context) error {
	d.mu.Lock()
	names, earned := slices.Sorted(maps.Keys(d.servers)), map[string]*Earned{}
	for _, name := range names {
		s := d.servers[name].Stats()
		earned[name] = &Earned{Name: name, Replies: s.Replies, Checks: s.Checks}
	}
	d.mu.Unlock()
	for _, t := range d.consumer.Sessions() {
		account := t.Terms().Provider.Account
		if d.report.blames(account) { // gets what was paid ahead, and no more
			earned[d.report.Name(account)].Ahead += t.State().Paid
			d.report.Paid += t.State().Paid
			continue
		}
		if err := d.consumer.Finish(ctx, t.ID()); err != nil {
			return fmt.Errorf("settle the session with %s: %w", d.report.Name(account), err)
		}
		on, err := d.consumer.Chain.Session(ctx, t.ID())
		if err != nil {
			return err
		}
		earned[d.report.Name(account)].Settled += on.Ledger.Paid
		d.report.Paid += on.Ledger.Paid + on.Ledger.Burnt
		d.report.Burnt += on.Ledger.Burnt
	}
	for _, name := range names {
		d.report.Providers = append(d.report.Providers, *earned[name])
	}
	d.report.PaidChecks = d.consumer.Stats().PaidChecks
	return d.report.supply(ctx, d.network.Consumer.Env)
}
