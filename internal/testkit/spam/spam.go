// Package spam floods a node with transactions.
//
//	s, err := spam.New(ctx, node, from, purse, gas)   // signs beforehand
//	sent := spam.Flood(ctx, s)                         // until ctx is done
//
// What it sends is valid and pays its fee: the chain must serve others beside it.
package spam

import (
	"context"
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
)

// How many transactions an account signs beforehand, and how many of them it hands
// over in a round.
const (
	signed  = 2_000
	inRound = 50
)

// Spammer is an account with transactions that it signed beforehand, by sequence.
type Spammer struct {
	address string
	node    *client.Client
	txs     []cmttypes.Tx
}

// New returns a new account that from gives a purse of so many utally. It signs
// transfers that ask for so much gas each.
func New(ctx context.Context, node *client.Client, from *client.Account, purse, gas uint64) (*Spammer, error) {
	key := secp256k1.GenPrivKey()
	s := &Spammer{address: node.Account(key).Address, node: node}
	fund := &banktypes.MsgSend{FromAddress: from.Address, ToAddress: s.address, Amount: coin.Of(purse)}
	if _, err := from.Send(ctx, fund); err != nil {
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
	fee := coin.Fee(block.DefaultGenesis().Params.GasPrice, gas)
	for i := range uint64(signed) {
		signer := app.Signer{ChainID: node.ChainID, Key: key, Number: number, Sequence: i}
		tx, err := enc.Sign(signer, gas, fee, banktypes.NewMsgSend(own, own, coin.Of(1)))
		if err != nil {
			return nil, err
		}
		s.txs = append(s.txs, tx)
	}
	return s, nil
}

// Flood hands transactions over until ctx is done, and rests as long as it works.
// It returns how many it handed over.
func Flood(ctx context.Context, all ...*Spammer) (sent int) {
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

func (s *Spammer) round(ctx context.Context) (sent int) {
	r, err := authtypes.NewQueryClient(s.node.Conn).AccountInfo(ctx, &authtypes.QueryAccountInfoRequest{Address: s.address})
	if err != nil {
		return 0
	}
	for i := r.Info.Sequence; i < min(r.Info.Sequence+inRound, signed); i++ {
		if _, err := s.node.RPC.BroadcastTxAsync(ctx, s.txs[i]); err == nil {
			sent++
		}
	}
	return sent
}
