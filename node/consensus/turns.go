package consensus

import (
	"sync"
	"sync/atomic"

	abci "github.com/cometbft/cometbft/abci/types"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
)

// turns is the application, with trials of transactions and blocks taking turns: a trial
// reads the trees into which a block is written. Over ABCI, CometBFT's one lock does that;
// over gRPC, trials come beside it. They run together, and a block waits for those that
// have begun.
type turns struct {
	*app.App
	mu sync.RWMutex // held for writing by FinalizeBlock and Commit, for reading by trials

	storing sync.RWMutex  // held for writing while a block is stored
	stored  atomic.Uint64 // blocks whose storing has begun
}

// FinalizeBlock implements abci.Application.
func (t *turns) FinalizeBlock(req *abci.RequestFinalizeBlock) (*abci.ResponseFinalizeBlock, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.App.FinalizeBlock(req)
}

// Commit implements abci.Application.
func (t *turns) Commit() (*abci.ResponseCommit, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.storing.Lock()
	defer t.storing.Unlock()
	t.stored.Add(1)
	return t.App.Commit()
}

// Simulate tries a transaction. What cannot be decoded takes no turn, so no block waits for it.
func (t *turns) Simulate(tx []byte) (sdk.GasInfo, *sdk.Result, error) {
	if _, err := t.Tx.TxDecoder()(tx); err != nil {
		return sdk.GasInfo{}, nil, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.App.Simulate(tx)
}
