package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/internal/testkit/spam"
	"github.com/tally-network/tally/node/devnet"
)

// What the spammers have. In a round the rich one hands over five blocks' worth of
// gas.
const (
	richPurse, poorPurse = 100_000_000, 20_000 // utally
	smallGas             = 100_000
	honestSends          = 40
)

// spamLatency returns how much longer an honest transfer takes while a rich and a
// poor account replay what they signed beforehand, working half of the time.
func spamLatency(ctx context.Context, o Options) (float64, error) {
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	n, err := devnet.Start(ctx, devnet.Config{Dir: dir})
	if err != nil {
		return 0, err
	}
	defer func() { _ = n.Stop() }()
	if err := n.Ready(ctx); err != nil {
		return 0, err
	}
	rich, err := spam.New(ctx, n.Consumer.Env.Chain, n.Consumer.Env.Account, richPurse, app.MaxGas)
	if err != nil {
		return 0, err
	}
	poor, err := spam.New(ctx, n.Consumer.Env.Chain, n.Consumer.Env.Account, poorPurse, smallGas)
	if err != nil {
		return 0, err
	}
	alone, err := honestLatency(ctx, n)
	if err != nil {
		return 0, err
	}
	flood, stop := context.WithCancel(ctx)
	over := make(chan int, 1)
	go func() { over <- spam.Flood(flood, rich, poor) }()
	among, err := honestLatency(ctx, n)
	stop()
	o.Tell("a transfer takes %s alone, %s among %d transactions handed over by spammers", alone, among, <-over)
	return among.Seconds() / alone.Seconds(), err
}

// honestLatency returns the mean time of a transfer, from signing to its block.
func honestLatency(ctx context.Context, n *devnet.Network) (time.Duration, error) {
	from := n.Consumer.Env.Account
	m := &banktypes.MsgSend{FromAddress: from.Address, ToAddress: from.Address, Amount: coin.Of(1)}
	begin := time.Now()
	for range honestSends {
		if _, err := from.Send(ctx, m); err != nil {
			return 0, fmt.Errorf("an honest transfer: %w", err)
		}
	}
	return time.Since(begin) / honestSends, nil
}
