package app

import (
	"slices"
	"sync"

	abci "github.com/cometbft/cometbft/abci/types"

	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
)

// Limits of a node's mempool. General transactions take at most half of it, and
// no more gas than two blocks have for them.
const (
	PoolTxs   = 2_000
	PoolBytes = 16 << 20
	poolGas   = 2 * maxBlockGas / shares * generalShare

	accountTxs      = 8  // general transactions of an account at once, of MaxGas in all
	accountMoves    = 64 // moves of an account at once
	accountFailures = 32 // transactions of an account that fail between two blocks, of MaxGas in all

	// freeFailures is the gas of general transactions that may fail at a node, between two
	// blocks and in a proposal, and be left out at no cost. What comes after them is not tried:
	// it goes into a block, where it pays whether it fails or not.
	freeFailures = 4 * MaxGas
)

// pool counts what the node's mempool holds, so that neither one account nor all
// general transactions together can keep moves out. It also keeps the moves, because
// CometBFT proposes from the front of its queue, where general ones may stand.
//
// After every block CometBFT checks again what is left. So the count begins anew
// at each block, and cannot drift.
type pool struct {
	mu        sync.Mutex // sync: queries may come beside consensus
	general   usage
	byAccount map[string]*usage
	moves     []entry
	failures  map[string]*usage // by account, since the last block
	failed    uint64            // gas of the general ones among all failures
}

// usage is what transactions take of a mempool. Of moves only the number is counted.
type usage struct{ txs, moves, bytes, gas uint64 }

func (u *usage) count(e entry) {
	if e.move {
		u.moves++
		return
	}
	u.txs, u.bytes, u.gas = u.txs+1, u.bytes+uint64(len(e.raw)), u.gas+e.gas
}

func (p *pool) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.general, p.moves, p.failed = usage{}, nil, 0
	p.byAccount, p.failures = map[string]*usage{}, map[string]*usage{}
}

// admits returns an error if there is no place for a transaction.
func (p *pool) admits(e entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, account := range e.by {
		own := usage{}
		if u := p.byAccount[account]; u != nil {
			own = *u
		}
		switch {
		case e.move && own.moves >= accountMoves:
			return errorsmod.Wrapf(sdkerrors.ErrMempoolIsFull, "%d moves of %s wait already: send more after the next block", own.moves, sdk.AccAddress(account))
		case !e.move && (own.txs >= accountTxs || own.txs > 0 && own.gas+e.gas > MaxGas):
			return errorsmod.Wrapf(sdkerrors.ErrMempoolIsFull, "%d transactions of %s with %d gas wait already: send more after the next block", own.txs, sdk.AccAddress(account), own.gas)
		}
	}
	switch g := p.general; {
	case e.move:
		return nil
	case g.txs >= PoolTxs/2 || g.bytes+uint64(len(e.raw)) > PoolBytes/2 || g.gas+e.gas > poolGas:
		return errorsmod.Wrap(sdkerrors.ErrMempoolIsFull, "only moves are taken now: send again after the next block")
	}
	return nil
}

// add counts a transaction that passed its check.
func (p *pool) add(e entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.move {
		p.moves = append(p.moves, e)
	} else {
		p.general.count(e)
	}
	for _, account := range e.by {
		own := p.byAccount[account]
		if own == nil {
			own = &usage{}
			p.byAccount[account] = own
		}
		own.count(e)
	}
}

// presumeFailed counts a failure of all who sign a transaction before it is executed,
// so that a panic or a lack of gas counts too. It returns an error if there were too
// many, or if they could use too much gas.
func (p *pool) presumeFailed(e entry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, account := range e.by {
		f := p.failures[account]
		if f != nil && f.txs > 0 && (f.txs >= accountFailures || f.gas+e.gas > MaxGas) {
			return errorsmod.Wrapf(sdkerrors.ErrMempoolIsFull, "%d transactions of %s with %d gas failed since the last block: wait for the next", f.txs, sdk.AccAddress(account), f.gas)
		}
	}
	for _, account := range e.by {
		f := p.failures[account]
		if f == nil {
			f = &usage{}
			p.failures[account] = f
		}
		f.txs, f.gas = f.txs+1, f.gas+e.gas
	}
	return nil
}

// try counts the gas of a general transaction among what has failed, or takes it back.
func (p *pool) try(e entry, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.move:
	case failed:
		p.failed += e.gas
	default:
		p.failed -= e.gas
	}
}

// spent reports whether no more general transactions are tried before the next block.
func (p *pool) spent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed >= freeFailures
}

// succeeded takes back what presumeFailed counted.
func (p *pool) succeeded(e entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, account := range e.by {
		f := p.failures[account]
		f.txs, f.gas = f.txs-1, f.gas-e.gas
	}
}

// waiting returns the moves in the order in which they came.
func (p *pool) waiting() []entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.moves)
}

// checkTx decides what enters the mempool, and what stays there after a block.
func (a *App) checkTx(run sdk.RunTx, req *abci.RequestCheckTx) (*abci.ResponseCheckTx, error) {
	refuse := func(err error) (*abci.ResponseCheckTx, error) {
		return sdkerrors.ResponseCheckTxWithEvents(err, 0, 0, nil, false), nil
	}
	if len(req.Tx) > MaxTx {
		return refuse(errorsmod.Wrapf(sdkerrors.ErrTxTooLarge, "%d bytes, at most %d", len(req.Tx), MaxTx))
	}
	tx, err := a.Tx.TxDecoder()(req.Tx)
	if err != nil {
		return refuse(errorsmod.Wrap(sdkerrors.ErrTxDecode, err.Error()))
	}
	e := entryOf(tx, req.Tx)
	if req.Type == abci.CheckTxType_New {
		if err := a.pool.admits(e); err != nil {
			return refuse(err)
		}
	}
	gas, result, events, err := run(req.Tx, tx)
	if err != nil {
		return sdkerrors.ResponseCheckTxWithEvents(err, gas.GasWanted, gas.GasUsed, events, false), nil
	}
	a.pool.add(e)
	return &abci.ResponseCheckTx{
		GasWanted: int64(gas.GasWanted), GasUsed: int64(gas.GasUsed),
		Log: result.Log, Data: result.Data, Events: sdk.MarkEventsToIndex(result.Events, nil),
	}, nil
}

// execute runs the messages of a transaction on its way into mempool and block, on
// the state that those before it would leave. So only what would be taken now gets
// there. What is done already is kept out, and so is what would be refused, or is
// paid from a purse that another transaction has emptied. Once too much has failed, general
// transactions are taken untried.
type execute struct{ *App }

// AnteHandle implements sdk.AnteDecorator. It comes last, when fee and signatures hold.
func (x execute) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	mode := ctx.ExecMode()
	if simulate || mode == sdk.ExecModeFinalize || ctx.BlockHeight() == 0 {
		return next(ctx, tx, simulate)
	}
	e := entryOf(tx, nil)
	if !e.move && (mode == sdk.ExecModePrepareProposal && x.leftOut >= freeFailures || mode != sdk.ExecModePrepareProposal && x.pool.spent()) {
		return next(ctx, tx, simulate)
	}
	if mode == sdk.ExecModeCheck {
		if err := x.pool.presumeFailed(e); err != nil {
			return ctx, err
		}
	}
	if mode != sdk.ExecModePrepareProposal {
		x.pool.try(e, true)
	}
	for i, m := range tx.GetMsgs() {
		handler := x.MsgServiceRouter().Handler(m)
		if handler == nil {
			return ctx, errorsmod.Wrapf(sdkerrors.ErrUnknownRequest, "no module takes %s", sdk.MsgTypeURL(m))
		}
		if _, err := handler(ctx.WithMsgIndex(i), m); err != nil {
			return ctx, errorsmod.Wrapf(err, "failed to execute message; message index: %d", i)
		}
	}
	if mode == sdk.ExecModeCheck {
		x.pool.succeeded(e)
	}
	if mode != sdk.ExecModePrepareProposal {
		x.pool.try(e, false)
	}
	return next(ctx, tx, simulate)
}
