package consensus_test

import (
	"context"
	"testing"

	txtypes "github.com/cosmos/cosmos-sdk/types/tx"

	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Of four validators one has lost its key: the others make the blocks with transactions, each of
// which begins with its proposer's proof, as any client reads it. Idle blocks have none.
func TestBlocksBeginWithTheirProofs(t *testing.T) {
	net := newNetwork(t, t.TempDir(), 4)
	net.configs[3].Provers = nil
	net.start(t)
	net.waitHeight(t, 2)
	proposers := map[string]bool{}
	for range 6 {
		tx := transfer(t, net.nodes[1], chaintest.ChainID, alice, bob, 1)
		res, err := net.nodes[1].Client().BroadcastTxCommit(context.Background(), tx)
		if err != nil || res.TxResult.Code != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		net.waitHeight(t, res.Height+1)
		b, err := txtypes.NewServiceClient(dial(t, net.nodes[0])).GetBlockWithTxs(context.Background(), &txtypes.GetBlockWithTxsRequest{Height: res.Height})
		if err != nil || len(b.Txs) != 2 {
			t.Fatalf("block %d: %d transactions, %v", res.Height, len(b.Txs), err)
		}
		var m beaconv1.MsgProve
		if err := m.Unmarshal(b.Txs[0].Body.Messages[0].Value); err != nil || b.Txs[0].Body.Messages[0].TypeUrl != "/tally.beacon.v1.MsgProve" {
			t.Fatalf("block %d begins with %v, %v", res.Height, b.Txs[0].Body.Messages[0].TypeUrl, err)
		}
		proposers[m.Account] = true
	}
	if proposers[chaintest.Named("v3").String()] {
		t.Fatal("who has no key proved a value")
	}
	last := net.nodes[0].Height()
	net.waitHeight(t, last+4)
	for h := last + 1; h < last+4; h++ {
		if b, err := net.nodes[0].Client().Block(context.Background(), &h); err != nil || len(b.Block.Txs) != 0 {
			t.Fatalf("idle block %d has transactions: %v", h, err)
		}
	}
	if r, err := beaconv1.NewQueryClient(dial(t, net.nodes[2])).Value(context.Background(), &beaconv1.QueryValueRequest{}); err != nil || r.State.Height == 0 {
		t.Fatalf("the last value: %v, %v", r, err)
	}
}
