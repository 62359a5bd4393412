package app_test

import (
	"bytes"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/module"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// A pause counts no more than the rules say, and neither idle blocks nor their
// clocks write anything.
func TestPauseCountsUpToTheGap(t *testing.T) {
	const gap = 30 * time.Second
	c := chaintest.New(t, append(network(), chaintest.MaxGap(gap))...)
	for _, x := range []struct{ pause, counts time.Duration }{
		{time.Second, time.Second}, {gap, gap}, {gap + time.Millisecond, gap}, {time.Hour, gap}, {0, 0}, {5 * time.Second, 5 * time.Second},
	} {
		before, last := module.Now(c.Ctx()), c.LastCommitID().Hash
		b := c.NextBlock(x.pause)
		if got := module.Now(c.Ctx()) - before; got != x.counts.Milliseconds() {
			t.Errorf("a pause of %s counts %d ms, want %s", x.pause, got, x.counts)
		}
		if x.pause <= gap && !bytes.Equal(b.AppHash, last) {
			t.Errorf("an idle block after %s changed the app hash", x.pause)
		}
	}
	state, err := c.Export(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	if again := start(t, state, c.Now()); module.Lost(again.NewContext(false)) != module.Lost(c.Ctx()) {
		t.Fatal("an export loses what time does not count")
	}
}

// Time stands still after a block whose room moves have used up, and for nothing else:
// neither for general transactions, nor for moves that fail, nor for limits of gas that
// are not used.
func TestCrowdedBlocksDoNotCount(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
	for _, x := range []struct{ moves, general int }{{0, 7}, {3, 7}, {10, 0}} {
		var txs [][]byte
		for i := range x.moves + x.general {
			m := sdk.Msg(&workv1.MsgReady{Provider: alice.String(), Order: "none"})
			if i >= x.moves {
				m = send(alice, bob, 1)
			}
			txs = append(txs, sign(t, c, app.MaxGas, func(s *app.Signer) { s.Sequence += uint64(i) }, m))
		}
		before := module.Now(c.Ctx())
		c.NextBlockOf(txs...)
		c.NextBlockOf()
		if module.Now(c.Ctx()) != before+2_000 {
			t.Errorf("%d moves that fail and %d others of %d gas stop the clocks", x.moves, x.general, app.MaxGas)
		}
	}
}

// The same for moves that are taken, in blocks of a size that one of them fills by its limit.
func TestMovesCrowdByWhatTheyUse(t *testing.T) {
	for _, x := range []struct {
		room   int64 // gas of a block
		counts bool
	}{{app.MaxGas, true}, {250_000, false}} {
		c := chaintest.New(t, worktest.Network(chaintest.Fund(tally, "v0"))...)
		p := worktest.Begin(t, c, worktest.Order())
		if err := c.Do(func(ctx sdk.Context) error {
			params := c.GetConsensusParams(ctx)
			params.Block.MaxGas = x.room
			return c.StoreConsensusParams(ctx, params)
		}); err != nil {
			t.Fatal(err)
		}
		c.NextBlock(time.Second)
		before := module.Now(c.Ctx())
		if b := c.NextBlockOf(later(t, c, p.Lead(), 250_000, p.AssignMsg(0, "p0"))); b.TxResults[0].Code != 0 {
			t.Fatal(b.TxResults[0].Log)
		}
		if module.Now(c.Ctx()) != before+1_000 {
			t.Fatal("the time before a crowded block is not known to be lost")
		}
		c.NextBlock(time.Second)
		if counts := module.Now(c.Ctx()) > before+1_000; counts != x.counts {
			t.Errorf("a move in a block of %d gas: time counts: %v", x.room, counts)
		}
		c.NextBlock(time.Second)
		if module.Now(c.Ctx()) < before+2_000 {
			t.Error("time stands still after an empty block")
		}
	}
}
