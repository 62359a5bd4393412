// Package devnet runs a whole network in this process, on 127.0.0.1:
// validators, providers, challengers and the home of a consumer, all under one
// directory:
//
//	devnet.json      what the network is like, fixed by the first start
//	genesis.json     of its chain
//	endpoints.json   where the running network answers
//	validator-0 …    homes (package home), each of which can also run alone
//	lock             held by the process that runs the network
//
// Invariant: the process may be killed at any moment, while the directory is made too; the
// next start goes on. Ports are free ones that a home keeps while it can.
//
// Call [Start]; [Network.Ready] waits until every
// peer is registered, and [Network.Stop] ends it.
package devnet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/tally-network/tally/node/consensus"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/runner"
)

// Network is a running devnet.
type Network struct {
	Consumer    *Member
	Validators  []*Member
	Providers   []*Member
	Challengers []*Member

	config  Config
	lock    *home.Lock
	members []*Member // all, in the order of their opening

	mu      sync.Mutex
	entered int // homes, beside those of the configuration

	ctx    context.Context // of the roles
	cancel context.CancelFunc
	duties sync.WaitGroup
	failed chan error // of one place
}

// Member is one role of the network.
type Member struct {
	Home    *home.Home
	Env     *role.Env       // nil if the home is left to another process
	Node    *consensus.Node // validators only
	Metrics string          // host:port, if it serves them

	cancel context.CancelFunc // of one that has entered
	done   chan struct{}      // closed once it does nothing more
}

// Start starts the network in a directory, making it if it is new. It returns
// when every role works, after the first block; ctx bounds that alone.
func Start(ctx context.Context, c Config) (n *Network, err error) {
	const tries = 5
	for range tries {
		// Another program may take a port between its choice and its use.
		n, err = try(ctx, c)
		if err == nil || !strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
			break
		}
	}
	return n, err
}

func try(ctx context.Context, c Config) (n *Network, err error) {
	if c.Run == nil {
		c.Run = runner.Run
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if n, err = open(c); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			n, err = nil, errors.Join(fmt.Errorf("devnet in %s: %w", c.Dir, err), n.Stop())
		}
	}()
	n.failed = make(chan error, 1)
	n.ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, n.cancel)()
	if err := n.startNodes(ctx); err != nil {
		return n, err
	}
	for _, m := range n.Validators {
		go n.watch(m)
	}
	if err := n.startEnvs(); err != nil {
		return n, err
	}
	if err := n.writeEndpoints(); err != nil {
		return n, err
	}
	for _, m := range n.members {
		if c.Prepare != nil {
			c.Prepare(m.Env)
		}
		n.duties.Go(func() {
			if err := c.Run(n.ctx, m.Home, m.Env); err != nil && n.ctx.Err() == nil {
				n.fail(fmt.Errorf("%s: %w", m.Env.Name, err))
			}
		})
	}
	return n, nil
}

// startNodes starts the consensus nodes at once: none makes a block before most
// of them are there.
func (n *Network) startNodes(ctx context.Context) error {
	var group errgroup.Group
	for _, m := range n.Validators {
		group.Go(func() (err error) {
			m.Node, err = m.Home.StartNode(ctx, n.config.Log)
			return err
		})
	}
	return group.Wait()
}

// watch tells of a node whose consensus has ended.
func (n *Network) watch(m *Member) {
	select {
	case err := <-m.Node.Failed():
		n.fail(fmt.Errorf("%s: %w", m.Home.Settings.Name, err))
	case <-n.ctx.Done():
	}
}

func (n *Network) startEnvs() error {
	var group errgroup.Group
	for _, m := range n.members {
		group.Go(func() (err error) {
			m.Env, err = m.Home.Env(n.ctx, home.Options{Log: n.config.Log, Observe: n.config.Observe})
			if err != nil {
				return err
			}
			var more []prometheus.Gatherer
			if m.Node != nil {
				more = append(more, m.Node.Metrics())
			}
			m.Metrics, err = m.Home.ServeMetrics(more...)
			return err
		})
	}
	return group.Wait()
}

func (n *Network) fail(err error) {
	select {
	case n.failed <- err:
	default:
	}
}

// Wait waits until ctx is done, which is no error, or a role fails.
func (n *Network) Wait(ctx context.Context) error {
	select {
	case err := <-n.failed:
		n.fail(err) // for the next who waits
		return err
	case <-ctx.Done():
		return nil
	}
}

// patience is how long Stop waits for the roles to notice.
const patience = 3 * time.Second

// Stop stops the network within five seconds. What it did is on disk.
func (n *Network) Stop() error {
	var err error
	if n.cancel != nil {
		n.cancel()
		done := make(chan struct{})
		go func() { n.duties.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(patience):
			err = errors.New("a role does not stop with its context")
		}
	}
	if e := os.Remove(filepath.Join(n.config.Dir, endpointsFile)); e != nil && !errors.Is(e, os.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return errors.Join(err, n.close())
}

// close closes all homes and unlocks the directory.
func (n *Network) close() error {
	var group sync.WaitGroup
	errs := make([]error, len(n.members)+1)
	for i, m := range n.members {
		group.Go(func() { errs[i] = m.Home.Close() })
	}
	group.Wait()
	if n.lock != nil {
		errs[len(n.members)] = n.lock.Release()
	}
	return errors.Join(errs...)
}

// Dir returns the directory of the network.
func (n *Network) Dir() string { return n.config.Dir }

// Config returns the whole configuration.
func (n *Network) Config() Config { return n.config }
