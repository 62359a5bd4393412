package client

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	rpctypes "github.com/cometbft/cometbft/rpc/jsonrpc/types"
	cmttypes "github.com/cometbft/cometbft/types"

	"google.golang.org/grpc"

	errorsmod "cosmossdk.io/errors"

	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
)

// Account sends transactions of one account. Safe for concurrent use: what is sent
// at once shares transactions, which get consecutive sequences, in any order, and may be in one block.
type Account struct {
	Address  string
	GasFee   uint64 // utally for 10⁶ gas: the least that is paid, and a higher bound than maxGasPrice
	Messages int    // that may share a transaction; 0: as many as a chain takes

	client *Client
	key    cryptotypes.PrivKey
	line   line          // what waits to be signed
	slots  chan struct{} // one of maxInFlight for each that is under way

	mu       sync.Mutex // guards what follows; held while a transaction is signed and broadcast, and by poll
	number   uint64
	fee      sdk.Coins    // of the last transaction that was signed
	queue    []*pendingTx // what is under way, by sequence
	resentAt int64        // the head when the queue was last broadcast again
	resent   time.Time    // when that was

	polling sync.Mutex // held by the one that polls for all
	polled  time.Time
}

// Account returns the account of a key.
func (c *Client) Account(key cryptotypes.PrivKey) *Account {
	return &Account{
		Address: sdk.AccAddress(key.PubKey().Address()).String(),
		client:  c, key: key, slots: make(chan struct{}, maxInFlight),
	}
}

// Result says what became of a transaction. Others' messages may share it.
type Result struct {
	Hash    []byte
	Height  int64
	GasUsed int64
	Size    int // bytes
}

const (
	// A transaction may use more gas than its trial did, for others may come first.
	gasMargin, gasSpare = 4, 50_000 // a quarter, and what small ones vary by
	untriedGas          = 5_000_000 // where the node does not try transactions
	// maxInFlight is how many an account broadcasts before the first is in a block.
	maxInFlight = 16
	maxOutOfGas = 5 // tries of the same messages, for each pays
	// maxSequences bounds how often the same messages are signed anew behind what a node said
	// was not taken: it may have lied, and have executed them each time.
	maxSequences = 16
)

// errUncertain is in errors of the chain's own after which messages may have been executed.
var errUncertain = errors.New("look whether it was executed before it is sent again")

// Send signs and sends msgs in one transaction and waits until it is in a
// block. What is sent at once may share the transaction, and what fails for others' messages is
// sent again without them: what one Send hands over is executed whole, or refused alone. It pays for the gas that a trial used, and a margin; where it has too
// little money, a sponsor pays, if there is one. A transaction that
// would fail is refused by the node with the module's own error, and costs
// nothing; one that fails later, because another came first, pays: in its block, or
// for the replacement that takes its sequence.
//
// The messages are executed at most once, by an honest node; one that lies can have them
// executed maxSequences times. If the chain's own error comes back, they were
// not, and will not be. After any other error they may still be.
func (a *Account) Send(ctx context.Context, msgs ...sdk.Msg) (Result, error) {
	s := newSending(ctx, msgs)
	if a.line.join(s) {
		go a.serve()
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		if !a.line.leave(s) {
			return Result{}, fmt.Errorf("what was sent may still be executed: %w", ctx.Err())
		}
		return Result{}, ctx.Err()
	}
	return s.result, s.err
}

// execute has msgs executed as one transaction. It says when they have been handed to a
// node, or cannot be. If they shall be cut, it is content with one try where they need more gas.
func (a *Account) execute(ctx context.Context, msgs []sdk.Msg, cut bool, begun func()) (Result, error) {
	var until time.Time // patience after the first try
	sequences := map[uint64]bool{}
	for outOfGas := 0; ; {
		r, sequence, err := a.send(ctx, msgs, begun)
		sequences[sequence] = true
		if errors.Is(err, sdkerrors.ErrOutOfGas) {
			outOfGas++
		}
		if !retryable(err) || outOfGas > maxOutOfGas || cut && outOfGas > 0 || ctx.Err() != nil {
			return r, err
		}
		if len(sequences) == maxSequences {
			return r, fmt.Errorf("%w; it was signed with %d sequences: %w", err, maxSequences, errUncertain)
		}
		if until.IsZero() {
			until = time.Now().Add(patience)
		}
		wait, cancel := context.WithDeadline(ctx, until)
		_, stopped := a.client.Next(wait, a.client.Head().Height)
		cancel()
		if stopped != nil {
			return r, errors.Join(err, ctx.Err())
		}
	}
}

// retryable reports whether the same messages may be taken after the next block, if they are
// tried and signed anew: the node has no room before it; another process has the same key, or
// a node lost its mempool; or others, who came first in the block, made more to read and
// write than the margin is for.
func retryable(err error) bool {
	return errors.Is(err, sdkerrors.ErrMempoolIsFull) || errors.Is(err, sdkerrors.ErrWrongSequence) || errors.Is(err, sdkerrors.ErrOutOfGas)
}

func (a *Account) send(ctx context.Context, msgs []sdk.Msg, begun func()) (r Result, sequence uint64, err error) {
	s, sequence, err := a.begin(ctx, msgs)
	begun()
	if err != nil {
		return r, sequence, err
	}
	r, err = a.await(ctx, s)
	return r, sequence, err
}

// begin broadcasts msgs as a transaction with the next sequence, which it returns.
func (a *Account) begin(ctx context.Context, msgs []sdk.Msg) (s *pendingTx, sequence uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if sequence, err = a.next(ctx); err != nil {
		return nil, 0, err
	}
	height := a.client.Head().Height
	tx, err := a.signAndBroadcast(ctx, sequence, nil, msgs)
	if errors.Is(err, sdkerrors.ErrInsufficientFunds) {
		for _, sponsor := range a.sponsors(ctx, a.fee, msgs) {
			if sponsored, refusal := a.signAndBroadcast(ctx, sequence, sponsor, msgs); refusal == nil {
				tx, err = sponsored, nil
				break
			}
		}
	}
	if errors.Is(err, sdkerrors.ErrWrongSequence) {
		a.resentAt = 0 // what is under way may be lost: broadcast it again at the next poll
	}
	if err != nil {
		return nil, sequence, err
	}
	s = &pendingTx{sequence: sequence, tx: tx, above: height, done: make(chan struct{})}
	a.queue = append(a.queue, s)
	return s, sequence, nil
}

// next returns the sequence after those under way. What nobody waits for any more is
// forgotten with the last that somebody waits for: its sequence is given anew. So what is
// sent after something that may still be executed has the same sequence, and at most one
// of the two is; unless more was under way.
func (a *Account) next(ctx context.Context) (uint64, error) {
	number, sequence, err := a.client.account(ctx, a.Address)
	if err != nil {
		return 0, err
	}
	a.number = number
	if !slices.ContainsFunc(a.queue, (*pendingTx).awaited) {
		a.queue = nil
	}
	if n := len(a.queue); n > 0 {
		sequence = max(sequence, a.queue[n-1].sequence+1)
	}
	return sequence, nil
}

// signAndBroadcast signs msgs with a sequence and hands them to the node.
func (a *Account) signAndBroadcast(ctx context.Context, sequence uint64, sponsor sdk.AccAddress, msgs []sdk.Msg) (cmttypes.Tx, error) {
	tx, err := a.sign(ctx, sequence, sponsor, msgs)
	if err != nil {
		return nil, err
	}
	r, err := a.client.broadcast(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("send transaction: %w", err)
	}
	if r.Code != abci.CodeTypeOK {
		return nil, Refusal(r.Codespace, r.Code, r.Log)
	}
	return tx, nil
}

// sign signs msgs with the gas that they need. A node that is behind, or tries no
// transactions, does not stop it: the gas is then what is enough for any. A node tries
// on the state that what waits in its mempool leaves.
func (a *Account) sign(ctx context.Context, sequence uint64, sponsor sdk.AccAddress, msgs []sdk.Msg) (cmttypes.Tx, error) {
	price, err := GasPrice(ctx, a.client.Conn, a.GasFee)
	if err != nil {
		return nil, err
	}
	s := app.Signer{ChainID: a.client.ChainID, Key: a.key, Number: a.number, Sequence: sequence, Sponsor: sponsor}
	gas := uint64(untriedGas)
	trial, err := a.client.enc.Sign(s, gas, 0, msgs...) // a trial costs nothing
	if err != nil {
		return nil, err
	}
	r, err := txtypes.NewServiceClient(a.client.Conn).Simulate(ctx, &txtypes.SimulateRequest{TxBytes: trial})
	if err == nil && r.GasInfo != nil {
		gas = min(r.GasInfo.GasUsed+r.GasInfo.GasUsed/gasMargin+gasSpare, app.MaxGas)
	}
	fee := coin.Fee(price, gas)
	a.fee = coin.Of(fee)
	return a.client.enc.Sign(s, gas, fee, msgs...)
}

// maxGasPrice bounds what is paid for 10⁶ gas, in utally, because a node says so: a hundred
// times what a new chain asks. The node may be somebody else's, and fees are burnt.
const maxGasPrice = 10_000

// PriceError is returned if a node names a price of gas above the bound.
type PriceError struct{ Asked, Most uint64 }

func (e *PriceError) Error() string {
	return fmt.Sprintf("the node asks %d utally for a million gas, and this home pays at most %d: ask another node, or set gas_price in tally.yaml", e.Asked, e.Most)
}

// GasPrice asks a node for the chain's price of 10⁶ gas, in utally, and returns at least own, which bounds it if it is
// above maxGasPrice. It returns a PriceError for a higher one.
func GasPrice(ctx context.Context, conn grpc.ClientConnInterface, own uint64) (uint64, error) {
	r, err := blockv1.NewQueryClient(conn).Params(ctx, &blockv1.QueryParamsRequest{})
	if err != nil {
		return 0, fmt.Errorf("ask for the price of gas: %w", err)
	}
	return boundPrice(r.Params.GasPrice, own)
}

func boundPrice(asked, own uint64) (uint64, error) {
	if most := max(own, maxGasPrice); asked > most {
		return 0, &PriceError{asked, most}
	}
	return max(own, asked), nil
}

// The tries to broadcast a transaction, and the pause after the first.
const (
	maxTries    = 5
	firstPause  = 50 * time.Millisecond
	alreadySeen = "tx already exists in cache"
)

// broadcast hands a transaction to the node. A connection may break before the
// node has answered, as one that it is just closing for idleness does. The same
// bytes are handed over again then: they can be executed only once. A refusal after
// that says little, for the node may have passed them on before; so they count as taken.
func (c *Client) broadcast(ctx context.Context, tx cmttypes.Tx) (*coretypes.ResultBroadcastTx, error) {
	for try := 0; ; try++ {
		r, err := c.RPC.BroadcastTxSync(ctx, tx)
		var answer *rpctypes.RPCError
		switch {
		case err == nil && try > 0, err != nil && strings.Contains(err.Error(), alreadySeen):
			return &coretypes.ResultBroadcastTx{Hash: tx.Hash()}, nil // it may have arrived before
		case err == nil:
			return r, nil
		case errors.As(err, &answer) || try+1 == maxTries || ctx.Err() != nil:
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(firstPause << try):
		}
	}
}

// place is where in a program an error was made, as the SDK writes it behind some.
var place = regexp.MustCompile(` \[[^\[\] ]*\.go:\d+\]$`)

// Refusal returns the error of a module by its code, in the words of the log, which end with the module's own as a rule.
func Refusal(codespace string, code uint32, log string) error {
	log = place.ReplaceAllString(log, "")
	err := errorsmod.ABCIError(codespace, code, log)
	if known := errors.Unwrap(err); known != nil {
		return errorsmod.Wrap(known, strings.TrimSuffix(log, ": "+known.Error()))
	}
	return err
}

func resultOf(r *coretypes.ResultTx, size int) (Result, error) {
	if r.TxResult.Code != abci.CodeTypeOK {
		return Result{}, Refusal(r.TxResult.Codespace, r.TxResult.Code, r.TxResult.Log)
	}
	return Result{r.Hash, r.Height, r.TxResult.GasUsed, size}, nil
}
