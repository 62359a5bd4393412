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

	accountTxs   = 8  // general transactions of an account at once, of MaxGas in all
	accountMoves = 64 // moves of an account at once
)

// pool counts what the node's mempool holds, so that neither one account nor all
// general transactions together can keep moves out. Moves of strangers count among the
// general ones. It also keeps the moves of parties, because
// CometBFT proposes from the front of its queue, where others may stand.
//
// After every block CometBFT checks again what is left. So the count begins anew
// at each block, and cannot drift.
type pool struct {
	mu        sync.Mutex // sync: queries may come beside consensus
	general   usage
	byAccount map[string]*usage
	moves     []entry // of parties
}

// usage is what transactions take of a mempool. Of moves only the number is counted.
type usage struct{ txs, moves, bytes, gas uint64 }

func (u *usage) count(e entry) {
	if e.party {
		u.moves++
		return
	}
	u.txs, u.bytes, u.gas = u.txs+1, u.bytes+uint64(len(e.raw)), u.gas+e.gas
}

func (p *pool) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.general, p.moves, p.byAccount = usage{}, nil, map[string]*usage{}
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
		case e.party && own.moves >= accountMoves:
			return errorsmod.Wrapf(sdkerrors.ErrMempoolIsFull, "%d moves of %s wait already: send more after the next block", own.moves, sdk.AccAddress(account))
		case !e.party && (own.txs >= accountTxs || own.txs > 0 && own.gas+e.gas > MaxGas):
			return errorsmod.Wrapf(sdkerrors.ErrMempoolIsFull, "%d transactions of %s with %d gas wait already: send more after the next block", own.txs, sdk.AccAddress(account), own.gas)
		}
	}
	switch g := p.general; {
	case e.party:
		return nil
	case g.txs >= PoolTxs/2 || g.bytes+uint64(len(e.raw)) > PoolBytes/2 || g.gas+e.gas > poolGas:
		return errorsmod.Wrap(sdkerrors.ErrMempoolIsFull, "only moves of those who have a stake are taken now: send again after the next block")
	}
	return nil
}

// add counts a transaction that passed its check.
func (p *pool) add(e entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.party {
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

// waiting returns the moves in the order in which they came.
func (p *pool) waiting() []entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.moves)
}

// admit lets into the mempool what there is a place for. It comes before anything that takes
// longer.
type admit struct{ *App }

// AnteHandle implements sdk.AnteDecorator.
func (x admit) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	if ctx.ExecMode() == sdk.ExecModeCheck && !simulate {
		if err := x.pool.admits(x.known(ctx, entryOf(tx, ctx.TxBytes()))); err != nil {
			return ctx, err
		}
	}
	return next(ctx, tx, simulate)
}

// checkTx decides what enters the mempool, and what stays there after a block.
func (a *App) checkTx(run sdk.RunTx, req *abci.RequestCheckTx) (*abci.ResponseCheckTx, error) {
	refuse := func(err error) (*abci.ResponseCheckTx, error) {
		return sdkerrors.ResponseCheckTxWithEvents(err, 0, 0, nil, false), nil
	}
	tx, err := a.Tx.TxDecoder()(req.Tx)
	if errorsmod.IsOf(err, sdkerrors.ErrTxTooLarge) {
		return refuse(err)
	} else if err != nil {
		return refuse(errorsmod.Wrap(sdkerrors.ErrTxDecode, err.Error()))
	}
	gas, result, events, err := run(req.Tx, tx)
	if err != nil {
		return sdkerrors.ResponseCheckTxWithEvents(err, gas.GasWanted, gas.GasUsed, events, false), nil
	}
	return &abci.ResponseCheckTx{
		GasWanted: int64(gas.GasWanted), GasUsed: int64(gas.GasUsed),
		Log: result.Log, Data: result.Data, Events: sdk.MarkEventsToIndex(result.Events, nil),
	}, nil
}
