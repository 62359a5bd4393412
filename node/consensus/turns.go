package consensus

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cosmos/gogoproto/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	sdk "github.com/cosmos/cosmos-sdk/types"
	grpctypes "github.com/cosmos/cosmos-sdk/types/grpc"

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
	stored  atomic.Uint64 // blocks that were begun to be stored
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

// whole has a query answered from the state of one block. ask is given the height to ask at if the query names none, 0 for the
// newest. What is no query is asked once.
//
// IAVL keeps the newest state twice: as a tree, and as a list of keys. While a block is stored the list has it already, and
// the tree does not. Who iterates then reads some of both. So a query that a block overlaps is asked once more, at the height
// before the newest: that is read from the tree alone.
func (t *turns) whole(query bool, ask func(height int64)) {
	if !query {
		ask(0)
		return
	}
	t.storing.RLock()
	before := t.stored.Load()
	t.storing.RUnlock()
	if ask(0); t.stored.Load() == before {
		return
	}
	t.storing.RLock() // waits until the block is stored
	last := t.LastBlockHeight() - 1
	t.storing.RUnlock()
	ask(max(last, 0))
}

// reads reports whether a method of gRPC, or a path of abci_query, only reads the state. Others may send or try transactions.
func reads(method string) bool {
	return strings.Contains(method, ".Query/") || strings.HasPrefix(method, "/store/")
}

// wholly returns a handler of gRPC which does as whole.
func (t *turns) wholly(handle grpc.MethodHandler, method string) grpc.MethodHandler {
	if !reads(method) || t == nil {
		return handle
	}
	return func(srv any, ctx context.Context, read func(any) error, i grpc.UnaryServerInterceptor) (out any, err error) {
		var text []byte // the request, which can be read once
		var unread error
		asked := false
		t.whole(true, func(height int64) {
			out, err = handle(srv, at(ctx, height), func(req any) error {
				if !asked {
					asked = true
					if unread = read(req); unread == nil {
						text, unread = proto.Marshal(req.(proto.Message))
					}
					return unread
				}
				return cmp.Or(unread, proto.Unmarshal(text, req.(proto.Message)))
			}, i)
		})
		return out, err
	}
}

// at returns the context of a query at a height, unless that is 0 or the query names one.
func at(ctx context.Context, height int64) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	if height == 0 || len(md.Get(grpctypes.GRPCBlockHeightHeader)) > 0 {
		return ctx
	}
	md = md.Copy()
	md.Set(grpctypes.GRPCBlockHeightHeader, strconv.FormatInt(height, 10))
	return metadata.NewIncomingContext(ctx, md)
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
