package block_test

import (
	"math"
	"testing"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/x/block"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

func TestFeeIsRoundedUp(t *testing.T) {
	for _, x := range []struct{ price, gas, want uint64 }{
		{100, 0, 0}, {100, 1, 1}, {100, 10_000, 1}, {100, 10_001, 2}, {100, coin.GasUnit, 100},
		{math.MaxUint64, math.MaxUint64, coin.MaxSupply}, // more than anybody has
	} {
		if got := coin.Fee(x.price, x.gas); got != x.want {
			t.Errorf("%d gas at %d cost %d utally, want %d", x.gas, x.price, got, x.want)
		}
	}
}

// Rules under which blocks are free, or a chain stands still, are refused.
func TestRulesOfBlocks(t *testing.T) {
	fine := block.DefaultGenesis().Params
	if err := block.CheckParams(fine); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*blockv1.Params){
		"free gas":       func(p *blockv1.Params) { p.GasPrice = 0 },
		"gas too dear":   func(p *blockv1.Params) { p.GasPrice = coin.MaxSupply },
		"clocks stand":   func(p *blockv1.Params) { p.MaxGapMs = 999 },
		"clocks go back": func(p *blockv1.Params) { p.MaxGapMs = -1 },
	} {
		p := fine
		if bend(&p); block.CheckParams(p) == nil {
			t.Errorf("%s: %+v were taken", name, p)
		}
	}
}

// The authority replaces the rules, and nobody else.
func TestRulesOfBlocksAreReplaced(t *testing.T) {
	alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
	c := chaintest.New(t, chaintest.Fund(1_000_000, alice.Name, bob.Name), chaintest.Authority(bob.Name))
	m := &blockv1.MsgUpdateParams{Authority: bob.String(), Params: block.DefaultGenesis().Params}
	m.Params.GasPrice++
	c.Deliver(bob, m)
	if p, err := c.Block.Params(c.Ctx()); err != nil || p != m.Params {
		t.Fatalf("%+v, %v", p, err)
	}
	stranger := *m
	stranger.Authority = alice.String()
	c.Refuse(module.ErrAuthority, alice, &stranger)
}
