package seats

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/sortition"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// How seats are given.
const (
	Share  = "share"  // to each its share of power
	Lots   = "lots"   // by lots that follow from the beacon
	Proofs = "proofs" // by lots that each member's own VRF gives, and which it shows
)

const (
	tally = 1_000_000      // utally of a tally
	day   = 24 * 3_600_000 // ms
	bps   = money.Bps
)

// Bounds of what a vote may set.
const (
	minSeats, maxSeats         = 1_000, sortition.MaxSeats // with fewer, lots may give a minority a third (docs/spec/seats.md)
	minBond, maxBond           = 1, 1_000_000_000_000
	minMembers, maxMembers     = 4, 100
	minUnbonding, maxUnbonding = 21 * day, 90 * day
	minMissed                  = 1_000
)

// DefaultParams are the rules that docs/spec/rules.md gives reasons for.
func DefaultParams() seatsv1.Params {
	return seatsv1.Params{
		Seats: 10_000, Allocation: Share, BondPerSeat: 10 * tally, MaxMembers: maxMembers, UnbondingMs: 21 * day, MaxMissedBps: 5_000, SlashBps: 5_000, CommissionBps: 1_000, RedelegateMs: day,
	}
}

// CheckParams returns an error that shows what is wrong with rules.
func CheckParams(p seatsv1.Params) error {
	switch {
	case p.Seats < 1 || p.Seats > maxSeats:
		return fmt.Errorf("seats = %d: want between 1 and %d", p.Seats, maxSeats)
	case !slices.Contains([]string{Share, Lots, Proofs}, p.Allocation):
		return fmt.Errorf("allocation = %q: want %q, %q or %q", p.Allocation, Share, Lots, Proofs)
	case p.BondPerSeat < 1 || p.BondPerSeat > coin.MaxSupply/p.Seats:
		return fmt.Errorf("bond = %d utally a seat: want at least 1, and at most what may exist for all %d seats", p.BondPerSeat, p.Seats)
	case p.MaxMembers < 1 || p.MaxMembers > maxMembers:
		return fmt.Errorf("most = %d: want between 1 and %d", p.MaxMembers, maxMembers)
	case p.UnbondingMs < 1 || p.UnbondingMs > maxUnbonding:
		return fmt.Errorf("unbonding_ms = %d: want between 1 and %d", p.UnbondingMs, int64(maxUnbonding))
	case p.RedelegateMs < 0 || p.RedelegateMs > maxUnbonding:
		return fmt.Errorf("redelegate_ms = %d: want between 0 and %d", p.RedelegateMs, int64(maxUnbonding))
	case p.MaxMissedBps > bps || p.SlashBps > bps || p.CommissionBps > bps:
		return fmt.Errorf("max_missed_bps = %d, slash_bps = %d and commission_bps = %d: want at most %d", p.MaxMissedBps, p.SlashBps, p.CommissionBps, bps)
	}
	return nil
}

// mayReplace returns an error unless rules may take the place of others.
func mayReplace(old, p seatsv1.Params) error {
	if err := CheckParams(p); err != nil {
		return err
	}
	return module.Within(
		module.Bound{Name: "seats", Old: old.Seats, New: p.Seats, Least: minSeats, Most: maxSeats},
		module.Bound{Name: "bond_per_seat", Old: old.BondPerSeat, New: p.BondPerSeat, Least: minBond, Most: maxBond},
		module.Bound{Name: "max_members", Old: uint64(old.MaxMembers), New: uint64(p.MaxMembers), Least: minMembers, Most: maxMembers},
		module.Signed("unbonding_ms", old.UnbondingMs, p.UnbondingMs, minUnbonding, maxUnbonding),
		module.Signed("redelegate_ms", old.RedelegateMs, p.RedelegateMs, day, 30*day),
		module.Bound{Name: "max_missed_bps", Old: uint64(old.MaxMissedBps), New: uint64(p.MaxMissedBps), Least: minMissed, Most: bps},
		module.Bound{Name: "slash_bps", Old: uint64(old.SlashBps), New: uint64(p.SlashBps), Least: 100, Most: bps},
		module.Bound{Name: "commission_bps", Old: uint64(old.CommissionBps), New: uint64(p.CommissionBps), Least: 0, Most: 5_000},
	)
}
