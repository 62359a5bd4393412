package client

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// restart is how long a node that has answered once may be away: it starts again.
const restart = time.Minute

// patient asks again, for so long, while a node does not answer that has answered before. All that
// is asked over gRPC only reads.
func patient(most time.Duration) grpc.UnaryClientInterceptor {
	var answered atomic.Bool
	return func(ctx context.Context, method string, req, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		for begun := time.Now(); ; {
			err := invoke(ctx, method, req, reply, c, o...)
			if status.Code(err) != codes.Unavailable {
				answered.Store(true)
			}
			if !away(err) || !answered.Load() || time.Since(begun) > most {
				return err
			}
			select {
			case <-ctx.Done():
				return err
			case <-time.After(retryAfter):
			}
		}
	}
}

// starting is what the SDK answers between a node's start and its first block: it has no state yet.
const starting = "context did not contain latest block height"

// away reports whether an error says that a node does not answer now.
func away(err error) bool {
	return status.Code(err) == codes.Unavailable || err != nil && strings.Contains(err.Error(), starting)
}
