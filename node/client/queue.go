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
// with the same bytes, behind a replacement that takes the sequence of what would fail. One
// node's refusal is not the end: another may hold the same bytes, and execute them.
type pendingTx struct {
	sequence    uint64
	tx          cmttypes.Tx // as its sender signed it
	above       int64       // no block up to this height has it
	refusal     error       // why the node would not have it again; nil: it has, or there is no room
	replacement cmttypes.Tx // what takes its sequence since; nil: nothing yet
	fullAt      int64       // the head when the node first had no room for it or its replacement; 0: it has
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
	// While a node has no room for one, those behind it are kept out. So long, in blocks, they wait.
	fullBlocks = 2
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
	switch {
	case r != nil:
		s.end(resultOf(r, len(s.tx)))
	case s.refusal != nil:
		s.end(Result{}, s.refusal)
	default:
		s.end(Result{}, errorsmod.Wrapf(sdkerrors.ErrWrongSequence, "another transaction took sequence %d", s.sequence))
	}
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
	if s.refusal != nil {
		tx = s.replacement
	}
	if tx == nil {
		return a.replace(ctx, i)
	}
	r, err := a.client.RPC.BroadcastTxSync(ctx, tx)
	switch {
	case err != nil && !strings.Contains(err.Error(), alreadySeen):
		return false
	case err != nil || r.Code == abci.CodeTypeOK:
		s.fullAt = 0
		return true
	}
	refusal := Refusal(r.Codespace, r.Code, r.Log)
	switch {
	case errors.Is(refusal, sdkerrors.ErrWrongSequence):
		return false
	case errors.Is(refusal, sdkerrors.ErrMempoolIsFull):
		a.full(i, refusal)
		return false
	}
	if _, sequence, err := a.client.account(ctx, a.Address); err != nil || sequence > s.sequence {
		return false // it is in a block by now
	}
	if s.refusal == nil {
		s.refusal = refusal // its sender learns it once its sequence is used: it may be in a block first
	}
	s.replacement = nil
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
		a.queue[i].replacement, a.queue[i].fullAt = tx, 0
		return true
	case errors.Is(err, sdkerrors.ErrWrongSequence):
		return true // something has it already
	case errors.Is(err, sdkerrors.ErrMempoolIsFull):
		a.full(i, err)
	case errors.Is(err, sdkerrors.ErrInsufficientFunds):
		a.giveUp(i, err)
	}
	return false
}

// full gives up the i-th under way, and those behind it, once the node has had no room for it or
// its replacement for some blocks. Moves get in while it takes no other transactions, but not
// behind one of these; what is sent after that has the first of their sequences.
func (a *Account) full(i int, refusal error) {
	s, head := a.queue[i], a.client.Head().Height
	if s.fullAt == 0 {
		s.fullAt = head
	}
	if head >= s.fullAt+fullBlocks {
		a.giveUp(i, refusal)
	}
}

// giveUp ends the wait for the i-th under way and those behind it. Other nodes may hold them, so
// the error is none of the chain's own.
func (a *Account) giveUp(i int, why error) {
	if first := a.queue[i].refusal; first != nil {
		why = fmt.Errorf("%v; nothing could take its sequence: %v", first, why)
	}
	for _, s := range a.queue[i:] {
		s.end(Result{}, fmt.Errorf("transaction %X may still be executed, see whether it is still to be sent: the node takes nothing with sequence %d: %v", s.tx.Hash(), a.queue[i].sequence, why))
	}
	a.queue = a.queue[:i]
}
