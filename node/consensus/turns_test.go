package consensus_test

import (
	"context"
	"sync"
	"testing"

	txtypes "github.com/cosmos/cosmos-sdk/types/tx"

	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Go's race detector (make race) told of trials that read trees while a block was
// written to them.
func TestTrialsBesideBlocks(t *testing.T) {
	network := newNetwork(t, t.TempDir(), 1)
	network.start(t)
	network.waitHeight(t, 2) // the first may not be committed yet
	n := network.nodes[0]
	trial := transfer(t, n, chaintest.ChainID, bob, alice, 1)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 {
		service := txtypes.NewServiceClient(dial(t, n))
		wg.Go(func() {
			tried := 0
			for ; ctx.Err() == nil; tried++ {
				r, err := service.Simulate(ctx, &txtypes.SimulateRequest{TxBytes: trial})
				if ctx.Err() == nil && (err != nil || r.GasInfo.GasUsed == 0) {
					t.Errorf("trial %d: %v, %v", tried, r, err)
					return
				}
			}
			if tried == 0 {
				t.Error("nothing was tried")
			}
		})
	}
	defer func() { stop(); wg.Wait() }()
	for range 5 {
		res, err := n.Client().BroadcastTxCommit(t.Context(), transfer(t, n, chaintest.ChainID, alice, bob, 1))
		if err != nil || res.TxResult.Code != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
}
