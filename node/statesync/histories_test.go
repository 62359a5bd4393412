package statesync

import (
	"fmt"
	"math/rand/v2"
	"testing"

	sm "github.com/cometbft/cometbft/state"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/histories"
)

// A node that begins at a snapshot of a random history, wherever it was taken, has the same app hash at every height after it.
func TestHistoriesAfterASnapshot(t *testing.T) {
	first, n := histories.Seeds(t)
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := histories.Write(t, seed)
			at := 1 + rand.New(rand.NewPCG(seed, 0x5a9)).Int64N(h.Last()-1)
			from := h.Begun(t)
			from.Until(at)
			r, told := node(t)
			r.open = func(db dbm.DB) (*app.App, error) { return h.Open(db, at-1) } // the version that made the block
			if got := r.restored(t, takeOf(t, from.App)); got != accept {
				t.Fatal(got, *told)
			}
			if err := r.finish(&sm.State{ChainID: chaintest.ChainID, LastBlockTime: h.At(at).Time}); err != nil {
				t.Fatal(err)
			}
			if err := r.shut(); err != nil {
				t.Fatal(err)
			}
			db, err := dbm.NewGoLevelDB(applicationDB, r.dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			on := h.Opened(t, db, at)
			on.Until(h.Last())
			if err := on.Close(); err != nil {
				t.Fatal(err)
			}
			t.Logf("seed %d: %d blocks after a snapshot at height %d", seed, h.Last()-at, at)
		})
	}
}
