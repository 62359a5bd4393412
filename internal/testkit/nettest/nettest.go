package nettest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/runner"
)

// Patience bounds everything that a scenario waits for. Nothing takes so long
// unless it never comes.
const Patience = 10 * time.Minute

// dumpAlways names the variable of the environment that makes tests that pass
// print what happened, too.
const dumpAlways = "TALLY_TEST_EVENTS"

// scenarios names the variable of the environment that has all scenarios played.
const scenarios = "TALLY_SCENARIOS"

// Rare skips a scenario whose rules cheaper tests hold as well, unless all are wanted: make scenarios.
func Rare(t testing.TB) {
	t.Helper()
	if os.Getenv(scenarios) == "" {
		t.Skip("make scenarios plays it")
	}
}

// Options describe a network. What is zero is as small as an order allows: two
// validators, two providers under the first, one challenger.
type Options struct {
	Dir    string                                            // empty: a directory of the test
	Config func(c *devnet.Config)                            // may change the network
	Spec   func(s *consume.Spec)                             // may change the order
	Draft  func(ctx context.Context) (*consume.Draft, error) // another order, in place of training
	Bend   map[string]Bend                                   // by role
	// Env may change a role's env before the role begins.
	Env func(env *role.Env)
	// Play is what roles do in place of their work, by role.
	Play map[string]func(ctx context.Context, env *role.Env) error
	// Idle roles register and do nothing until Begin.
	Idle []string
	// Also are further roles of a role's account, by its name.
	Also map[string][]home.Role
	// Sell is what providers sell at auctions, by name.
	Sell map[string][]string
	// Probe is over how long providers have their speed measured, by name.
	Probe map[string]time.Duration
}

// Network is a running network.
type Network struct {
	*devnet.Network
	Draft *consume.Draft // of the order that Post posts

	t       testing.TB // nil outside of tests
	options Options
	ctx     context.Context
	before  balances
	fees    map[string]uint64 // that every account paid up to feesTo
	feesTo  int64             // height

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when one of these changes
	events  []events.Event
	times   []time.Duration // of the events, since begun
	begun   time.Time
	actors  map[string]*actor
	broken  error // what was found wrong with the supply
	serve   sync.Once
}

// actor is a role that can be stopped and begun again.
type actor struct {
	wanted  bool
	stop    context.CancelFunc // of the work that is going on; nil if none is
	stopped bool               // does nothing now
}

// Start starts a network that is stopped when the test ends. When it returns,
// every role is registered.
func Start(t testing.TB, o Options) *Network {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	n, err := start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	n.t = t
	t.Cleanup(func() {
		if err := n.Network.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() || os.Getenv(dumpAlways) != "" {
			n.dump()
		}
	})
	return n
}

func start(ctx context.Context, o Options) (*Network, error) {
	n := &Network{options: o, ctx: ctx, begun: time.Now(), fees: map[string]uint64{}, changed: make(chan struct{}), actors: map[string]*actor{}}
	var err error
	if o.Draft == nil {
		o.Draft = func(ctx context.Context) (*consume.Draft, error) { return NewDraft(ctx, o.Spec) }
	}
	if n.Draft, err = o.Draft(ctx); err != nil {
		return nil, err
	}
	c := devnet.Config{
		Dir: o.Dir, Validators: 2, Providers: 2, Challengers: 1, CommitTimeout: 50 * time.Millisecond, EmptyInterval: 200 * time.Millisecond,
		UnitPrices: []uint64{900_000_000, 1_000_000_000, 1_100_000_000}, // dear, so that a small order has a price
		Observe:    n.observe, Run: n.run, Prepare: n.prepare,
		Work: devnet.Default().Work,
	}
	c.Work.ForcedBps, c.Work.TaxBps, c.Work.JackpotFactor = 0, 0, 0 // so that each coin can be counted
	if o.Config != nil {
		o.Config(&c)
	}
	begin, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if n.Network, err = devnet.Start(begin, c); err != nil {
		return nil, err
	}
	if err = n.Ready(begin); err == nil {
		n.before, err = n.balances(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.Network.Stop())
	}
	go n.guard()
	return n, nil
}

// NewDraft returns the draft of the small order, changed by bend.
func NewDraft(ctx context.Context, bend func(*consume.Spec)) (*consume.Draft, error) {
	s := spec()
	if bend != nil {
		bend(&s)
	}
	return draft(ctx, s)
}

// synced waits until every node has the consumer's newest block.
func (n *Network) synced(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	height := n.Consumer.Env.Chain.Head().Height
	for _, m := range n.Validators {
		if _, err := m.Env.Chain.Next(ctx, height-1); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) observe(e events.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events, n.times = append(n.events, e), append(n.times, time.Since(n.begun))
	n.tell()
}

// tell wakes all who wait. The caller holds mu.
func (n *Network) tell() {
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *Network) prepare(env *role.Env) {
	if n.options.Env != nil {
		n.options.Env(env)
	}
	env.Jobs.Exec = bent{env.Jobs.Exec, env.Name, n.options.Bend[env.Name], &n.Draft.Problem}
}

// run does what a role does while the test lets it.
func (n *Network) run(ctx context.Context, h *home.Home, env *role.Env) error {
	h.Settings.SetAlso(n.options.Also[env.Name])
	if h.Settings.Provider != nil {
		h.Settings.Provider.Sell, h.Settings.Provider.Probe = n.options.Sell[env.Name], n.options.Probe[env.Name]
	}
	if err := runner.Register(ctx, h, env); err != nil {
		return err
	}
	n.mu.Lock()
	a := &actor{wanted: !slices.Contains(n.options.Idle, env.Name), stopped: true}
	n.actors[env.Name] = a
	n.tell()
	n.mu.Unlock()
	for {
		if err := n.await(ctx, func() bool { return a.wanted }); err != nil {
			return err
		}
		inner, cancel := context.WithCancel(ctx)
		n.mu.Lock()
		a.stop, a.stopped = cancel, false
		if !a.wanted {
			cancel()
		}
		n.mu.Unlock()
		err := n.work(inner, h, env)
		over := inner.Err() == nil // by itself: a consumer has no work
		cancel()
		n.mu.Lock()
		a.stop, a.stopped = nil, true
		n.tell()
		n.mu.Unlock()
		if err != nil || over || ctx.Err() != nil {
			return err
		}
	}
}

func (n *Network) work(ctx context.Context, h *home.Home, env *role.Env) error {
	if play := n.options.Play[env.Name]; play != nil {
		return play(ctx, env)
	}
	return runner.Run(ctx, h, env)
}

// await waits until done, which is called with mu held, is satisfied.
func (n *Network) await(ctx context.Context, done func() bool) error {
	for {
		n.mu.Lock()
		ok, changed := done(), n.changed
		n.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (n *Network) must(what string, done func() bool) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.ctx, Patience)
	defer cancel()
	if err := n.await(ctx, done); err != nil {
		n.t.Fatalf("waiting for %s: %v", what, err)
	}
}

// End stops what a role does, and returns when it has stopped. Its peer and its
// node stay.
func (n *Network) End(name string) {
	n.t.Helper()
	n.set(name, false)
	n.must(name+" to end", func() bool { return n.actors[name].stopped })
}

// Begin lets a role go on that is idle or was ended.
func (n *Network) Begin(name string) { n.set(name, true) }

func (n *Network) set(name string, wanted bool) {
	n.must(name, func() bool { return n.actors[name] != nil })
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.actors[name]
	a.wanted = wanted
	if !wanted && a.stop != nil {
		a.stop()
	}
	n.tell()
}

// Await waits for the first event that is wanted, from the beginning on.
func (n *Network) Await(what string, want func(events.Event) bool) events.Event {
	n.t.Helper()
	var found events.Event
	n.must(what, func() bool {
		i := slices.IndexFunc(n.events, want)
		if i >= 0 {
			found = n.events[i]
		}
		return i >= 0
	})
	return found
}

// Count returns how many events so far are wanted.
func (n *Network) Count(want func(events.Event) bool) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.events {
		if want(e) {
			count++
		}
	}
	return count
}

// Member returns a role by its name.
func (n *Network) Member(name string) *devnet.Member {
	for _, m := range slices.Concat(n.Validators, n.Providers, n.Challengers, []*devnet.Member{n.Consumer}) {
		if m.Env.Name == name {
			return m
		}
	}
	panic("nobody is called " + name)
}

// Name returns the name of an account's role, or the account.
func (n *Network) Name(account string) string {
	for _, m := range slices.Concat(n.Validators, n.Providers, n.Challengers, []*devnet.Member{n.Consumer}) {
		if m.Home.Address == account {
			return m.Env.Name
		}
	}
	return account
}

// EachBlock calls see on every new block until it returns false.
func (n *Network) EachBlock(see func(b client.Block) (goOn bool, err error)) error {
	ctx, cancel := context.WithTimeout(n.ctx, Patience)
	defer cancel()
	for height := int64(0); ; {
		b, err := n.Consumer.Env.Chain.Next(ctx, height)
		if err != nil {
			return err
		}
		height = b.Height
		if goOn, err := see(b); err != nil || !goOn {
			return err
		}
	}
}

// dump prints what happened, for whoever reads why a test failed.
func (n *Network) dump() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, e := range n.events {
		what := ""
		if e.Unit >= 0 {
			what = fmt.Sprintf(" unit %d", e.Unit)
		}
		if e.Kind == events.Computed {
			what += fmt.Sprintf(" step %d loss %g", e.Step, e.Loss)
		}
		text, _, _ := strings.Cut(e.Text, "\n")
		n.t.Logf("%6.3f s %s %s%s: %.300s", n.times[i].Seconds(), e.Role, e.Kind, what, text)
	}
}

// MergedBy reports whether a lease has merged the first rounds.
func MergedBy(rounds int) func(*job.Lease) bool {
	return func(l *job.Lease) bool { return l.Round >= rounds }
}
