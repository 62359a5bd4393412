package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	rpctypes "github.com/cometbft/cometbft/rpc/jsonrpc/types"
	cmttypes "github.com/cometbft/cometbft/types"

	errorsmod "cosmossdk.io/errors"

	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/block"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
)

// Account sends transactions of one account. Safe for concurrent use: they go
// out one after the other.
type Account struct {
	Address string
	GasFee  uint64 // utally for 10⁶ gas, if that is more than the chain asks for

	client *Client
	key    cryptotypes.PrivKey
	mu     sync.Mutex
	known  bool // number and sequence are
	number uint64
	next   uint64
	fee    sdk.Coins // of the last transaction that was signed
}

// Account returns the account of a key.
func (c *Client) Account(key cryptotypes.PrivKey) *Account {
	return &Account{Address: sdk.AccAddress(key.PubKey().Address()).String(), client: c, key: key}
}

// Result says what became of a transaction.
type Result struct {
	Hash    []byte
	Height  int64
	GasUsed int64
	Size    int // bytes
	Events  []abci.Event
}

const (
	// A transaction may use more gas than its trial did, for others may come first.
	gasMargin, gasSpare = 4, 50_000 // a quarter, and what small ones vary by
	untriedGas          = 5_000_000 // where the node does not try transactions
	// A transaction that is in no block after so many was lost and is sent anew.
	patience  = 30 * time.Second
	pollEvery = 50 * time.Millisecond
)

// Send signs and sends msgs as one transaction and waits until it is in a
// block. It pays for the gas that a trial used, and a margin; where it has too
// little money, a sponsor pays, if there is one. A transaction that
// would fail is refused by the node with the module's own error, and costs
// nothing; one that fails in its block, because another came first, pays.
func (a *Account) Send(ctx context.Context, msgs ...sdk.Msg) (Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for try := 0; ; try++ {
		r, err := a.send(ctx, nil, msgs)
		if errors.Is(err, sdkerrors.ErrInsufficientFunds) {
			for _, sponsor := range a.sponsors(ctx, a.fee, msgs) {
				if r, err := a.send(ctx, sponsor, msgs); err == nil {
					return r, nil
				}
			}
		}
		if retryable(err) && try < 5 && ctx.Err() == nil {
			a.known = false
			if _, err := a.client.Next(ctx, a.client.Head().Height); err != nil {
				return Result{}, err
			}
			continue
		}
		if err != nil {
			a.known = false
		}
		return r, err
	}
}

// retryable reports whether the same messages may be taken if they are tried and signed
// anew: another process has the same key, or a node lost its mempool; or others, who
// came first in the block, made more to read and write than the margin is for.
func retryable(err error) bool {
	return errors.Is(err, sdkerrors.ErrWrongSequence) || errors.Is(err, sdkerrors.ErrOutOfGas)
}

func (a *Account) send(ctx context.Context, sponsor sdk.AccAddress, msgs []sdk.Msg) (Result, error) {
	if !a.known {
		var err error
		if a.number, a.next, err = a.client.account(ctx, a.Address); err != nil {
			return Result{}, err
		}
		a.known = true
	}
	tx, err := a.sign(ctx, sponsor, msgs)
	if err != nil {
		return Result{}, err
	}
	r, err := a.client.broadcast(ctx, tx)
	if err != nil {
		return Result{}, fmt.Errorf("send transaction: %w", err)
	}
	if r.Code != abci.CodeTypeOK {
		return Result{}, errorsmod.ABCIError(r.Codespace, r.Code, r.Log)
	}
	a.next++
	return a.client.await(ctx, tx)
}

// sign signs msgs with the gas that they need. A node that is behind, or tries no
// transactions, does not stop it: the gas is then what is enough for any.
func (a *Account) sign(ctx context.Context, sponsor sdk.AccAddress, msgs []sdk.Msg) (cmttypes.Tx, error) {
	rules, err := blockv1.NewQueryClient(a.client.Conn).Params(ctx, &blockv1.QueryParamsRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the price of gas: %w", err)
	}
	price := max(a.GasFee, rules.Params.GasPrice)
	s := app.Signer{ChainID: a.client.ChainID, Key: a.key, Number: a.number, Sequence: a.next, Sponsor: sponsor}
	gas := uint64(untriedGas)
	trial, err := a.client.enc.Sign(s, gas, 0, msgs...) // a trial costs nothing
	if err != nil {
		return nil, err
	}
	r, err := txtypes.NewServiceClient(a.client.Conn).Simulate(ctx, &txtypes.SimulateRequest{TxBytes: trial})
	if err == nil {
		gas = min(r.GasInfo.GasUsed+r.GasInfo.GasUsed/gasMargin+gasSpare, app.MaxGas)
	}
	fee := block.Fee(price, gas)
	a.fee = coin.Of(fee)
	return a.client.enc.Sign(s, gas, fee, msgs...)
}

// The tries to hand over a transaction, and the pause after the first.
const (
	handOvers   = 5
	firstPause  = 50 * time.Millisecond
	alreadySeen = "tx already exists in cache"
)

// broadcast hands a transaction to the node. A connection may break before the
// node has answered, as one that it is just closing for idleness does. The same
// bytes are handed over again then: they can be executed only once.
func (c *Client) broadcast(ctx context.Context, tx cmttypes.Tx) (*coretypes.ResultBroadcastTx, error) {
	for try := 0; ; try++ {
		r, err := c.RPC.BroadcastTxSync(ctx, tx)
		var answer *rpctypes.RPCError
		switch {
		case err == nil && try > 0 && r.Codespace == sdkerrors.RootCodespace && r.Code == sdkerrors.ErrWrongSequence.ABCICode(),
			err != nil && strings.Contains(err.Error(), alreadySeen):
			return &coretypes.ResultBroadcastTx{Hash: tx.Hash()}, nil // it had arrived
		case err == nil:
			return r, nil
		case errors.As(err, &answer) || try+1 == handOvers || ctx.Err() != nil:
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(firstPause << try):
		}
	}
}

// await waits until a transaction is in a block. A node drops a transaction that
// would fail since the last block: handing it over again tells why.
func (c *Client) await(ctx context.Context, tx cmttypes.Tx) (Result, error) {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	height := c.Head().Height
	for {
		select {
		case <-wait.Done():
			return Result{}, fmt.Errorf("transaction %X is in no block yet: %w", tx.Hash(), wait.Err())
		case <-tick.C:
		}
		if r, err := c.RPC.Tx(wait, tx.Hash(), false); err == nil {
			return resultOf(r, len(tx))
		}
		now := c.Head().Height
		if now < height+2 {
			continue // not in a block or not indexed yet
		}
		height = now
		again, err := c.RPC.BroadcastTxSync(wait, tx)
		if err != nil || again.Code == abci.CodeTypeOK {
			continue // it is there still, or again, or the node is restarting
		}
		if r, err := c.RPC.Tx(wait, tx.Hash(), false); err == nil {
			return resultOf(r, len(tx))
		}
		return Result{}, errorsmod.ABCIError(again.Codespace, again.Code, again.Log)
	}
}

func resultOf(r *coretypes.ResultTx, size int) (Result, error) {
	if r.TxResult.Code != abci.CodeTypeOK {
		return Result{}, errorsmod.ABCIError(r.TxResult.Codespace, r.TxResult.Code, r.TxResult.Log)
	}
	return Result{r.Hash, r.Height, r.TxResult.GasUsed, size, r.TxResult.Events}, nil
}
