package seats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	abci "github.com/cometbft/cometbft/abci/types"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/policy"
	"github.com/tally-network/tally/core/power"
	"github.com/tally-network/tally/core/sortition"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

const (
	// leastQuota is how many members a block goes through at least.
	leastQuota = 16
	// leastMembers is how many a set keeps, if it has as many.
	leastMembers = 4
	// gasVRF is for checking a proof.
	gasVRF = 3_000
)

// draws is what the keeper does to give seats.
type draws struct{ *Keeper }

// EndBlock pays bonds back, and moves the set on.
func (k *Keeper) EndBlock(ctx context.Context) (updates []abci.ValidatorUpdate, err error) {
	if err := k.unbonding.Pay(ctx); err != nil {
		return nil, err
	}
	t, err := k.totals.Get(ctx)
	if err != nil || t.Bonds == 0 { // nobody could have a seat
		return nil, err
	}
	_, fresh, err := k.beacon.Value(ctx)
	if err != nil {
		return nil, err
	}
	err = module.Attempt(ctx, func(ctx context.Context) (err error) {
		if fresh {
			if err := (attendance{k}).notice(ctx); err != nil {
				return err
			}
		}
		updates, err = draws{k}.draw(ctx, fresh)
		return err
	})
	if err != nil { // it stops no block: the set stays
		epoch, e := k.epoch(ctx)
		return nil, errors.Join(e, k.drawn.Set(ctx, epoch), draws{k}.abandon(ctx, epoch, err.Error()))
	}
	return updates, nil
}

// abandon ends the draw of an epoch, and leaves the set as it is.
func (k draws) abandon(ctx context.Context, epoch uint64, reason string) error {
	if err := module.Attempt(ctx, k.wind); err != nil { // it stops no block either
		reason += "; " + err.Error()
	}
	return errors.Join(k.drawing.Remove(ctx), module.Emit(ctx, &seatsv1.EventDrawAbandoned{Epoch: epoch, Reason: reason}))
}

// draw begins the draw of an epoch in its first block with a value, or goes on with the one under way.
func (k draws) draw(ctx context.Context, fresh bool) ([]abci.ValidatorUpdate, error) {
	d, err := k.drawing.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		var begun bool
		if d, begun, err = k.begin(ctx, fresh); err != nil || !begun {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	if sdk.UnwrapSDKContext(ctx).BlockHeight() < d.WalkHeight {
		return nil, k.drawing.Set(ctx, d)
	}
	p, err := k.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	if !d.Weighed {
		if d.Weighed, err = k.walk(ctx, &p, &d); err != nil {
			return nil, err
		}
		if d.Weighed {
			again(&p, &d)
		}
		return nil, k.drawing.Set(ctx, d)
	}
	if err := k.drawing.Remove(ctx); err != nil {
		return nil, err
	}
	if err := k.count(ctx, func(t *seatsv1.Totals) { t.CountedPower = d.CountedPower }); err != nil {
		return nil, err
	}
	if err := k.give(ctx, &p, &d); err != nil {
		return nil, err
	}
	return k.decide(ctx, &p, &d)
}

// again has a draw go through the members once more, if there is more power than in the draw before, which said what a bond stands
// for. Else whoever made its power count for nobody in that one would find the bonds of all others too small in this.
func again(p *seatsv1.Params, d *seatsv1.Draw) {
	if each := d.CountedPower/p.Seats + 1; each > d.PowerPerSeat {
		d.PowerPerSeat, d.Weighed, d.Next = each, false, nil
		d.Best, d.Founders = nil, nil
		d.CountedPower, d.Weight, d.FounderSeats = 0, 0, 0
	}
}

// begin begins the draw of an epoch that had none.
func (k draws) begin(ctx context.Context, fresh bool) (d seatsv1.Draw, begun bool, err error) {
	if !fresh {
		return d, false, nil
	}
	c, err := k.beacon.Calendar(ctx)
	if err != nil {
		return d, false, err
	}
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	epoch := c.At(height)
	if last, err := k.drawn.Get(ctx); err != nil || epoch <= last {
		return d, false, err
	}
	p, err := k.rules.Get(ctx)
	if err != nil {
		return d, false, err
	}
	d = seatsv1.Draw{Epoch: epoch, WalkHeight: height}
	if p.Allocation == Proofs {
		d.WalkHeight += c.Length / 2
		if c.At(d.WalkHeight-1) != epoch { // a member could choose between this epoch's key and the next one's
			return d, false, nil
		}
	}
	value, _, err := k.beacon.Value(ctx)
	if err != nil {
		return d, false, err
	}
	h, err := k.Hour(ctx)
	if err != nil {
		return d, false, err
	}
	d.Value, d.Hour = value[:], uint64(h)
	return d, true, errors.Join(k.measure(ctx, &p, &d, c.Length), k.drawn.Set(ctx, epoch))
}

// measure says how fast a draw goes through the members, and what power a bond stands for.
func (k draws) measure(ctx context.Context, p *seatsv1.Params, d *seatsv1.Draw, length int64) error {
	t, err := k.totals.Get(ctx)
	if err != nil {
		return err
	}
	base, err := k.Base(ctx)
	if err != nil {
		return err
	}
	d.Quota = uint32(leastQuota + t.Members/max(uint64(length)/4, 1)) // going through all of them takes a quarter of an epoch, and twice half of it
	d.PowerPerSeat = max(base, t.CountedPower)/p.Seats + 1            // C' of docs/spec/seats.md: all counted power; backed power alone could only fall
	return nil
}

// walk goes through the next members, and reports whether these were the last.
func (k draws) walk(ctx context.Context, p *seatsv1.Params, d *seatsv1.Draw) (over bool, err error) {
	from := new(collections.Range[sdk.AccAddress])
	if len(d.Next) > 0 {
		from = from.StartInclusive(d.Next)
	}
	var accounts []sdk.AccAddress // reading them from the members' texts would take a third of the time
	var members []seatsv1.Member
	over, d.Next = true, nil
	err = k.members.Walk(ctx, from, func(account sdk.AccAddress, m seatsv1.Member) (bool, error) {
		if len(members) == int(d.Quota) {
			over, d.Next = false, account
			return true, nil
		}
		accounts, members = append(accounts, account), append(members, m)
		return false, nil
	})
	best := sortition.Ranking{Most: most(p), Best: seatsOf(d.Best)}
	for i := range members {
		if err == nil {
			err = k.visit(ctx, p, d, accounts[i], &members[i], &best)
		}
	}
	d.Best = seatsToProto(best.Best)
	return over, err
}

// visit adds up a member's power, and keeps it among those with the most.
func (k draws) visit(ctx context.Context, p *seatsv1.Params, d *seatsv1.Draw, account sdk.AccAddress, m *seatsv1.Member, best *sortition.Ranking) error {
	if err := attendance(k).judge(ctx, m, d.Epoch); err != nil {
		return err
	}
	if !stands(p, d, m) {
		return k.forget(ctx, account, m)
	}
	counted, weight, backed, err := k.weigh(ctx, p, d, account, m)
	if err != nil {
		return err
	}
	founder, all, err := k.Founder(ctx, account)
	if err != nil {
		return err
	}
	if founder > 0 { // it counts by its part of all seats, as far as its bond stands behind that
		founder = min(money.ScaleClamped(p.Seats, founder, all), backed)
		d.Founders = append(d.Founders, seatsv1.Seat{Member: m.Account, Votes: founder})
	}
	d.CountedPower += counted // no overflow: less than all that was ever credited
	d.Weight += weight
	d.FounderSeats += founder
	best.Offer(sortition.Seat{Member: m.Account, Votes: weight})
	return nil
}

// most returns how many members may have seats. Rounding takes less than a seat from each, so it leaves no more than a quarter empty.
func most(p *seatsv1.Params) int { return int(min(uint64(p.MaxMembers), max(p.Seats/4, leastMembers))) }

// weigh returns the power that counts for a member, what of it has a bond behind it, and the seats that the bond stands behind.
// Power without a bond would leave seats empty, and so could keep the set as it is.
func (k draws) weigh(ctx context.Context, p *seatsv1.Params, d *seatsv1.Draw, account sdk.AccAddress, m *seatsv1.Member) (counted, weight, backed uint64, err error) {
	counted, err = k.as(ctx, account, d.Epoch, power.Hour(d.Hour))
	weight, backed = counted, bonded(m, d.Epoch)/p.BondPerSeat
	if worth, err := money.Times(d.PowerPerSeat, int(backed)); err == nil {
		weight = min(weight, worth)
	}
	return counted, weight, backed, err
}

// give gives seats to the members with the most weight, founders with their part of what is missing among them. Power of others
// counts for nobody: else whoever spreads it over enough names would leave seats empty, and keep the set as it is.
func (k draws) give(ctx context.Context, p *seatsv1.Params, d *seatsv1.Draw) error {
	base, err := k.Base(ctx)
	if err != nil {
		return err
	}
	best, granted := sortition.Ranking{Most: most(p), Best: seatsOf(d.Best)}, map[string]uint64{}
	d.Missing = base - min(base, d.Weight)
	for _, f := range d.Founders {
		if f.Votes == 0 {
			continue
		}
		part, err := policy.Share(d.Missing, f.Votes, d.FounderSeats)
		if err != nil {
			return err
		}
		own := best.Take(f.Member)
		if own == 0 { // it is not among the best by what it has without
			if own, err = k.own(ctx, p, d, f.Member); err != nil {
				return err
			}
		}
		best.Offer(sortition.Seat{Member: f.Member, Votes: own + part})
		granted[f.Member] = part
	}
	d.Weight = 0
	if d.FounderSeats == 0 { // nobody has what is missing, and nobody shall
		d.Weight = d.Missing
	}
	for _, s := range best.Best {
		d.Weight += s.Votes // no overflow: the base, or less than all that was ever credited
	}
	if p.Allocation == Share { // crumbs of power would leave seats empty
		for last := len(best.Best) - 1; last >= 0 && money.ScaleClamped(p.Seats, best.Best[last].Votes, d.Weight) == 0; last-- {
			d.Weight -= best.Best[last].Votes
			best.Best = best.Best[:last]
		}
	}
	d.Best = nil
	for _, s := range best.Best {
		m, err := k.byName(ctx, s.Member)
		if err != nil {
			return err
		}
		if !stands(p, d, &m) { // it has left, was convicted or took its bond back since it was weighed
			continue
		}
		by := s.Votes - granted[s.Member]
		if earned := uint32(money.ScaleClamped(bps, by, s.Votes)); earned != m.EarnedBps || by != m.EarnedPower || d.Hour != m.EarnedHour {
			m.EarnedBps, m.EarnedPower, m.EarnedHour = earned, by, d.Hour
			if err := k.put(ctx, m); err != nil {
				return err
			}
		}
		votes, err := won(p, d, &m, s.Votes)
		if err != nil {
			return err
		}
		if votes > 0 {
			d.Best = append(d.Best, seatsv1.Seat{Member: s.Member, Votes: votes})
		}
	}
	return nil
}

// own returns what counts for a founder without its part of what is missing.
func (k draws) own(ctx context.Context, p *seatsv1.Params, d *seatsv1.Draw, name string) (uint64, error) {
	m, err := k.byName(ctx, name)
	if err != nil {
		return 0, err
	}
	account, err := address.Parse(name)
	if err != nil {
		return 0, err
	}
	_, weight, _, err := k.weigh(ctx, p, d, account, &m)
	return weight, err
}

// stands reports whether a member may have seats of a draw.
func stands(p *seatsv1.Params, d *seatsv1.Draw, m *seatsv1.Member) bool {
	return m.Status == seatsv1.STATUS_ACTIVE && m.FromEpoch <= d.Epoch && bonded(m, d.Epoch) >= p.BondPerSeat && (p.Allocation != Proofs || m.OutputEpoch == d.Epoch)
}

// won returns the seats of a member by its weight: at most as many as its bond stands behind.
func won(p *seatsv1.Params, d *seatsv1.Draw, m *seatsv1.Member, weight uint64) (uint64, error) {
	lottery := sortition.Lottery{Seats: p.Seats, Weight: d.Weight}
	if err := lottery.Check(); err != nil {
		return 0, err
	}
	var seats uint64
	switch p.Allocation {
	case Share:
		seats = lottery.Share(weight)
	default:
		value, err := canon.HashOf(d.Value)
		if err != nil {
			return 0, err
		}
		// The account tells members apart that prove with the same key.
		subject := canon.Encode(func(e *canon.Encoder) {
			e.String(m.Account)
			if p.Allocation == Proofs {
				e.Blob(m.Output)
			}
		})
		seats = lottery.Won(weight, beacon.Draw(value, beacon.Seats, subject))
	}
	return min(seats, bonded(m, d.Epoch)/p.BondPerSeat), nil
}

// decide moves the set towards what a draw has given.
func (k draws) decide(ctx context.Context, p *seatsv1.Params, d *seatsv1.Draw) ([]abci.ValidatorUpdate, error) {
	set, err := k.current(ctx)
	if err != nil {
		return nil, err
	}
	from := seatsOf(set.Seats)
	if reason := lacking(p, d, len(from)); reason != "" {
		stay, err := k.standing(ctx, d.Epoch, from)
		if err != nil || len(stay) == len(from) || len(stay) < min(leastMembers, len(from)) {
			return nil, errors.Join(err, k.abandon(ctx, d.Epoch, reason))
		}
		return k.seat(ctx, d, from, scaled{sortition.Step(from, stay), stay, set.Scale}, reason)
	}
	target := seatsOf(d.Best)
	slices.SortFunc(target, func(a, b sortition.Seat) int { return strings.Compare(a.Member, b.Member) }) // as sets are
	return k.seat(ctx, d, from, scaled{sortition.Step(from, target), target, p.Seats}, "")
}

// lacking says why a draw is not what the set moves to, if it is not.
func lacking(p *seatsv1.Params, d *seatsv1.Draw, members int) string {
	taken := uint64(0)
	for _, s := range d.Best {
		taken += s.Votes
	}
	switch least := min(leastMembers, members); {
	case taken < p.Seats-p.Seats/4:
		return fmt.Sprintf("%d of %d seats would be taken: bonds are too small, members are jailed, or power is below three quarters of the base and no founder is eligible", taken, p.Seats)
	case len(d.Best) < least:
		return fmt.Sprintf("%d members would have seats: want at least %d", len(d.Best), least)
	}
	return ""
}

// standing returns those of a set who take part in a draw, with the votes that they have: whoever has left, is jailed or tombstoned
// loses its votes even where a draw lacks seats, and whoever has come back since waits for a draw that counts it.
func (k draws) standing(ctx context.Context, epoch uint64, set []sortition.Seat) (out []sortition.Seat, err error) {
	for _, s := range set {
		m, err := k.byName(ctx, s.Member)
		if err != nil {
			return nil, err
		}
		if m.Status == seatsv1.STATUS_ACTIVE && m.FromEpoch <= epoch {
			out = append(out, s)
		}
	}
	return out, nil
}

func seatsOf(list []seatsv1.Seat) []sortition.Seat {
	out := make([]sortition.Seat, len(list))
	for i, s := range list {
		out[i] = sortition.Seat{Member: s.Member, Votes: s.Votes}
	}
	return out
}

func seatsToProto(list []sortition.Seat) []seatsv1.Seat {
	out := make([]seatsv1.Seat, len(list))
	for i, s := range list {
		out[i] = seatsv1.Seat{Member: s.Member, Votes: s.Votes}
	}
	return out
}
