package app

import (
	"sync"

	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
)

const (
	// accountFailures is how many transactions of an account may fail between two blocks, of
	// MaxGas in all.
	accountFailures = 32

	// freeFailures is the gas of transactions that may fail at a node, between two blocks and in
	// a proposal, and be left out at no cost. Moves of parties come on top. What comes after
	// them is not tried: it goes into a block, where it pays whether it fails or not.
	freeFailures = 4 * MaxGas
)

// failures counts what fails at a node, where nobody pays for it. Parties have a bound
// each, and so have others; but there is no end of others, so these have one together.
type failures struct {
	mu        sync.Mutex // sync: queries may come beside consensus
	byAccount map[string]*usage
	free      uint64 // gas of all but moves of parties
}

func (f *failures) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byAccount, f.free = map[string]*usage{}, 0
}

// presume counts a failure of a transaction, and of the given accounts, before it is
// executed, so that a panic or a lack of gas counts too. It reports whether the transaction
// is to be executed at all; an error means that an account had too many.
func (f *failures) presume(e entry, accounts []string) (try bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !e.party && f.free >= freeFailures {
		return false, nil
	}
	for _, account := range accounts {
		u := f.byAccount[account]
		if u != nil && u.txs > 0 && (u.txs >= accountFailures || u.gas+e.gas > MaxGas) {
			return false, errorsmod.Wrapf(sdkerrors.ErrMempoolIsFull, "%d transactions of %s with %d gas failed since the last block: wait for the next", u.txs, sdk.AccAddress(account), u.gas)
		}
	}
	for _, account := range accounts {
		u := f.byAccount[account]
		if u == nil {
			u = &usage{}
			f.byAccount[account] = u
		}
		u.txs, u.gas = u.txs+1, u.gas+e.gas
	}
	if !e.party {
		f.free += e.gas
	}
	return true, nil
}

// succeeded takes back what presume counted.
func (f *failures) succeeded(e entry, accounts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, account := range accounts {
		u := f.byAccount[account]
		u.txs, u.gas = u.txs-1, u.gas-e.gas
	}
	if !e.party {
		f.free -= e.gas
	}
}

// execute runs the messages of a transaction on its way into mempool and block, on
// the state that those before it would leave. So only what would be taken now gets
// there. What is done already is kept out, and so is what would be refused, or is
// paid from a purse that another transaction has emptied. Once too much has failed,
// transactions are taken untried, but moves of parties.
type execute struct{ *App }

// AnteHandle implements sdk.AnteDecorator. It comes last, when fee and signatures hold.
func (x execute) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	mode := ctx.ExecMode()
	if simulate || mode == sdk.ExecModeFinalize {
		return next(ctx, tx, simulate)
	}
	e := x.known(ctx, entryOf(tx, ctx.TxBytes()))
	if ctx.BlockHeight() > 0 {
		if err := x.try(ctx, e); err != nil {
			return ctx, err
		}
	}
	if mode != sdk.ExecModePrepareProposal {
		x.pool.add(e)
	}
	return next(ctx, tx, simulate)
}

// try executes a transaction, unless too much has failed. Accounts answer for what is
// new alone: what has waited may fail because of others.
func (x execute) try(ctx sdk.Context, e entry) error {
	counts, accounts := &x.failed.arriving, []string(nil)
	switch ctx.ExecMode() {
	case sdk.ExecModePrepareProposal:
		counts = &x.failed.proposed
	case sdk.ExecModeCheck:
		accounts = e.by
	}
	if try, err := counts.presume(e, accounts); !try {
		return err
	}
	for i, m := range e.tx.GetMsgs() {
		handler := x.MsgServiceRouter().Handler(m)
		if handler == nil {
			return errorsmod.Wrapf(sdkerrors.ErrUnknownRequest, "no module takes %s", sdk.MsgTypeURL(m))
		}
		if _, err := handler(ctx.WithMsgIndex(i), m); err != nil {
			return errorsmod.Wrapf(err, "failed to execute message; message index: %d", i)
		}
	}
	counts.succeeded(e, accounts)
	return nil
}
