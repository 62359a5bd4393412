package seats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	abci "github.com/cometbft/cometbft/abci/types"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmttypes "github.com/cometbft/cometbft/types"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/vrf"
	powermodule "github.com/tally-network/tally/chain/x/power"
	"github.com/tally-network/tally/core/power"
	"github.com/tally-network/tally/core/reserve"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// DefaultGenesis has no members, so a chain needs a genesis of its own.
func DefaultGenesis() *seatsv1.GenesisState { return &seatsv1.GenesisState{Params: DefaultParams()} }

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *seatsv1.GenesisState) error {
	err := errors.Join(CheckParams(g.Params), module.CheckAuthority(g.Authority), checkMembers(g.Members))
	if err != nil {
		return fmt.Errorf("seats genesis: %w", err)
	}
	seen := map[string]bool{}
	for _, d := range g.Delegations {
		_, e1 := address.Parse(d.Account)
		var e2 error
		if d.Member != "" { // else it counts for nobody, and may move later
			_, e2 = address.Parse(d.Member)
		}
		if err := errors.Join(e1, e2); err != nil {
			return fmt.Errorf("seats genesis: delegation of %s: %w", d.Account, err)
		}
		if seen[d.Account] {
			return fmt.Errorf("seats genesis: the power of %s counts twice", d.Account)
		}
		seen[d.Account] = true
	}
	if err := checkShared(g); err != nil {
		return fmt.Errorf("seats genesis: %w", err)
	}
	left := coin.MaxSupply - g.UnclaimedRewards
	for i := range g.Members {
		if g.Members[i].Bond > left {
			return errors.New("seats genesis: bonds and shares of rewards are more than may exist")
		}
		left -= g.Members[i].Bond
	}
	for i, u := range g.Unbonding {
		if _, err := address.Parse(u.Account); err != nil {
			return fmt.Errorf("seats genesis: bond %d that waits to come back: %w", i, err)
		}
		if u.Amount == 0 || u.UntilMs < 0 {
			return fmt.Errorf("seats genesis: a bond of %d utally waits until %d", u.Amount, u.UntilMs)
		}
		if u.Amount > left {
			return fmt.Errorf("seats genesis: bonds that wait to come back: with those of members they are more than may exist")
		}
		left -= u.Amount
	}
	return nil
}

// checkShared checks what rewards are those of who delegates.
func checkShared(g *seatsv1.GenesisState) error {
	if g.UnclaimedRewards > coin.MaxSupply {
		return fmt.Errorf("%d utally are shared, more than may exist", g.UnclaimedRewards)
	}
	seen := map[string]bool{}
	for _, x := range g.CumulativeRewards {
		if seen["income of "+x.Member] {
			return fmt.Errorf("%s has two incomes", x.Member)
		}
		seen["income of "+x.Member] = true
		_, e1 := address.Parse(x.Member)
		_, e2 := reserve.StreamOf(x.PerPower, x.Shift)
		if err := errors.Join(e1, e2); err != nil {
			return fmt.Errorf("income of %s: %w", x.Member, err)
		}
	}
	owed := uint64(0)
	for _, x := range g.Rewards {
		if seen[x.Account] {
			return fmt.Errorf("%s has two rewards", x.Account)
		}
		seen[x.Account] = true
		_, e1 := address.Parse(x.Account)
		_, e2 := reserve.MarkOf(x.PerPower, x.Shift)
		if err := errors.Join(e1, e2); err != nil || x.Due > g.UnclaimedRewards-owed {
			return errors.Join(fmt.Errorf("rewards of %s: %d utally, and %d of %d are those of others", x.Account, x.Due, owed, g.UnclaimedRewards), err)
		}
		owed += x.Due
	}
	return nil
}

// maxTime bounds times of a genesis in milliseconds: sums of two do not overflow.
const maxTime = math.MaxInt64 / 4

func checkMembers(members []seatsv1.Member) error {
	votes, bonds, seen := int64(0), uint64(0), map[string]bool{}
	for i, m := range members {
		switch _, err := address.Parse(m.Account); {
		case err != nil:
			return fmt.Errorf("member %d: %w", i, err)
		case vrf.CheckKey(m.ConsensusKey) != nil:
			return fmt.Errorf("member %s: consensus_key: %w", m.Account, vrf.CheckKey(m.ConsensusKey))
		case m.Votes < 0 || m.Votes > maxTotal-votes:
			return fmt.Errorf("member %s: votes %d: want none below 0, and at most %d in all", m.Account, m.Votes, int64(maxTotal))
		case m.Bond > coin.MaxSupply-bonds:
			return fmt.Errorf("member %s: bonds of more than may exist", m.Account)
		case m.Status < seatsv1.STATUS_ACTIVE || m.Status > seatsv1.STATUS_TOMBSTONED:
			return fmt.Errorf("member %s: status %d", m.Account, m.Status)
		case m.Status >= seatsv1.STATUS_LEFT && m.Bond > 0:
			return fmt.Errorf("member %s: has left or is convicted, and has a bond of %d utally: let it wait to come back", m.Account, m.Bond)
		case m.EarnedBps > bps:
			return fmt.Errorf("member %s: earned_bps %d: want at most %d", m.Account, m.EarnedBps, bps)
		case m.UncoveredMs < 0 || m.UncoveredMs > maxTime:
			return fmt.Errorf("member %s: uncovered_ms %d is no time", m.Account, m.UncoveredMs)
		case len(m.Output) > 0 && len(m.Output) != len(vrf.Output{}):
			return fmt.Errorf("member %s: output has %d bytes, want %d", m.Account, len(m.Output), len(vrf.Output{}))
		case seen[m.Account] || seen[string(m.ConsensusKey)]:
			return fmt.Errorf("member %s: account and consensus_key must be unique", m.Account)
		}
		votes, bonds = votes+m.Votes, bonds+m.Bond
		seen[m.Account], seen[string(m.ConsensusKey)] = true, true
	}
	if votes == 0 {
		return errors.New("nobody has votes: name at least one member that has")
	}
	return nil
}

// InitGenesis stores a state. ValidatorUpdates then tells consensus of the set. Records of power and the beacon are
// there already; the bank's genesis holds the bonds.
func (k *Keeper) InitGenesis(ctx context.Context, g *seatsv1.GenesisState) error {
	if err := k.rules.Init(ctx, g.Params, g.Authority); err != nil {
		return err
	}
	if g.LastDrawEpoch > 0 { // else no epoch soon would have a draw
		if epoch, err := k.epoch(ctx); err != nil || g.LastDrawEpoch > epoch {
			return errors.Join(err, fmt.Errorf("seats genesis: the draw of epoch %d was held, and this is epoch %d", g.LastDrawEpoch, epoch))
		}
	}
	set := seatsv1.Set{Height: max(sdk.UnwrapSDKContext(ctx).BlockHeight(), 1)}
	var comet []*cmttypes.Validator
	t := seatsv1.Totals{Members: uint64(len(g.Members)), UnclaimedRewards: g.UnclaimedRewards, CountedPower: g.CountedPower}
	for _, m := range g.Members {
		account, err := address.Parse(m.Account)
		if err != nil {
			return err
		}
		if err := errors.Join(k.members.Set(ctx, account, m), k.byKey.Set(ctx, consensusAddress(m.ConsensusKey), account)); err != nil {
			return err
		}
		if t.Bonds += m.Bond; m.Votes > 0 {
			set.Seats = append(set.Seats, seatsv1.Seat{Member: m.Account, Votes: uint64(m.Votes)})
			comet = append(comet, cmttypes.NewValidator(cmted25519.PubKey(m.ConsensusKey), m.Votes))
		}
	}
	byMember(set.Seats)
	var err error
	if set.Rotation, err = encode(cmttypes.NewValidatorSet(comet)); err != nil {
		return err
	}
	err = errors.Join(k.sets.Set(ctx, set.Height, set), k.totals.Set(ctx, t), k.drawn.Set(ctx, g.LastDrawEpoch))
	for _, u := range g.Unbonding {
		account, e := address.Parse(u.Account)
		err = errors.Join(err, e, k.unbonding.Hold(ctx, account, u.UntilMs, u.Amount))
	}
	for _, x := range g.CumulativeRewards {
		member, e := address.Parse(x.Member)
		err = errors.Join(err, e, k.shares.incomes.Set(ctx, member, x))
	}
	for _, x := range g.Rewards {
		account, e := address.Parse(x.Account)
		err = errors.Join(err, e, k.shares.of.Set(ctx, account, x))
	}
	err = errors.Join(err, loadDelegations(ctx, k, g.Delegations))
	if err != nil {
		return err
	}
	return checkRewards(ctx, k, g.UnclaimedRewards)
}

// loadDelegations makes power count from the first epoch on.
func loadDelegations(ctx context.Context, k *Keeper, all []seatsv1.Delegation) error {
	sums := map[string]*power.Record{}
	for _, d := range all {
		account, err := address.Parse(d.Account)
		if err != nil {
			return err
		}
		own, err := k.Of(ctx, account)
		if err != nil {
			return err
		}
		if sums[d.Member] == nil {
			sums[d.Member] = &power.Record{}
		}
		if err := errors.Join(sums[d.Member].Join(own), k.delegations.Set(ctx, account, d)); err != nil {
			return err
		}
	}
	for _, d := range all {
		sum := sums[d.Member]
		if sum == nil || d.Member == "" {
			continue
		}
		delete(sums, d.Member)
		to, err := address.Parse(d.Member)
		if err != nil {
			return err
		}
		if err := k.sums.Set(ctx, to, seatsv1.Sum{Dated: []seatsv1.Dated{{Power: powermodule.ToProto("", sum)}}}); err != nil {
			return err
		}
	}
	return nil
}

// ValidatorUpdates returns the whole set as consensus wants it at genesis.
func (k *Keeper) ValidatorUpdates(ctx context.Context) (updates []abci.ValidatorUpdate, err error) {
	err = k.members.Walk(ctx, nil, func(_ sdk.AccAddress, m seatsv1.Member) (bool, error) {
		if m.Votes > 0 {
			updates = append(updates, abci.Ed25519ValidatorUpdate(m.ConsensusKey, m.Votes))
		}
		return false, nil
	})
	return updates, err
}

// ExportGenesis is what another chain goes on from, without the draw under way, and without blocks that were missed: there epochs
// begin anew.
func (k *Keeper) ExportGenesis(ctx context.Context) (g *seatsv1.GenesisState, err error) {
	g = &seatsv1.GenesisState{}
	if g.Params, err = k.rules.Get(ctx); err != nil {
		return nil, err
	}
	if g.Authority, err = k.rules.Authority(ctx); err != nil {
		return nil, err
	}
	if g.LastDrawEpoch, err = k.drawn.Get(ctx); err != nil {
		return nil, err
	}
	t, err := k.totals.Get(ctx)
	if err != nil {
		return nil, err
	}
	g.UnclaimedRewards, g.CountedPower = t.UnclaimedRewards, t.CountedPower
	held, err := k.unbonding.All(ctx)
	for _, x := range held {
		g.Unbonding = append(g.Unbonding, seatsv1.Unbonding{Account: x.Key.K2().String(), UntilMs: x.Key.K1(), Amount: x.Value})
	}
	return g, errors.Join(err,
		k.members.Walk(ctx, nil, func(_ sdk.AccAddress, m seatsv1.Member) (bool, error) {
			m.Missed, m.MissedEpoch, m.MissedBefore = 0, 0, 0
			g.Members = append(g.Members, m)
			return false, nil
		}),
		k.delegations.Walk(ctx, nil, func(_ sdk.AccAddress, d seatsv1.Delegation) (bool, error) {
			g.Delegations = append(g.Delegations, d)
			return false, nil
		}),
		k.shares.incomes.Walk(ctx, nil, func(_ sdk.AccAddress, x seatsv1.CumulativeReward) (bool, error) {
			g.CumulativeRewards = append(g.CumulativeRewards, x)
			return false, nil
		}),
		k.shares.of.Walk(ctx, nil, func(_ sdk.AccAddress, x seatsv1.Rewards) (bool, error) {
			g.Rewards = append(g.Rewards, x)
			return false, nil
		}))
}

// Invariant: members, keys, bonds and power add up, and the set is that of those who have votes.
func (k *Keeper) Invariant(ctx context.Context) error {
	t, set, err := addUp(ctx, k)
	if err != nil {
		return err
	}
	newest, err := k.current(ctx)
	if err != nil {
		return err
	}
	byMember(set)
	if len(set) == 0 || !slices.Equal(set, newest.Seats) {
		return fmt.Errorf("members have the votes %v, and the set is %v", set, newest.Seats)
	}
	had, err := k.totals.Get(ctx)
	if t.UnclaimedRewards, t.CountedPower = had.UnclaimedRewards, had.CountedPower; err != nil || had != t {
		return errors.Join(err, fmt.Errorf("members add up to %v, not %v", t, had))
	}
	held, err := k.unbonding.Check(ctx)
	if err != nil {
		return err
	}
	has := k.GetBalance(ctx, authtypes.NewModuleAddress(Name), coin.Denom).Amount.Uint64()
	if has != t.Bonds+held+t.UnclaimedRewards {
		return fmt.Errorf("bonds are %d utally, %d are unbonding, %d belong to who delegates, and the account holds %d", t.Bonds, held, t.UnclaimedRewards, has)
	}
	return errors.Join(checkSums(ctx, k), checkRewards(ctx, k, t.UnclaimedRewards))
}

// byMember sorts seats as sets have them.
func byMember(seats []seatsv1.Seat) {
	slices.SortFunc(seats, func(a, b seatsv1.Seat) int { return strings.Compare(a.Member, b.Member) })
}

// addUp returns what the members add up to, and who has votes.
func addUp(ctx context.Context, k *Keeper) (t seatsv1.Totals, set []seatsv1.Seat, err error) {
	err = k.members.Walk(ctx, nil, func(a sdk.AccAddress, m seatsv1.Member) (bool, error) {
		t.Members, t.Bonds = t.Members+1, t.Bonds+m.Bond
		if m.Votes > 0 {
			set = append(set, seatsv1.Seat{Member: m.Account, Votes: uint64(m.Votes)})
		}
		owner, err := k.byKey.Get(ctx, consensusAddress(m.ConsensusKey))
		if err == nil && (!a.Equals(sdk.AccAddress(owner)) || m.Account != a.String()) {
			err = fmt.Errorf("the key of %s is that of %s", a, sdk.AccAddress(owner))
		}
		return false, err
	})
	return t, set, err
}

// checkRewards returns an error if more is owed than there is. What rounding has left is nobody's.
func checkRewards(ctx context.Context, k *Keeper, all uint64) error {
	owed, seen := uint64(0), map[string]bool{}
	add := func(account sdk.AccAddress) (bool, error) {
		if seen[string(account)] {
			return false, nil
		}
		seen[string(account)] = true
		due, err := k.Due(ctx, account)
		if owed += due; err == nil && owed > all {
			err = fmt.Errorf("%d utally are owed of %d that are shared", owed, all)
		}
		return err != nil, err
	}
	return errors.Join(
		k.shares.of.Walk(ctx, nil, func(a sdk.AccAddress, _ seatsv1.Rewards) (bool, error) { return add(a) }),
		k.delegations.Walk(ctx, nil, func(a sdk.AccAddress, _ seatsv1.Delegation) (bool, error) { return add(a) }))
}

// checkSums returns an error unless the power of each member is that of its delegations.
func checkSums(ctx context.Context, k *Keeper) error {
	sums := map[string]*power.Record{}
	err := k.delegations.Walk(ctx, nil, func(account sdk.AccAddress, d seatsv1.Delegation) (bool, error) {
		member := d.Member
		own, err := k.Of(ctx, account)
		if err != nil {
			return true, err
		}
		if sums[member] == nil {
			sums[member] = &power.Record{}
		}
		return false, sums[member].Join(own)
	})
	if err != nil {
		return err
	}
	return k.sums.Walk(ctx, nil, func(member sdk.AccAddress, s seatsv1.Sum) (bool, error) {
		want := sums[member.String()]
		if want == nil {
			want = &power.Record{}
		}
		w := powermodule.ToProto("", want)
		if n := len(s.Dated); n == 0 || n > maxDated || s.Dated[n-1].Power.String() != w.String() {
			return true, fmt.Errorf("%s has the power %v, and delegations add up to %v", member, s.Dated, w)
		}
		return false, nil
	})
}
