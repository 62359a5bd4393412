package speak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/gateway/network"
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/library"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/contest"
	"github.com/tally-network/tally/node/hire"
)

// buying is how a verb buys replies on the network.
type buying struct {
	*Env
	on      bool
	open    OpenConsumer
	check   string
	prices  session.Prices
	escrow  uint64
	threads *int

	base     string // a model that was pulled, whose adapters are
	adapters []namedAdapter
}

func (b *buying) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&b.on, "network", false, "have providers of the network reply, and pay them from --home")
	b.open = b.Consumer(f)
	f.StringVar(&b.check, "check", "all", "which replies of the network are checked: all, a rate as 10%, none, or self (all, on this machine)")
	f.Var(numbers.Within(&b.prices.Prompt, 0, session.MaxPrice), "max-prompt-price", "utally for a million tokens that are read, at most (default any)")
	f.Var(numbers.Within(&b.prices.Reply, 0, session.MaxPrice), "max-reply-price", "utally for a million tokens that are made, at most (default any)")
	f.Var(numbers.Within(&b.escrow, 0, math.MaxUint64), "escrow", "utally that a session with a provider locks (default ten times what the provider lets one pay ahead)")
}

// rate returns the odds of a check, and whether this machine makes it.
func (b *buying) rate() (bps uint64, self bool, err error) {
	switch b.check {
	case "all":
		return money.Bps, false, nil
	case "self":
		return money.Bps, true, nil
	case "none":
		return 0, false, nil
	}
	percent, found := strings.CutSuffix(b.check, "%")
	x, err := strconv.ParseFloat(percent, 64)
	if err != nil || !found || !(x > 0 && x <= 100) {
		return 0, false, fmt.Errorf("--check %.20q: want all, self, none, or a rate such as 10%%", b.check)
	}
	return max(1, uint64(math.Round(x*100))), false, nil
}

// connected is the network as a verb has it open.
type connected struct {
	consumer *hire.Consumer
	models   *network.Models
	close    func() error
}

// connect opens the consumer's home and its sessions, and keeps them until close.
func (b *buying) connect(ctx context.Context) (*connected, error) {
	bps, self, err := b.rate()
	if err != nil {
		return nil, err
	}
	pulled, err := library.Open(folder())
	if err != nil {
		return nil, err
	}
	known, err := rootsOf(pulled, *b.threads)
	if err != nil {
		fmt.Fprintf(b.Err, "these are left out: %v\n", err)
	}
	if err := known.adapt(b.base, b.adapters, *b.threads); err != nil {
		return nil, err
	}
	h, env, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	p := hire.OfEnv(env)
	p.Dir = filepath.Join(*b.Home, "sessions")
	w := &weights{at: known.at, threads: *b.threads, open: map[canon.Hash]*opened{}}
	p.Options = hire.Options{CheckBps: bps, SelfFirst: self, Self: w, Forced: hire.DefaultForced, MaxPrices: b.prices, Escrow: b.escrow}
	ctx, stop := context.WithCancel(ctx)
	book := contest.New(ctx, env, hire.Disputed(p.Dir), w.contest)
	p.Options.Disputes = book
	c, err := hire.New(p)
	if err != nil {
		stop()
		return nil, errors.Join(err, h.Close())
	}
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, env) }()
	return &connected{c, network.New(c, known.names), func() error {
		stop()
		c.Close()
		book.Wait()
		err := <-done
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return errors.Join(err, h.Close())
	}}, nil
}

// roots are the roots of models that were pulled, and of adapters of them.
type roots struct {
	names map[string]canon.Hash
	at    map[canon.Hash]adaptedPath
}

// adaptedPath is where a model lies, and the folder of its adapter; "": it has none.
type adaptedPath struct{ path, adapter string }

// adapt makes adapters of a base known.
func (r *roots) adapt(base string, adapters []namedAdapter, threads int) error {
	if len(adapters) == 0 {
		return nil
	}
	at, err := find(base)
	if err != nil {
		return err
	}
	f, err := files.Open(at.path)
	if err != nil {
		return err
	}
	for _, a := range adapters {
		adapted, err := f.Adapted(a.folder)
		if err != nil {
			return fmt.Errorf("adapter %s: %w", a.name, err)
		}
		m, err := adapted.Manifest(cmp.Or(threads, runtime.GOMAXPROCS(0)))
		if err != nil {
			return fmt.Errorf("adapter %s: %w", a.name, err)
		}
		if _, taken := r.names[a.name]; taken {
			return fmt.Errorf("two models are called %s: give the adapter another name", a.name)
		}
		r.names[a.name], r.at[m.Root()] = m.Root(), adaptedPath{at.path, a.folder}
	}
	return nil
}

// rootsOf returns those of a library.
func rootsOf(l *library.Library, threads int) (*roots, error) {
	all, _ := l.List() // what is damaged hides nothing else
	var broken []error
	r := &roots{map[string]canon.Hash{}, map[canon.Hash]adaptedPath{}}
	for i := range all {
		e := &all[i]
		if e.Model == nil {
			continue
		}
		m, err := l.Manifest(e, nil, cmp.Or(threads, runtime.GOMAXPROCS(0)))
		if err != nil { // what is damaged hides nothing else
			broken = append(broken, fmt.Errorf("%s: %w", e.Name, err))
			continue
		}
		root := m.Root()
		r.names[e.Name], r.at[root] = root, adaptedPath{path: e.Path}
	}
	return r, errors.Join(broken...)
}

// weights re-execute replies of models that are on this machine.
type weights struct {
	at      map[canon.Hash]adaptedPath
	threads int

	mu   sync.Mutex
	open map[canon.Hash]*opened
}

// opened is a model that is open.
type opened struct {
	*check.Checker
	contest contest.Model
}

// Has implements hire.Checker.
func (w *weights) Has(model canon.Hash) bool { return w.at[model].path != "" }

// Check implements hire.Checker.
func (w *weights) Check(ctx context.Context, model canon.Hash, r *lm.Request, reply []int32) (check.Verdict, error) {
	c, err := w.checker(model)
	if err != nil {
		return check.Verdict{}, err
	}
	return c.Check(ctx, r, reply)
}

// contest returns what disputes about a model's replies need; nil if it is not here.
func (w *weights) contest(model canon.Hash) contest.Model {
	m, err := w.checker(model)
	if err != nil {
		return nil
	}
	return m.contest
}

func (w *weights) checker(model canon.Hash) (*opened, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.open[model]; c != nil {
		return c, nil
	}
	at, ok := w.at[model]
	if !ok {
		return nil, fmt.Errorf("model %s is not on this machine: tally pull brings it", model)
	}
	f, err := openAdapted(at.path, at.adapter)
	if err != nil {
		return nil, err
	}
	m, err := f.Manifest(cmp.Or(w.threads, runtime.GOMAXPROCS(0)))
	if err != nil {
		return nil, err
	}
	if m.Root() != model {
		return nil, fmt.Errorf("%s has changed since it was known as model %s: start again", at.path, model)
	}
	e := executor(w.threads)
	o := &opened{check.New(f.Weights, e), contest.NewModel(m.Disputed(), f.Weights, e, cmp.Or(w.threads, runtime.GOMAXPROCS(0)))}
	w.open[model] = o
	return o, nil
}
