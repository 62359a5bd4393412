package chaintest

import (
	abci "github.com/cometbft/cometbft/abci/types"
)

// History is what consensus told an application, and what that answered.
type History struct {
	Genesis *abci.RequestInitChain
	Blocks  []Block // from height 1 on
}

// Record keeps all blocks from now on, in the history that it returns. It comes before the test's first block.
func (c *Chain) Record() *History {
	c.t.Helper()
	if c.height != 1 {
		c.t.Fatalf("block %d is made, and blocks before were not kept", c.height)
	}
	c.record = &History{Genesis: c.genesis, Blocks: []Block{c.last}}
	return c.record
}

// At returns the block of a height.
func (h *History) At(height int64) Block { return h.Blocks[height-1] }

// Last returns the height of the last block.
func (h *History) Last() int64 { return int64(len(h.Blocks)) }

// Results returns those of all transactions of a block, with that of the proof.
func (b Block) Results() []*abci.ExecTxResult {
	if b.Proof == nil {
		return b.TxResults
	}
	return append([]*abci.ExecTxResult{b.Proof}, b.TxResults...)
}
