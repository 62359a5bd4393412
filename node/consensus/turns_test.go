package consensus_test

import (
	"errors"
	"testing"
	"time"

	txtypes "github.com/cosmos/cosmos-sdk/types/tx"

	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// The SDK's Simulate reads the trees into which a block is written, as Go's race detector
// told.
func TestTrialsAndBlocksTakeTurns(t *testing.T) {
	network := newNetwork(t, t.TempDir(), 1)
	network.start(t)
	network.waitHeight(t, 2) // the first may not be committed yet
	n := network.nodes[0]
	service, trial := txtypes.NewServiceClient(dial(t, n)), transfer(t, n, chaintest.ChainID, bob, alice, 1)
	try := func() error {
		r, err := service.Simulate(t.Context(), &txtypes.SimulateRequest{TxBytes: trial})
		if err == nil && r.GasInfo.GasUsed == 0 {
			err = errors.New("it used no gas")
		}
		return err
	}
	if err := try(); err != nil {
		t.Fatal(err)
	}
	end := n.BeginBlock()
	done := make(chan error, 1)
	go func() { done <- try() }()
	select {
	case err := <-done:
		t.Errorf("a trial beside a block: %v", err)
		done <- nil
	case <-time.After(200 * time.Millisecond):
	}
	height := n.Height()
	end()
	if err := <-done; err != nil {
		t.Errorf("after the block: %v", err)
	}
	network.waitHeight(t, height+2)
}
