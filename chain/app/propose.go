package app

import (
	"crypto/sha256"
	"slices"

	abci "github.com/cometbft/cometbft/abci/types"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// prepareProposal fills a block: moves of parties first, then those of strangers, then
// general transactions, of each class one of each account in turn. Each is executed on
// the state that those before it leave; what would fail is left out, all but moves of
// parties up to freeFailures. Before them all comes the proof of the beacon's value, if the
// block needs one.
func (a *App) prepareProposal(ctx sdk.Context, req *abci.RequestPrepareProposal) (*abci.ResponsePrepareProposal, error) {
	waits, err := a.drawWaits(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.countTime(ctx); err != nil {
		return nil, err
	}
	parties, strangers, general := a.pool.waiting(), []entry(nil), []entry(nil)
	if len(parties)+len(req.Txs) == 0 && !waits {
		return &abci.ResponsePrepareProposal{}, nil
	}
	proof, err := a.prove(ctx)
	if err != nil { // others propose what needs a value
		a.Logger().Error("this node cannot prove the beacon's value, and proposes no transactions", "height", req.Height, "err", err)
		return &abci.ResponsePrepareProposal{}, nil
	}
	space := roomOf(ctx)
	space.bytes = min(space.bytes, uint64(req.MaxTxBytes))
	for _, raw := range req.Txs {
		tx, err := a.Tx.TxDecoder()(raw)
		if err != nil {
			continue
		}
		switch e := a.known(ctx, entryOf(tx, raw)); {
		case e.party:
			parties = append(parties, e)
		case e.move:
			strangers = append(strangers, e)
		default:
			general = append(general, e)
		}
	}
	a.failed.proposed.reset()
	taken, txs := fill{}.with(proof), [][]byte{proof.raw}
	known := map[[sha256.Size]byte]bool{}
	for _, e := range slices.Concat(inTurn(parties), inTurn(strangers), inTurn(general)) {
		h := sha256.Sum256(e.raw) // a move may stand in both lists
		if known[h] || !space.holds(taken.with(e)) {
			continue
		}
		known[h] = true
		if _, _, _, err := a.RunTx(sdk.ExecModePrepareProposal, e.raw, e.tx, -1, nil, nil); err != nil {
			continue
		}
		taken, txs = taken.with(e), append(txs, e.raw)
	}
	if len(txs) == 1 && !waits {
		txs = nil
	}
	return &abci.ResponsePrepareProposal{Txs: txs}, nil
}

// inTurn orders entries so that the first of every account come before the second
// of any. Where several sign, it is the turn of whoever has sent most.
func inTurn(all []entry) []entry {
	var turns [][]entry
	sent := map[string]int{}
	for _, e := range all {
		n := 0
		for _, account := range e.by {
			n = max(n, sent[account])
		}
		for _, account := range e.by {
			sent[account] = n + 1
		}
		if n == len(turns) {
			turns = append(turns, nil)
		}
		turns[n] = append(turns[n], e)
	}
	return slices.Concat(turns...)
}

// processProposal refuses a block in which general transactions take what is kept
// for moves, or come before them, and one without the proof that it needs, or with one that
// it does not need. It depends on the block and the state before it alone, so honest proposers
// and validators agree.
func (a *App) processProposal(ctx sdk.Context, req *abci.RequestProcessProposal) (*abci.ResponseProcessProposal, error) {
	if _, ok := a.measure(roomOf(ctx), req.Txs); !ok {
		return &abci.ResponseProcessProposal{Status: abci.ResponseProcessProposal_REJECT}, nil
	}
	if err := a.checkProof(ctx, req.Txs); err != nil {
		a.Logger().Info("refused a block for its proof of the beacon's value", "height", req.Height, "err", err)
		return &abci.ResponseProcessProposal{Status: abci.ResponseProcessProposal_REJECT}, nil
	}
	return &abci.ResponseProcessProposal{Status: abci.ResponseProcessProposal_ACCEPT}, nil
}

// measure returns what transactions take of a block, and whether a block may hold
// them in this order.
func (a *App) measure(space room, txs [][]byte) (taken fill, ok bool) {
	ok = true
	for _, raw := range txs {
		tx, err := a.Tx.TxDecoder()(raw)
		if err != nil {
			ok = false
			continue
		}
		e := entryOf(tx, raw)
		late := e.move && taken.generalBytes > 0
		if e.gas > MaxGas {
			ok = false
			continue
		}
		taken = taken.with(e)
		ok = ok && !late && space.holds(taken)
	}
	return taken, ok
}
