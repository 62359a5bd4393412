package chaintest

import (
	"context"
	"fmt"

	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cosmos/gogoproto/proto"
	"google.golang.org/grpc"
)

// Invoke and NewStream make a chain the connection of a query client:
//
//	providerv1.NewQueryClient(c).Peer(ctx, …)
//
// The query reads the state after the last block.
func (c *Chain) Invoke(_ context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	handle := c.GRPCQueryRouter().Route(method)
	if handle == nil {
		return fmt.Errorf("no query service answers %s", method)
	}
	data, err := proto.Marshal(args.(proto.Message))
	if err != nil {
		return err
	}
	res, err := handle(c.Ctx(), &abci.RequestQuery{Path: method, Data: data})
	if err != nil {
		return err
	}
	return proto.Unmarshal(res.Value, reply.(proto.Message))
}

// NewStream fails: queries do not stream.
func (c *Chain) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, fmt.Errorf("queries do not stream")
}
