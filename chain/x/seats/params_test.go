package seats_test

import (
	"math"
	"testing"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/x/seats"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

const day = 24 * 3_600_000 // ms

// A genesis may set what a vote may not: rules of tests. Neither may set what cannot be followed.
func TestRulesHaveBounds(t *testing.T) {
	for _, x := range []struct {
		name          string
		bend          func(*seatsv1.Params)
		genesis, vote bool
	}{
		{"as they are", func(*seatsv1.Params) {}, true, true},
		{"no seats", func(p *seatsv1.Params) { p.Seats = 0 }, false, false},
		{"a seat", func(p *seatsv1.Params) { p.Seats = 1 }, true, false},
		{"a game of chance", func(p *seatsv1.Params) { p.Seats = 999 }, true, false},
		{"few seats", func(p *seatsv1.Params) { p.Seats = 1_000 }, true, true},
		{"most seats", func(p *seatsv1.Params) { p.Seats = 1 << 16 }, true, true},
		{"more seats", func(p *seatsv1.Params) { p.Seats = 1<<16 + 1 }, false, false},
		{"lots", func(p *seatsv1.Params) { p.Allocation = seats.Lots }, true, true},
		{"proofs", func(p *seatsv1.Params) { p.Allocation = seats.Proofs }, true, true},
		{"favour", func(p *seatsv1.Params) { p.Allocation = "favour" }, false, false},
		{"no way", func(p *seatsv1.Params) { p.Allocation = "" }, false, false},
		{"no bond", func(p *seatsv1.Params) { p.BondPerSeat = 0 }, false, false},
		{"a utally", func(p *seatsv1.Params) { p.BondPerSeat = 1 }, true, true},
		{"a million tally", func(p *seatsv1.Params) { p.Seats, p.BondPerSeat = 1_000, 1_000_000*tally }, true, true},
		{"more than that", func(p *seatsv1.Params) { p.Seats, p.BondPerSeat = 1_000, 1_000_000*tally+1 }, true, false},
		{"more than exists", func(p *seatsv1.Params) { p.BondPerSeat = coin.MaxSupply/p.Seats + 1 }, false, false},
		{"nobody", func(p *seatsv1.Params) { p.MaxMembers = 0 }, false, false},
		{"three", func(p *seatsv1.Params) { p.MaxMembers = 3 }, true, false},
		{"four", func(p *seatsv1.Params) { p.MaxMembers = 4 }, true, true},
		{"a crowd", func(p *seatsv1.Params) { p.MaxMembers = 101 }, false, false},
		{"bonds back at once", func(p *seatsv1.Params) { p.UnbondingMs = 0 }, false, false},
		{"bonds back before time", func(p *seatsv1.Params) { p.UnbondingMs = -1 }, false, false},
		{"bonds back soon", func(p *seatsv1.Params) { p.UnbondingMs = 21*day - 1 }, true, false},
		{"bonds back after three weeks", func(p *seatsv1.Params) { p.UnbondingMs = 21 * day }, true, true},
		{"bonds back never", func(p *seatsv1.Params) { p.UnbondingMs = math.MaxInt64 }, false, false},
		{"a block missed", func(p *seatsv1.Params) { p.MaxMissedBps = 0 }, true, false},
		{"a tenth missed", func(p *seatsv1.Params) { p.MaxMissedBps = 1_000 }, true, true},
		{"all missed", func(p *seatsv1.Params) { p.MaxMissedBps = 10_000 }, true, true},
		{"more missed than all", func(p *seatsv1.Params) { p.MaxMissedBps = 10_001 }, false, false},
		{"nothing slashed", func(p *seatsv1.Params) { p.SlashBps = 0 }, true, false},
		{"all slashed", func(p *seatsv1.Params) { p.SlashBps = 10_000 }, true, true},
		{"more slashed than all", func(p *seatsv1.Params) { p.SlashBps = 10_001 }, false, false},
	} {
		p := seats.DefaultParams()
		x.bend(&p)
		if err := seats.CheckParams(p); (err == nil) != x.genesis {
			t.Errorf("%s, at genesis: %v", x.name, err)
		}
		if err := seats.MayReplace(seats.DefaultParams(), p); (err == nil) != x.vote {
			t.Errorf("%s, by vote: %v", x.name, err)
		}
		if x.genesis && seats.MayReplace(p, p) != nil {
			t.Errorf("%s: a vote that changes nothing of it is refused", x.name)
		}
	}
}

// The authority replaces rules, and nobody else.
func TestAuthorityReplacesRules(t *testing.T) {
	c := chaintest.New(t, network(chaintest.Fund(tally, "senate"), chaintest.Authority("senate"))...)
	senate, alice := chaintest.Named("senate"), chaintest.Named("alice")
	p := seats.DefaultParams()
	p.MaxMembers = 50
	c.Refuse(module.ErrAuthority, alice, &seatsv1.MsgUpdateParams{Authority: alice.String(), Params: p})
	c.Refuse(module.ErrRules, senate, &seatsv1.MsgUpdateParams{Authority: senate.String()})
	c.Deliver(senate, &seatsv1.MsgUpdateParams{Authority: senate.String(), Params: p})
	got, err := seatsv1.NewQueryClient(c).Params(t.Context(), &seatsv1.QueryParamsRequest{})
	if err != nil || got.Params != p || got.Authority != senate.String() {
		t.Errorf("%v (%v)", got, err)
	}
}

// With all of a bond slashed nothing waits to come back.
func TestWholeBondsAreSlashed(t *testing.T) {
	c, f1 := chaintest.New(t, network(rules(func(p *seatsv1.Params) { p.SlashBps = 10_000 }))...), chaintest.Named("f1")
	c.Deliver(f1, &seatsv1.MsgUnbond{Account: f1.String(), Amount: 33 * tally})
	before := insured(c)
	accuse(c, 1, consensus(t, c, f1))
	busy(c)
	if m := member(t, c, f1); m.Unbonding != 0 || m.Member.Bond != 0 || insured(c)-before != 100_000*tally {
		t.Errorf("%v; the insurance has %d", m, insured(c)-before)
	}
}
