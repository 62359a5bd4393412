package histories

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	dbm "github.com/cosmos/cosmos-db"

	"cosmossdk.io/log/v2"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Node is an application that makes the blocks of a history.
type Node struct {
	*app.App
	tb     testing.TB
	h      *History
	db     dbm.DB
	height int64
	later  bool // it is the later version
}

// Begun is a node that has the genesis, and no block.
func (h *History) Begun(tb testing.TB) *Node {
	tb.Helper()
	return h.begun(tb, dbm.NewMemDB())
}

func (h *History) begun(tb testing.TB, db dbm.DB) *Node {
	tb.Helper()
	n := h.Opened(tb, db, 0)
	if _, err := n.InitChain(h.Genesis); err != nil {
		tb.Fatal(err)
	}
	return n
}

// Opened is a node whose database has the state of a block.
func (h *History) Opened(tb testing.TB, db dbm.DB, height int64) *Node {
	tb.Helper()
	n := &Node{tb: tb, h: h, db: db, height: height}
	n.open()
	return n
}

// Open opens the application over db as the version that makes the block after a height.
func (h *History) Open(db dbm.DB, height int64) (*app.App, error) {
	if h.later(height + 1) {
		return h.Dearer.Open(db)
	}
	return app.New(log.NewNopLogger(), db, chaintest.ChainID)
}

func (h *History) later(height int64) bool { return height >= h.Upgrade }

// open opens the application anew, as after a kill.
func (n *Node) open() {
	n.tb.Helper()
	var err error
	if n.App, err = n.h.Open(n.db, n.height); err != nil {
		n.tb.Fatal(err)
	}
	n.later = n.h.later(n.height + 1)
	if has := n.LastBlockHeight(); has != n.height && has > 0 {
		n.tb.Fatalf("seed %d: begins at height %d, want %d", n.h.Seed, has, n.height)
	}
}

// execute executes the next block without storing it. At the height of the upgrade the version before does not.
func (n *Node) execute() *abci.ResponseFinalizeBlock {
	n.tb.Helper()
	b := n.h.At(n.height + 1)
	res, err := n.FinalizeBlock(b.Request)
	if n.later == n.h.later(b.Height) {
		if err != nil {
			n.tb.Fatalf("seed %d, height %d: %v", n.h.Seed, b.Height, err)
		}
		return res
	}
	var why *app.UpgradeError
	if !errors.As(err, &why) || why.Early || why.Plan.Height != b.Height {
		n.tb.Fatalf("seed %d, height %d: the version before the upgrade ends with %v", n.h.Seed, b.Height, err)
	}
	n.open()
	return n.execute()
}

// next makes the next block.
func (n *Node) next() *abci.ResponseFinalizeBlock {
	n.tb.Helper()
	res := n.execute()
	if _, err := n.Commit(); err != nil {
		n.tb.Fatalf("seed %d, height %d: %v", n.h.Seed, n.height+1, err)
	}
	n.height++
	return res
}

// Until makes the blocks up to a height. Each has the app hash that the history has.
func (n *Node) Until(height int64) {
	n.tb.Helper()
	for n.height < height {
		if got, want := n.next().AppHash, n.h.At(n.height).AppHash; !bytes.Equal(got, want) {
			n.tb.Fatalf("seed %d, height %d: the app hash is %X, and that of the history %X", n.h.Seed, n.height, got, want)
		}
	}
}

// ctx returns the state after the last block, or that of the genesis if there is none.
func (n *Node) ctx() sdk.Context {
	header := cmtproto.Header{ChainID: chaintest.ChainID, Height: n.height, Time: n.h.At(n.height).Time}
	ctx, _ := n.NewContextLegacy(n.LastBlockHeight() > 0, header).CacheContext()
	return ctx
}

// export returns the state as a genesis has it.
func (n *Node) export() json.RawMessage {
	n.tb.Helper()
	state, err := n.Export(n.ctx())
	if err != nil {
		n.tb.Fatal(err)
	}
	return state
}

// Replayed lets a node begin with the genesis and make all blocks.
func (h *History) Replayed(tb testing.TB) {
	tb.Helper()
	h.Begun(tb).Until(h.Last())
}
