package consensus

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cosmos/gogoproto/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	grpctypes "github.com/cosmos/cosmos-sdk/types/grpc"
)

// oneState has a query answered from the state of one block. named is the height that it names, 0 if none. ask is given the
// height to ask at if it names none, 0 for the newest.
//
// IAVL keeps the newest state twice: as a tree, and as a list of keys. While a block is stored the list has it already, and
// the tree does not. Who iterates then reads some of both. So a query that a block overlaps is asked once more, at the height
// before the newest: that is read from the tree alone, as every older one is.
func (t *turns) oneState(ctx context.Context, named int64, ask func(height int64)) {
	t.storing.RLock()
	before, newest := t.stored.Load(), t.LastBlockHeight()
	t.storing.RUnlock()
	if ask(0); t.stored.Load() == before || named > 0 && named < newest || ctx.Err() != nil {
		return
	}
	t.storing.RLock() // waits until the block is stored
	last := t.LastBlockHeight() - 1
	t.storing.RUnlock()
	ask(max(last, 0))
}

// isQuery reports whether a method of gRPC, or a path of abci_query, only reads the state. Others may send or try transactions.
func isQuery(method string) bool {
	return strings.Contains(method, ".Query/") || strings.HasPrefix(strings.TrimPrefix(method, "/"), "store/")
}

// Query implements abci.Application.
func (t *turns) Query(ctx context.Context, req *abci.RequestQuery) (r *abci.ResponseQuery, err error) {
	ask := func(height int64) {
		asked := *req
		asked.Height = cmp.Or(req.Height, height)
		r, err = t.App.Query(ctx, &asked)
	}
	if isQuery(req.Path) {
		t.oneState(ctx, req.Height, ask)
	} else {
		ask(t.LastBlockHeight()) // it is asked once, and unless it names a height, it fails while a block is being stored
	}
	return r, err
}

// oneStateHandler returns a handler of gRPC whose queries are answered from the state of one block.
func (t *turns) oneStateHandler(handle grpc.MethodHandler, method string) grpc.MethodHandler {
	if t == nil {
		return handle
	}
	if !isQuery(method) {
		return func(srv any, ctx context.Context, read func(any) error, i grpc.UnaryServerInterceptor) (any, error) {
			return handle(srv, at(ctx, t.LastBlockHeight()), read, i) // as for Query
		}
	}
	return func(srv any, ctx context.Context, read func(any) error, i grpc.UnaryServerInterceptor) (out any, err error) {
		var text []byte // the request, which can be read once
		var unread error
		asked := false
		var headers *lastHeaders
		t.oneState(ctx, heightOf(ctx), func(height int64) {
			headers = &lastHeaders{ServerTransportStream: grpc.ServerTransportStreamFromContext(ctx)}
			out, err = handle(srv, grpc.NewContextWithServerTransportStream(at(ctx, height), headers), func(req any) error {
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
		if headers.ServerTransportStream == nil {
			return out, err
		}
		return out, cmp.Or(err, headers.send())
	}
}

// lastHeaders holds back an answer's headers. A query that is asked twice has two sets, and only the last is sent.
type lastHeaders struct {
	grpc.ServerTransportStream
	held metadata.MD
}

// SetHeader implements grpc.ServerTransportStream.
func (h *lastHeaders) SetHeader(md metadata.MD) error {
	h.held = metadata.Join(h.held, md)
	return nil
}

// SendHeader implements grpc.ServerTransportStream.
func (h *lastHeaders) SendHeader(md metadata.MD) error { return h.SetHeader(md) }

func (h *lastHeaders) send() error { return h.ServerTransportStream.SetHeader(h.held) }

// at returns the context of a query at a height, unless that is 0 or the query names one.
func at(ctx context.Context, height int64) context.Context {
	if height == 0 || heightOf(ctx) != 0 {
		return ctx
	}
	md, _ := metadata.FromIncomingContext(ctx)
	md = md.Copy()
	md.Set(grpctypes.GRPCBlockHeightHeader, strconv.FormatInt(height, 10))
	return metadata.NewIncomingContext(ctx, md)
}

// heightOf returns the height that a query names, 0 if none, below 0 if that is no height. As in the Cosmos SDK, two heights
// name none.
func heightOf(ctx context.Context) int64 {
	md, _ := metadata.FromIncomingContext(ctx)
	named := md.Get(grpctypes.GRPCBlockHeightHeader)
	if len(named) != 1 {
		return 0
	}
	height, err := strconv.ParseInt(named[0], 10, 64)
	if err != nil {
		return -1
	}
	return height
}
