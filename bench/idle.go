package bench

import (
	"context"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/tally-network/tally/internal/cputime"
	"github.com/tally-network/tally/node/devnet"
)

// rest is for how long an idle network is watched.
const rest = 20 * time.Second

// idle measures a devnet as tally devnet runs it.
func idle(ctx context.Context, o Options) ([]Row, error) {
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	o.Tell("starting a devnet in %s", dir)
	begin := time.Now()
	n, err := devnet.Start(ctx, devnet.Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	first := time.Since(begin)
	rows, err := watchIdle(ctx, n, o.Tell)
	if err != nil {
		_ = n.Stop()
		return nil, err
	}
	begin = time.Now()
	if err := n.Stop(); err != nil {
		return nil, err
	}
	rows = append([]Row{row("devnet first block", "s", first.Seconds()).atMost(3)}, rows...)
	return append(rows, row("devnet stop", "s", time.Since(begin).Seconds()).atMost(5)), nil
}

// watchIdle measures a running network that has nothing to do.
func watchIdle(ctx context.Context, n *devnet.Network, tell func(string, ...any)) ([]Row, error) {
	if err := n.Ready(ctx); err != nil {
		return nil, err
	}
	tell("watching it rest for %s", rest)
	chain := n.Consumer.Env.Chain
	if _, err := chain.Next(ctx, chain.Head().Height); err != nil {
		return nil, err
	}
	debug.FreeOSMemory()
	began, used, height := time.Now(), cputime.Used(), chain.Head().Height
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(rest):
	}
	passed := time.Since(began).Seconds()
	rows := []Row{
		row("idle CPU", "% of a core", 100*(cputime.Used()-used).Seconds()/passed),
		row("idle block interval", "s", passed/float64(chain.Head().Height-height)),
	}
	if mb, ok := resident(); ok {
		rows = append(rows, row("idle memory", "MB", mb))
	}
	return rows, nil
}

// resident returns the memory that the process holds, in MB, where the system
// tells.
func resident() (float64, bool) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.Atoi(fields[1])
	return float64(pages*os.Getpagesize()) / 1e6, err == nil
}
