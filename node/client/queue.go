package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	cmttypes "github.com/cometbft/cometbft/types"

	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
)

// pendingTx is a transaction that a node took, until the chain has used its sequence.
//
// Until then it can be executed, wherever it still lies. So its messages are signed anew
// only once its sequence is used and no block has executed it. A node drops what would
// fail since the last block, and with it all of higher sequences. These are broadcast again
// with the same bytes, behind a replacement that takes the sequence of what would fail.
type pendingTx struct {
	sequence    uint64
	tx          cmttypes.Tx // as its sender signed it
	above       int64       // no block up to this height has it
	refused     bool        // the node would not have it again
	replacement cmttypes.Tx // what takes its sequence since; nil: nothing yet
	misses      int         // how often it was in no block by the index, though its sequence was used

	abandoned atomic.Bool   // its sender waits no longer
	done      chan struct{} // closed once the sender can know
	result    Result
	err       error
}

const (
	// A sender waits so long for a block with its transaction.
	patience  = 30 * time.Second
	pollEvery = 50 * time.Millisecond
	// What is under way is broadcast again after every block, and after so long without one.
	rebroadcastEvery = 2 * time.Second
	// A node indexes a block after it has executed it, and may have lost that. After so many
	// polls the blocks themselves are searched.
	indexMisses = 20
)

// awaited reports whether a sender still waits to know.
func (s *pendingTx) awaited() bool {
	select {
	case <-s.done:
		return false
	default:
		return !s.abandoned.Load()
	}
}

// end tells the sender what became of its transaction, if it does not know yet.
func (s *pendingTx) end(r Result, err error) {
	select {
	case <-s.done:
	default:
		s.result, s.err = r, err
		close(s.done)
	}
}

// await waits until a transaction is in a block. Whoever waits polls for all that is
// under way; nothing is done while nobody does.
func (a *Account) await(ctx context.Context, s *pendingTx) (Result, error) {
	defer s.abandoned.Store(true)
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return s.result, s.err
		case <-wait.Done():
			if !s.awaited() {
				return s.result, s.err
			}
			return Result{}, fmt.Errorf("transaction %X is in no block yet: %w", s.tx.Hash(), wait.Err())
		case <-tick.C:
			a.poll(wait)
		}
	}
}

// poll finds out what has become of all that is under way, and broadcasts again what may
// be lost.
func (a *Account) poll(ctx context.Context) {
	if !a.polling.TryLock() {
		return
	}
	defer a.polling.Unlock()
	if time.Since(a.polled) < pollEvery/2 {
		return
	}
	a.polled = time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	_, sequence, err := a.client.account(ctx, a.Address)
	if err != nil {
		return // the node may be restarting
	}
	for len(a.queue) > 0 && a.queue[0].sequence < sequence {
		if !a.client.resolve(ctx, a.queue[0]) {
			return
		}
		a.queue = a.queue[1:]
	}
	if head := a.client.Head().Height; head > a.resentAt || time.Since(a.resent) > rebroadcastEvery {
		a.resentAt, a.resent = head, time.Now()
		for i := 0; i < len(a.queue) && a.rebroadcast(ctx, i); i++ {
		}
	}
}

// resolve tells the sender of a transaction whose sequence is used what became of it. It
// reports whether that is known.
func (c *Client) resolve(ctx context.Context, s *pendingTx) bool {
	if !s.awaited() {
		return true
	}
	r, err := c.RPC.Tx(ctx, s.tx.Hash(), false)
	switch {
	case err != nil && s.misses < indexMisses:
		s.misses++
		return false
	case err != nil || r.TxResult.Code != abci.CodeTypeOK:
		// A proposer may put one into a block before its turn, where it fails and its
		// sequence stays, and another into a later block.
		if r, err = c.searchBlocks(ctx, s.tx, s.above); err != nil {
			return false
		}
	}
	if r == nil {
		s.end(Result{}, errorsmod.Wrapf(sdkerrors.ErrWrongSequence, "another transaction took sequence %d", s.sequence))
		return true
	}
	s.end(resultOf(r, len(s.tx)))
	return true
}

// searchBlocks looks for a transaction in all blocks above a height: where it was
// executed, or last failed. It returns nil if it is in none.
func (c *Client) searchBlocks(ctx context.Context, tx cmttypes.Tx, above int64) (last *coretypes.ResultTx, err error) {
	now, err := blockv1.NewQueryClient(c.Conn).Now(ctx, &blockv1.QueryNowRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the newest block: %w", err)
	}
	for height := above + 1; height <= now.Height; height++ {
		b, err := c.RPC.Block(ctx, &height)
		if err != nil {
			return nil, fmt.Errorf("read block %d: %w", height, err)
		}
		if b.Block.Txs.Index(tx) < 0 {
			continue
		}
		r, err := c.RPC.BlockResults(ctx, &height)
		if err != nil || len(r.TxsResults) != len(b.Block.Txs) {
			return nil, errors.Join(fmt.Errorf("read the results of block %d", height), err)
		}
		for i, x := range b.Block.Txs {
			if bytes.Equal(x, tx) {
				last = &coretypes.ResultTx{Hash: tx.Hash(), Height: height, TxResult: *r.TxsResults[i]}
				if last.TxResult.Code == abci.CodeTypeOK {
					return last, nil
				}
			}
		}
	}
	return last, nil
}

// rebroadcast hands the i-th under way to the node once more, lest it was lost. It
// reports whether those behind it may follow.
func (a *Account) rebroadcast(ctx context.Context, i int) bool {
	s, tx := a.queue[i], a.queue[i].tx
	if s.refused {
		tx = s.replacement
	}
	if tx == nil {
		return a.replace(ctx, i)
	}
	r, err := a.client.RPC.BroadcastTxSync(ctx, tx)
	if err != nil {
		return strings.Contains(err.Error(), alreadySeen)
	}
	if r.Code == abci.CodeTypeOK {
		return true
	}
	refusal := errorsmod.ABCIError(r.Codespace, r.Code, r.Log)
	if errors.Is(refusal, sdkerrors.ErrWrongSequence) || errors.Is(refusal, sdkerrors.ErrMempoolIsFull) {
		return false
	}
	if _, sequence, err := a.client.account(ctx, a.Address); err != nil || sequence > s.sequence {
		return false // it is in a block by now
	}
	if !s.refused && !retryable(refusal) {
		s.end(Result{}, refusal)
	}
	s.refused, s.replacement = true, nil
	return a.replace(ctx, i)
}

// replace gives the sequence of the i-th under way, which the node would not have again,
// to a transaction without effect, if anybody waits for it or those behind it. An
// account that cannot pay for that gives these up.
func (a *Account) replace(ctx context.Context, i int) bool {
	if !slices.ContainsFunc(a.queue[i:], (*pendingTx).awaited) {
		a.queue = a.queue[:i]
		return false
	}
	nothing := &banktypes.MsgSend{FromAddress: a.Address, ToAddress: a.Address, Amount: coin.Of(1)}
	tx, err := a.signAndBroadcast(ctx, a.queue[i].sequence, nil, []sdk.Msg{nothing})
	switch {
	case err == nil:
		a.queue[i].replacement = tx
		return true
	case errors.Is(err, sdkerrors.ErrWrongSequence):
		return true // something has it already
	case errors.Is(err, sdkerrors.ErrInsufficientFunds):
		for _, s := range a.queue[i:] {
			s.end(Result{}, fmt.Errorf("transaction %X waits behind one that failed, and no money is left to take its place: see whether it is still to be sent: %w", s.tx.Hash(), err))
		}
		a.queue = a.queue[:i]
	}
	return false
}
