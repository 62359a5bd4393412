package consensus

import (
	"errors"
	"sync"
	"sync/atomic"

	abci "github.com/cometbft/cometbft/abci/types"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/node/statesync"
)

// turns is the application, with trials of transactions and blocks taking turns: a trial
// reads the trees into which a block is written. Over ABCI, CometBFT's one lock does that;
// over gRPC, trials come beside it. They run together, and a block waits for those that
// have begun.
type turns struct {
	*app.App
	mu sync.RWMutex // held for writing by FinalizeBlock and Commit, for reading by trials

	other func(error) // is told that a block is for another version of this software

	storing sync.RWMutex  // held for writing while a block is stored
	stored  atomic.Uint64 // blocks whose storing has begun
	height  atomic.Int64  // of the newest stored block

	snapshots *statesync.Snapshots
}

// newTurns lets an application take turns.
func newTurns(a *app.App) *turns {
	t := &turns{App: a}
	t.height.Store(a.LastBlockHeight())
	a.SetQueryMultiStore(queried{a.CommitMultiStore(), t})
	return t
}

// LastBlockHeight returns the height of the newest stored block.
func (t *turns) LastBlockHeight() int64 { return t.height.Load() }

// queried is the store as queries read it. To tell the newest height, the store itself hashes all that it has committed.
type queried struct {
	storetypes.MultiStore
	turns *turns
}

// LatestVersion implements storetypes.MultiStore.
func (q queried) LatestVersion() int64 { return q.turns.LastBlockHeight() }

// FinalizeBlock implements abci.Application.
func (t *turns) FinalizeBlock(req *abci.RequestFinalizeBlock) (*abci.ResponseFinalizeBlock, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.App.FinalizeBlock(req)
	if why := (*app.UpgradeError)(nil); errors.As(err, &why) {
		t.other(why)
	}
	return r, err
}

// Commit implements abci.Application.
func (t *turns) Commit() (*abci.ResponseCommit, error) {
	r, err := t.commit()
	if err != nil {
		return r, err
	}
	height := t.LastBlockHeight()
	r.RetainHeight = t.snapshots.Retain(height, r.RetainHeight)
	t.snapshots.Take(height)
	return r, nil
}

// ListSnapshots implements abci.Application.
func (t *turns) ListSnapshots(*abci.RequestListSnapshots) (*abci.ResponseListSnapshots, error) {
	return t.snapshots.List()
}

// LoadSnapshotChunk implements abci.Application.
func (t *turns) LoadSnapshotChunk(req *abci.RequestLoadSnapshotChunk) (*abci.ResponseLoadSnapshotChunk, error) {
	return t.snapshots.Load(req)
}

func (t *turns) commit() (*abci.ResponseCommit, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.storing.Lock()
	defer t.storing.Unlock()
	t.stored.Add(1)
	r, err := t.App.Commit()
	t.height.Store(t.App.LastBlockHeight())
	return r, err
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
