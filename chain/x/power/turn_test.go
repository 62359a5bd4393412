package power_test

import (
	"fmt"
	"testing"

	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/chain/x/power"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Turns are those that CometBFT gives: one after another, for powers of every kind, and again
// from the beginning.
func TestTurnsAreCometBFTs(t *testing.T) {
	for _, powers := range [][]int64{{1}, {1, 1, 1, 1}, {10, 10, 20}, {3, 4, 5, 7, 1}, {1, 100}, {6, 9, 15, 30}} {
		g := &powerv1.GenesisState{}
		var all []*cmttypes.Validator
		names := map[string]string{}
		for i, p := range powers {
			v := chaintest.Named(fmt.Sprint("v", i))
			g.Validators = append(g.Validators, powerv1.Validator{Account: v.String(), ConsensusKey: v.PeerKey(), Power: p})
			all = append(all, cmttypes.NewValidator(cmted25519.PubKey(v.PeerKey()), p))
			names[string(cmted25519.PubKey(v.PeerKey()).Address())] = v.String()
		}
		ctx, svc, cdc := chaintest.Store(t)
		k := power.NewKeeper(cdc, svc)
		if err := k.InitGenesis(ctx, g); err != nil {
			t.Fatal(err)
		}
		comet := cmttypes.NewValidatorSet(all)
		for after := range int64(300) {
			got, err := k.Turns(ctx, after, 3)
			if err != nil || len(got) != 3 {
				t.Fatalf("powers %v, from turn %d: %v (%v)", powers, after, got, err)
			}
			for i, next := 0, comet.Copy(); i < 3; i++ {
				if want := names[string(next.GetProposer().Address)]; got[i].String() != want {
					t.Fatalf("powers %v, turn %d: %s, want %s", powers, after+int64(i), got[i], want)
				}
				next.IncrementProposerPriority(1)
			}
			comet.IncrementProposerPriority(1)
		}
	}
}

// What would take too long to find out is not known, instead of stopping blocks.
func TestTurnsAreBounded(t *testing.T) {
	ctx, svc, cdc := chaintest.Store(t)
	k := power.NewKeeper(cdc, svc)
	g := set()
	g.Validators[0].Power, g.Validators[1].Power = 1<<50, 1<<50+1
	if err := k.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	if who, err := k.Turns(ctx, 1<<40, 1); who != nil || err != nil {
		t.Fatal(who, err)
	}
	if who, err := k.Turns(ctx, 1<<10, 1); len(who) != 1 || err != nil {
		t.Fatal(who, err)
	}
}
