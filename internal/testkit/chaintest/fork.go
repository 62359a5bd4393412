package chaintest

import (
	"maps"

	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"

	"cosmossdk.io/log/v2"

	"github.com/tally-network/tally/chain/app"
)

// Fork exports the state after the last block and begins another chain with it,
// at height 1 and the same time.
func (c *Chain) Fork() *Chain {
	c.t.Helper()
	state, err := c.Export(c.Ctx())
	if err != nil {
		c.t.Fatal(err)
	}
	a, err := app.New(log.NewNopLogger(), dbm.NewMemDB(), ChainID)
	if err != nil {
		c.t.Fatal(err)
	}
	params := c.GetConsensusParams(c.Ctx())
	if _, err := a.InitChain(&abci.RequestInitChain{
		ChainId: ChainID, Time: c.time, InitialHeight: 1, ConsensusParams: &params, AppStateBytes: state,
	}); err != nil {
		c.t.Fatal(err)
	}
	a.ProveWith(producer.VRF)
	fork := &Chain{App: a, t: c.t, time: c.time, proposer: c.proposer, queued: maps.Clone(c.queued)}
	fork.NextBlock(0)
	return fork
}
