package p2p

import (
	"context"

	"github.com/ipfs/go-cid"
)

// Blocks are the blocks that a host can serve, verified. A *store.Store is one.
type Blocks interface {
	Block(ctx context.Context, c cid.Cid) ([]byte, error)
}
