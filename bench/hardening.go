package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tally-network/tally/internal/testkit/adversary"
	"github.com/tally-network/tally/node/evidence"
)

// attack is a figure of how much an attacker can do, with what it may be at most.
type attack struct {
	name, unit string
	most       float64
	measure    func(context.Context, Options) (float64, error)
}

// attacks are the figures of tally bench hardening.
var attacks = []attack{
	{"spam: honest latency among transactions of a rich and a poor account", "of undisturbed", 2, spamLatency},
	{"disputes: lost by an honest provider of 64 false ones at once, about units of 30 s", "", 0, falseDisputes},
	{"strangers: an honest fetch while 10000 strangers connect from 50 addresses", "of undisturbed", 2, strangersHarm},
	{"verify: peak memory over 10000 crafted bundles", "of 4 × bundle + 256 MiB", 1, func(ctx context.Context, o Options) (float64, error) {
		return verifyMemory(ctx, o, 10_000)
	}},
	{"histories: a million messages of an adversary, with hostile fields", "kinds of finding", 0, func(ctx context.Context, o Options) (float64, error) {
		return findings(ctx, o, 1_000_000)
	}},
	{"cost: slowest message for its gas, over all messages", "of the mean", 4, func(ctx context.Context, o Options) (float64, error) {
		return slowestMessage(ctx, o, 50_000)
	}},
}

// findings returns how many kinds of what must never be an adversary finds with so
// many messages.
func findings(ctx context.Context, o Options, messages int) (float64, error) {
	r, err := adversary.Search(ctx, 0, messages, o.Tell)
	o.Tell("%d histories of %d messages", r.Histories, r.Messages)
	return float64(len(r.Found)), err
}

// slowestMessage returns how much more time for its gas the slowest of so many messages
// of an adversary takes than all together.
func slowestMessage(ctx context.Context, o Options, messages int) (worst float64, err error) {
	s, err := adversary.Spend(ctx, 0, messages, o.Tell)
	for _, ratio := range s.Worst {
		worst = max(worst, ratio/s.Mean)
	}
	return worst, err
}

// hardening measures what attackers can do.
func hardening(ctx context.Context, o Options) ([]Row, error) {
	var rows []Row
	for _, a := range attacks {
		if !strings.Contains(a.name, o.Only) {
			continue
		}
		o.Tell("%s", a.name)
		value, err := a.measure(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}
		rows = append(rows, row(a.name, a.unit, value).atMost(a.most))
	}
	if rows == nil {
		return nil, fmt.Errorf("--only %q: no figure has this in its name", o.Only)
	}
	return rows, nil
}

// Crafted bundles have between these sizes in bytes, small ones as often as large.
const (
	leastCrafted = 1 << 10
	mostCrafted  = 32 << 20
)

// unanchored is what tally verify exits with where all holds and nothing anchors it.
const unanchored = 3

// verifyMemory returns the most memory that tally verify held for one of n crafted
// bundles, relative to what it may hold for one of its size.
func verifyMemory(ctx context.Context, o Options, n int) (float64, error) {
	const seed = 1
	f, err := newForger(ctx, seed)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	random := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	most, done, told := 0.0, 0, time.Now()
	trials, ctx := errgroup.WithContext(ctx)
	trials.SetLimit(runtime.NumCPU())
	for i := range n {
		size := int(leastCrafted * math.Pow(mostCrafted/leastCrafted, random.Float64()))
		b, name, err := f.craft(i, size)
		if err != nil {
			return 0, errors.Join(err, trials.Wait())
		}
		trials.Go(func() error {
			peak, err := verified(ctx, filepath.Join(dir, strconv.Itoa(i)), b, name == honest)
			if err != nil {
				return fmt.Errorf("bundle %d, %s: %w", i, name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			if share := peak * 1e6 / float64(4*len(b)+evidence.Room); share > most {
				most = share
				o.Tell("bundle %d, %s: %.0f MB of %d bytes, %.3f of what it may take", i, name, peak, len(b), share)
			}
			if time.Since(told) > 10*time.Second {
				told = time.Now()
				o.Tell("%d of %d bundles", done, n)
			}
			return nil
		})
		if ctx.Err() != nil {
			break
		}
	}
	return most, trials.Wait()
}

// verified returns the memory in MB that this very program takes, in a process of its own,
// to verify a bundle whoever signed it.
func verified(ctx context.Context, file string, b []byte, holds bool) (mb float64, err error) {
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return 0, err
	}
	defer os.Remove(file)
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	for try := 0; try < 3 && mb == 0; try++ { // it may end before anybody looks
		mb, err = ranWith(exec.CommandContext(ctx, self, "verify", file, "--segments", "0", "--memory-mb", "1024"))
	}
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case !errors.As(err, &ended) || holds != (ended.ExitCode() == unanchored):
		return 0, fmt.Errorf("tally verify ended with %v", err)
	case mb == 0:
		return 0, errors.New("the system does not tell the peak of memory")
	}
	return mb, nil
}
