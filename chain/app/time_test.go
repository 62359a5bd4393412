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
	if again := start(t, state); module.Lost(again.NewContext(false)) != module.Lost(c.Ctx()) {
		t.Fatal("an export loses what time does not count")
	}
}

// A block in which moves may have found no room stops the clocks; one in which
// general transactions alone are many does not.
func TestCrowdedBlocksDoNotCount(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
	move := &workv1.MsgReady{Provider: alice.String(), Order: "none"}
	for _, x := range []struct {
		moves, general int
		counts         bool
	}{{0, 0, true}, {0, 7, true}, {2, 7, true}, {3, 7, false}, {10, 0, false}, {9, 0, true}} {
		var txs [][]byte
		for i := range x.moves + x.general {
			m := sdk.Msg(move)
			if i >= x.moves {
				m = send(alice, bob, 1)
			}
			txs = append(txs, sign(t, c, app.MaxGas, func(s *app.Signer) { s.Sequence += uint64(i) }, m))
		}
		before := module.Now(c.Ctx())
		c.NextBlockOf(txs...)
		if counts := module.Now(c.Ctx()) > before; counts != x.counts {
			t.Errorf("%d moves and %d others of %d gas: time counts: %v", x.moves, x.general, app.MaxGas, counts)
		}
	}
}
