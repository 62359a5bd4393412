package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/block"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/devnet"
)

// What the spammers have, and how many transactions they sign beforehand. In a
// round each hands over those that are next, five blocks' worth of gas for the
// rich one.
const (
	richPurse, poorPurse = 100_000_000, 20_000 // utally
	spamSigned           = 2_000
	spamRound            = 50
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
	rich, err := newSpammer(ctx, n, richPurse, app.MaxGas)
	if err != nil {
		return 0, err
	}
	poor, err := newSpammer(ctx, n, poorPurse, smallGas)
	if err != nil {
		return 0, err
	}
	alone, err := honestLatency(ctx, n)
	if err != nil {
		return 0, err
	}
	spam, stop := context.WithCancel(ctx)
	over := make(chan int, 1)
	go func() { over <- flood(spam, rich, poor) }()
	among, err := honestLatency(ctx, n)
	stop()
	o.Tell("a transfer takes %s alone, %s among %d transactions handed over by spammers", alone, among, <-over)
	return among.Seconds() / alone.Seconds(), err
}

// honestLatency returns the mean time of a transfer, from signing to its block.
func honestLatency(ctx context.Context, n *devnet.Network) (time.Duration, error) {
	from := n.Consumer.Kit.Account
	m := &banktypes.MsgSend{FromAddress: from.Address, ToAddress: from.Address, Amount: coin.Of(1)}
	begin := time.Now()
	for range honestSends {
		if _, err := from.Send(ctx, m); err != nil {
			return 0, fmt.Errorf("an honest transfer: %w", err)
		}
	}
	return time.Since(begin) / honestSends, nil
}

// spammer is an account with transactions that it signed beforehand, by sequence.
type spammer struct {
	address string
	node    *client.Client
	txs     []cmttypes.Tx
}

func newSpammer(ctx context.Context, n *devnet.Network, purse, gas uint64) (*spammer, error) {
	key, node := secp256k1.GenPrivKey(), n.Consumer.Kit.Chain
	s := &spammer{address: node.Account(key).Address, node: node}
	fund := &banktypes.MsgSend{FromAddress: n.Consumer.Home.Address, ToAddress: s.address, Amount: coin.Of(purse)}
	if _, err := n.Consumer.Kit.Account.Send(ctx, fund); err != nil {
		return nil, err
	}
	number, err := node.AccountNumber(ctx, s.address)
	if err != nil {
		return nil, err
	}
	enc, err := app.NewEncoding()
	if err != nil {
		return nil, err
	}
	own, err := address.Parse(s.address)
	if err != nil {
		return nil, err
	}
	fee := block.Fee(block.DefaultGenesis().Params.GasPrice, gas)
	for i := range uint64(spamSigned) {
		signer := app.Signer{ChainID: node.ChainID, Key: key, Number: number, Sequence: i}
		tx, err := enc.Sign(signer, gas, fee, banktypes.NewMsgSend(own, own, coin.Of(1)))
		if err != nil {
			return nil, err
		}
		s.txs = append(s.txs, tx)
	}
	return s, nil
}

// flood hands transactions over until ctx is done, and rests as long as it works.
// It returns how many it handed over.
func flood(ctx context.Context, all ...*spammer) (sent int) {
	for ctx.Err() == nil {
		begin := time.Now()
		for _, s := range all {
			sent += s.round(ctx)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Since(begin)):
		}
	}
	return sent
}

func (s *spammer) round(ctx context.Context) (sent int) {
	r, err := authtypes.NewQueryClient(s.node.Conn).AccountInfo(ctx, &authtypes.QueryAccountInfoRequest{Address: s.address})
	if err != nil {
		return 0
	}
	for i := r.Info.Sequence; i < min(r.Info.Sequence+spamRound, spamSigned); i++ {
		if _, err := s.node.RPC.BroadcastTxAsync(ctx, s.txs[i]); err == nil {
			sent++
		}
	}
	return sent
}
