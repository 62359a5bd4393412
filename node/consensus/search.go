package consensus

import (
	"context"
	"errors"

	cmtdb "github.com/cometbft/cometbft-db"
	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cometbft/cometbft/libs/log"
	cmtquery "github.com/cometbft/cometbft/libs/pubsub/query"
	"github.com/cometbft/cometbft/rpc/core"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	rpctypes "github.com/cometbft/cometbft/rpc/jsonrpc/types"
	"github.com/cometbft/cometbft/state"
	"github.com/cometbft/cometbft/state/indexer"
	blocks "github.com/cometbft/cometbft/state/indexer/block/kv"
	"github.com/cometbft/cometbft/state/txindex"
	txs "github.com/cometbft/cometbft/state/txindex/kv"
	"github.com/cometbft/cometbft/types"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/client"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	authtx "github.com/cosmos/cosmos-sdk/x/auth/tx"
)

// Limits on one search. CometBFT reads all that is found before it makes a page.
const (
	maxKeys  = 200_000  // of the index
	maxFound = 32 << 20 // bytes of transactions, and of the blocks of a page
)

var (
	errWide  = errors.New("the search finds too much: ask for a rarer event, or for one height with AND tx.height=N")
	errLarge = errors.New("the blocks of this page are too large together: ask for fewer at a time, with per_page or limit")
)

// boundSearches bounds what searches read of db, the index of transactions and blocks.
func boundSearches(env *core.Environment, db cmtdb.DB) {
	env.TxIndexer = txSearch{env.TxIndexer, db}
	env.BlockIndexer = blockSearch{env.BlockIndexer, db}
}

type txSearch struct {
	txindex.TxIndexer
	db cmtdb.DB
}

// Search implements txindex.TxIndexer.
func (s txSearch) Search(ctx context.Context, q *cmtquery.Query) ([]*abci.TxResult, error) {
	return within(ctx, s.db, func(ctx context.Context, db cmtdb.DB) ([]*abci.TxResult, error) {
		i := txs.NewTxIndex(db)
		i.SetLogger(log.NewNopLogger())
		return i.Search(ctx, q)
	})
}

type blockSearch struct {
	indexer.BlockIndexer
	db cmtdb.DB
}

// Search implements indexer.BlockIndexer.
func (s blockSearch) Search(ctx context.Context, q *cmtquery.Query) ([]int64, error) {
	return within(ctx, s.db, func(ctx context.Context, db cmtdb.DB) ([]int64, error) {
		i := blocks.New(cmtdb.NewPrefixDB(db, []byte("block_events"))) // as CometBFT has it
		i.SetLogger(log.NewNopLogger())
		return i.Search(ctx, q)
	})
}

// within searches db, and returns errWide if that reads too much.
func within[T any](ctx context.Context, db cmtdb.DB, search func(context.Context, cmtdb.DB) ([]T, error)) ([]T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out, err := search(ctx, &metered{DB: db, keys: maxKeys, bytes: maxFound, cancel: cancel})
	if cut := context.Cause(ctx); cut != nil {
		return nil, cut
	}
	return out, err
}

// metered is a database that ends a search when it has read enough. Searches then
// return what they have.
type metered struct {
	cmtdb.DB
	keys, bytes int // that may still be read
	cancel      context.CancelCauseFunc
}

// Get implements cmtdb.DB.
func (m *metered) Get(key []byte) ([]byte, error) {
	v, err := m.DB.Get(key)
	if m.bytes -= len(v); m.bytes < 0 {
		m.cancel(errWide)
	}
	return v, err
}

// Iterator implements cmtdb.DB.
func (m *metered) Iterator(start, end []byte) (cmtdb.Iterator, error) {
	i, err := m.DB.Iterator(start, end)
	return &meteredIterator{i, m}, err
}

type meteredIterator struct {
	cmtdb.Iterator
	of *metered
}

// Valid implements cmtdb.Iterator.
func (i *meteredIterator) Valid() bool { return i.of.keys >= 0 && i.Iterator.Valid() }

// Next implements cmtdb.Iterator.
func (i *meteredIterator) Next() {
	if i.of.keys--; i.of.keys < 0 {
		i.of.cancel(errWide)
	}
	i.Iterator.Next()
}

// searchBlocks is env.BlockSearch, but for the bytes of the blocks of a page.
func searchBlocks(env *core.Environment, ctx *rpctypes.Context, query string, page, perPage *int, orderBy string) (*coretypes.ResultBlockSearch, error) {
	store, bounded := &meteredBlocks{BlockStore: env.BlockStore, bytes: maxFound}, *env
	bounded.BlockStore = store
	r, err := bounded.BlockSearch(ctx, query, page, perPage, orderBy)
	if store.bytes < 0 {
		return nil, errLarge
	}
	return r, err
}

// txService is the SDK's service of transactions, but for searches: they end when the
// caller does.
type txService struct {
	txtypes.ServiceServer
	during func(context.Context) txtypes.ServiceServer
}

func newTxService(c client.Context, a *turns) txService {
	during := func(ctx context.Context) txtypes.ServiceServer {
		return authtx.NewTxServer(c.WithCmdContext(ctx), a.Simulate, a.Registry)
	}
	return txService{during(context.Background()), during}
}

// GetTxsEvent implements txtypes.ServiceServer.
func (s txService) GetTxsEvent(ctx context.Context, req *txtypes.GetTxsEventRequest) (*txtypes.GetTxsEventResponse, error) {
	return s.during(ctx).GetTxsEvent(ctx, req)
}

// errAmino is the answer to methods of amino's transactions. The chain has none, and their
// decoder has no bound on how deep keys are nested.
var errAmino = status.Error(codes.Unimplemented, "this chain has no transactions in amino: use TxDecode and TxEncode")

// TxDecodeAmino implements txtypes.ServiceServer.
func (txService) TxDecodeAmino(context.Context, *txtypes.TxDecodeAminoRequest) (*txtypes.TxDecodeAminoResponse, error) {
	return nil, errAmino
}

// TxEncodeAmino implements txtypes.ServiceServer.
func (txService) TxEncodeAmino(context.Context, *txtypes.TxEncodeAminoRequest) (*txtypes.TxEncodeAminoResponse, error) {
	return nil, errAmino
}

// meteredBlocks gives so many bytes of blocks.
type meteredBlocks struct {
	state.BlockStore
	bytes int // that may still be read
}

// take reports whether the block at a height may be read, too.
func (m *meteredBlocks) take(height int64) bool {
	if meta := m.LoadBlockMeta(height); meta != nil {
		m.bytes -= meta.BlockSize
	}
	return m.bytes >= 0
}

// LoadBlock implements state.BlockStore.
func (m *meteredBlocks) LoadBlock(height int64) *types.Block {
	if !m.take(height) {
		return nil
	}
	return m.BlockStore.LoadBlock(height)
}
