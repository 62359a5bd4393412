package consensus

import (
	"context"
	"errors"
	"strings"
	"testing"

	cmtdb "github.com/cometbft/cometbft-db"
	abci "github.com/cometbft/cometbft/abci/types"
	cmtquery "github.com/cometbft/cometbft/libs/pubsub/query"
	"github.com/cometbft/cometbft/rpc/core"
	"github.com/cometbft/cometbft/state"
	blocks "github.com/cometbft/cometbft/state/indexer/block/kv"
	"github.com/cometbft/cometbft/state/txindex"
	txs "github.com/cometbft/cometbft/state/txindex/kv"
	"github.com/cometbft/cometbft/types"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/runtime"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"

	"github.com/tally-network/tally/chain/app"
)

// A search read all that it found before it made a page: every transaction there was.
func TestSearchesAreBounded(t *testing.T) {
	db := cmtdb.NewMemDB()
	env := &core.Environment{TxIndexer: txs.NewTxIndex(db), BlockIndexer: blocks.New(cmtdb.NewPrefixDB(db, []byte("block_events")))}
	boundSearches(env, db)
	const heights = maxFound/(1<<20) + 1
	event := func(value string) []abci.Event {
		return []abci.Event{{Type: "e", Attributes: []abci.EventAttribute{{Key: "k", Value: value, Index: true}}}}
	}
	var all txindex.Batch
	for h := range int64(heights) {
		all.Ops = append(all.Ops, &abci.TxResult{Height: 1 + h, Tx: append([]byte{byte(h)}, make([]byte, 1<<20)...), Result: abci.ExecTxResult{Events: event("v")}})
		if err := env.BlockIndexer.Index(types.EventDataNewBlockEvents{Height: 1 + h, Events: event("v")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := env.TxIndexer.AddBatch(&all); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"e.k='v' AND tx.height=7": 1, "e.k='v' AND tx.height>2": heights - 2, "e.k='none'": 0, "tx.height>0": -1, "e.k EXISTS": -1, "e.k='v'": -1,
	} {
		q, err := cmtquery.New(text)
		if err != nil {
			t.Fatal(err)
		}
		found, err := env.TxIndexer.Search(t.Context(), q)
		if errors.Is(err, errWide) != (want < 0) || len(found) != max(want, 0) {
			t.Errorf("%s: %d transactions, %v", text, len(found), err)
		}
	}
	few := func(ctx context.Context, db cmtdb.DB) ([]int64, error) {
		db.(*metered).keys = 20
		i := blocks.New(cmtdb.NewPrefixDB(db, []byte("block_events")))
		return i.Search(ctx, cmtquery.MustCompile("e.k='v'"))
	}
	if found, err := within(t.Context(), db, few); !errors.Is(err, errWide) || found != nil {
		t.Errorf("blocks: %d, %v", len(found), err)
	}
	found, err := env.BlockIndexer.Search(t.Context(), cmtquery.MustCompile("e.k='v' AND block.height>30"))
	if err != nil || len(found) != heights-30 {
		t.Errorf("blocks: %v, %v", found, err)
	}
}

// stored are blocks of a megabyte each.
type stored struct{ state.BlockStore }

func (stored) LoadBlock(h int64) *types.Block { return &types.Block{Header: types.Header{Height: h}} }
func (stored) LoadBlockMeta(int64) *types.BlockMeta {
	return &types.BlockMeta{BlockSize: 1 << 20}
}

// A page of a search has a hundred blocks, of four megabytes each.
func TestPagesOfBlocksAreBounded(t *testing.T) {
	db := cmtdb.NewMemDB()
	env := &core.Environment{TxIndexer: txs.NewTxIndex(db), BlockIndexer: blocks.New(cmtdb.NewPrefixDB(db, []byte("block_events"))), BlockStore: stored{}}
	boundSearches(env, db)
	var all txindex.Batch
	for h := range int64(100) {
		all.Ops = append(all.Ops, &abci.TxResult{Height: 1 + h, Tx: []byte{byte(h)}})
		if err := env.BlockIndexer.Index(types.EventDataNewBlockEvents{Height: 1 + h}); err != nil {
			t.Fatal(err)
		}
	}
	if err := env.TxIndexer.AddBatch(&all); err != nil {
		t.Fatal(err)
	}
	q := queries{env: env}
	for page, fine := range map[int]bool{10: true, maxFound >> 20: true, maxFound>>20 + 1: false, 100: false} {
		b, err := q.BlockSearch(t.Context(), "block.height>0", nil, &page, "")
		if fine != (err == nil) || fine && len(b.Blocks) != page || !fine && !errors.Is(err, errLarge) {
			t.Errorf("%d blocks: %v, %v", page, b, err)
		}
		x, err := q.TxSearch(t.Context(), "tx.height>0", false, nil, &page, "")
		if fine != (err == nil) || fine && len(x.Txs) != page || !fine && !errors.Is(err, errLarge) {
			t.Errorf("transactions of %d blocks: %v, %v", page, x, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.BlockSearch(gone, "block.height>0", nil, nil, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("blocks, for nobody: %v", err)
	}
	if _, err := q.TxSearch(gone, "tx.height>0", false, nil, nil, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("transactions, for nobody: %v", err)
	}
	s := newTxService(client.Context{}.WithClient(q), &turns{App: &app.App{App: &runtime.App{}}})
	if _, err := s.GetTxsEvent(gone, &txtypes.GetTxsEventRequest{Query: "tx.height>0"}); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("transactions by gRPC, for nobody: %v", err)
	}
}
