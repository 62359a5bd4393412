package nettest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/home"
)

// The variables of the environment that turn a test's process into a network in a
// directory, to be killed: the directory, and which network of Main.
const (
	childDir     = "TALLY_NETTEST_DIR"
	childNetwork = "TALLY_NETTEST_NETWORK"
)

// together is how many scenarios run at a time: they wait for blocks more than
// they compute.
const together = "4"

// Main runs the tests of a package that uses Crash, which has networks of these
// names.
func Main(m *testing.M, networks map[string]Options) {
	dir := os.Getenv(childDir)
	if dir == "" {
		if err := flag.Set("test.parallel", together); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	o := networks[os.Getenv(childNetwork)]
	o.Dir = dir
	l, err := finish(context.Background(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("final root %v; %d utally slashed, prizes for %d\n", l.FinalRoot(), l.Ledger.Slashed, len(l.Ledger.Prizes))
	os.Exit(0)
}

// Crash kills a network with an order at the given number of random moments,
// starting it again each time, and lets it finish. The network is one of Main,
// in a process of its own; every end is checked like Settle does. An order that
// is settled before the last kill is followed by another network.
func Crash(t *testing.T, name string, kills int, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	for networks := 1; kills > 0; networks++ {
		dir := t.TempDir()
		for settled := false; !settled; {
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), childDir+"="+dir, childNetwork+"="+name)
			var out, trouble strings.Builder
			child.Stdout, child.Stderr = &out, &trouble
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			after := Patience
			if kills > 0 {
				after = time.Duration(random.Int64N(int64(lifetime)))
			}
			done := make(chan error, 1)
			go func() { done <- child.Wait() }()
			select {
			case err := <-done:
				if err != nil {
					t.Fatalf("network %d with %d kills to go: %v\n%s", networks, kills, err, &trouble)
				}
				settled = true
				t.Logf("network %d settled with %s", networks, strings.TrimSpace(out.String()))
			case <-time.After(after):
				if err := child.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
					t.Fatal(err)
				}
				<-done
				if kills == 0 {
					t.Fatalf("network %d does not settle\n%s", networks, &trouble)
				}
				kills--
				t.Logf("network %d killed after %v", networks, after.Round(time.Millisecond))
			}
		}
	}
}

// lifetime bounds how long a network lives before it is killed: about as long as
// an undisturbed order takes.
const lifetime = 6 * time.Second

// memory is what a network remembers of its order across crashes.
type memory struct {
	Order  []byte // canonical
	Before map[string]balance
}

// finish starts the network of a directory and brings its order to its end.
func finish(ctx context.Context, o Options) (l *job.Lease, err error) {
	n, err := start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Network.Stop()) }()
	order, err := n.remembered()
	if err != nil {
		return nil, err
	}
	id := order.ID()
	// An order that was noted may not have been posted. Posting it twice is
	// refused.
	if _, err := consume.Look(ctx, n.Consumer.Env, id); err != nil {
		if err := consume.Keep(n.Consumer.Env, &order, n.Draft.Body()); err != nil {
			return nil, err
		}
		if _, err := consume.Post(ctx, n.Consumer.Env, &order); err != nil {
			return nil, err
		}
	}
	n.Serve()
	err = n.EachBlock(func(client.Block) (bool, error) {
		p, err := consume.Look(ctx, n.Consumer.Env, id)
		l = p.Lease
		return l == nil || l.Phase != job.Settled, err
	})
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, describe(l))
	}
	if err := errors.Join(n.Check(l), n.checkHonest()); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, describe(l))
	}
	return l, nil
}

// checkHonest returns an error if somebody has lost stake that computes as it should.
func (n *Network) checkHonest() error {
	now, err := n.balances(n.ctx)
	if err != nil {
		return err
	}
	for account, before := range n.before {
		if _, bent := n.options.Bend[n.Name(account)]; !bent && now[account].Stake != before.Stake {
			return fmt.Errorf("%s is honest and has lost stake: %d utally are left of %d", n.Name(account), now[account].Stake, before.Stake)
		}
	}
	return nil
}

// remembered returns the order of the network's directory, and what everybody
// had before it.
func (n *Network) remembered() (o job.Order, err error) {
	file := filepath.Join(n.Dir(), "order.json")
	var m memory
	text, err := os.ReadFile(file)
	switch {
	case err == nil:
		if err := json.Unmarshal(text, &m); err != nil {
			return o, err
		}
		n.before = m.Before
		return o, canon.Unmarshal(m.Order, &o)
	case !errors.Is(err, fs.ErrNotExist):
		return o, err
	}
	if o, err = n.Draft.Order(consume.BuyerOf(n.Consumer.Env)); err != nil {
		return o, err
	}
	if text, err = json.Marshal(memory{canon.Marshal(&o), n.before}); err != nil {
		return o, err
	}
	return o, home.WriteFile(file, text, 0o600)
}
