package seats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	abci "github.com/cometbft/cometbft/abci/types"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
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
		return nil, errors.Join(e, k.drawn.Set(ctx, epoch), draws{k}.keep(ctx, epoch, err.Error()))
	}
	return updates, nil
}

// keep ends the draw of an epoch, and leaves the set as it is.
func (k draws) keep(ctx context.Context, epoch uint64, reason string) error {
	if err := module.Attempt(ctx, k.wind); err != nil { // it stops no block either
		reason += "; " + err.Error()
	}
	return errors.Join(k.drawing.Remove(ctx), module.Emit(ctx, &seatsv1.EventKept{Epoch: epoch, Reason: reason}))
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
	if sdk.UnwrapSDKContext(ctx).BlockHeight() < d.Opens {
		return nil, k.drawing.Set(ctx, d)
	}
	p, err := k.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	over, err := k.walk(ctx, &p, &d)
	if err != nil || !over {
		return nil, errors.Join(err, k.drawing.Set(ctx, d))
	}
	if !d.Summed {
		base, err := k.Base(ctx)
		if err != nil {
			return nil, err
		}
		d.Summed, d.Next = true, nil
		d.Missing = base - min(base, d.Weight)
		d.Weight += d.Missing // no overflow: the base, or what it was
		return nil, k.drawing.Set(ctx, d)
	}
	if err := k.drawing.Remove(ctx); err != nil {
		return nil, err
	}
	return k.decide(ctx, &p, &d)
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
	d = seatsv1.Draw{Epoch: epoch, Opens: height}
	if p.Giving == Proofs {
		d.Opens += c.Length / 2
		if c.At(d.Opens-1) != epoch { // a member could choose between this epoch's key and the next one's
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
	set, err := k.current(ctx)
	if err != nil {
		return err
	}
	d.Quota = uint32(leastQuota + t.Members/max(uint64(length)/4, 1)) // both times through all of them take half of an epoch
	d.Unit = max(base, set.Weight)/p.Seats + 1
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
	best := sortition.Ranking{Most: int(p.Most), Best: seatsOf(d.Best)}
	for i := range members {
		if err == nil {
			err = k.visit(ctx, p, d, accounts[i], &members[i], &best)
		}
	}
	d.Best = seatsToProto(best.Best)
	return over, err
}

// visit adds up a member's power, or gives it its seats.
func (k draws) visit(ctx context.Context, p *seatsv1.Params, d *seatsv1.Draw, account sdk.AccAddress, m *seatsv1.Member, best *sortition.Ranking) error {
	if !d.Summed {
		if err := attendance(k).judge(ctx, m, d.Epoch); err != nil {
			return err
		}
	}
	if !stands(p, d, m) {
		if d.Summed {
			return k.forget(ctx, account, m)
		}
		return nil
	}
	weight, err := k.as(ctx, account, d.Epoch, power.Hour(d.Hour))
	if err != nil {
		return err
	}
	// Power without a bond would leave seats empty, and so could keep the set as it is.
	backed := bonded(m, d.Epoch) / p.Bond
	if worth, err := money.Times(d.Unit, int(backed)); err == nil {
		weight = min(weight, worth)
	}
	if p.Giving == Share && weight < d.Unit { // it would have no seat: crumbs of power would leave seats empty
		weight = 0
	}
	founder, all, err := k.Founder(ctx, account)
	if err != nil {
		return err
	}
	if founder > 0 { // it counts by its part of all seats, as far as its bond stands behind that
		founder = min(money.ScaleClamped(p.Seats, founder, all), backed)
	}
	if !d.Summed {
		d.Weight += weight // no overflow: less than all that was ever credited
		d.Founders += founder
		return nil
	}
	if founder > 0 && founder <= d.Founders {
		share, err := policy.Share(d.Missing, founder, d.Founders)
		if err != nil {
			return err
		}
		weight += share
	}
	seats, err := give(p, d, m, weight)
	if err != nil {
		return err
	}
	best.Offer(sortition.Seat{Member: m.Account, Votes: seats})
	return nil
}

// stands reports whether a member may have seats of a draw.
func stands(p *seatsv1.Params, d *seatsv1.Draw, m *seatsv1.Member) bool {
	return m.Status == seatsv1.STATUS_PRESENT && m.From <= d.Epoch && bonded(m, d.Epoch) >= p.Bond && (p.Giving != Proofs || m.OutputIn == d.Epoch)
}

// give returns the seats of a member by its weight: at most as many as its bond stands behind.
func give(p *seatsv1.Params, d *seatsv1.Draw, m *seatsv1.Member, weight uint64) (uint64, error) {
	lottery := sortition.Lottery{Seats: p.Seats, Weight: d.Weight}
	if err := lottery.Check(); err != nil {
		return 0, err
	}
	var seats uint64
	switch p.Giving {
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
			if p.Giving == Proofs {
				e.Blob(m.Output)
			}
		})
		seats = lottery.Won(weight, beacon.Draw(value, beacon.Seats, subject))
	}
	return min(seats, bonded(m, d.Epoch)/p.Bond), nil
}

// decide moves the set towards what a draw has given.
func (k draws) decide(ctx context.Context, p *seatsv1.Params, d *seatsv1.Draw) ([]abci.ValidatorUpdate, error) {
	set, err := k.current(ctx)
	if err != nil {
		return nil, err
	}
	if err := k.review(ctx, p, d); err != nil {
		return nil, err
	}
	from := seatsOf(set.Seats)
	if reason := lacking(p, d, len(from)); reason != "" {
		stay, err := k.standing(ctx, from)
		if err != nil || len(stay) == len(from) || len(stay) < min(leastMembers, len(from)) {
			return nil, errors.Join(err, k.keep(ctx, d.Epoch, reason))
		}
		return k.seat(ctx, d, from, sortition.Step(from, stay))
	}
	target := seatsOf(d.Best)
	slices.SortFunc(target, func(a, b sortition.Seat) int { return strings.Compare(a.Member, b.Member) }) // as sets are
	return k.seat(ctx, d, from, sortition.Step(from, target))
}

// lacking says why a draw is not what the set moves to, if it is not.
func lacking(p *seatsv1.Params, d *seatsv1.Draw, members int) string {
	taken := uint64(0)
	for _, s := range d.Best {
		taken += s.Votes
	}
	switch least := min(leastMembers, members); {
	case taken < p.Seats-p.Seats/4:
		return fmt.Sprintf("%d of %d seats would be taken: bonds are too small, power is spread too thin and should be delegated, or members are away", taken, p.Seats)
	case len(d.Best) < least:
		return fmt.Sprintf("%d members would have seats: want at least %d", len(d.Best), least)
	}
	return ""
}

// standing returns those of a set who take part, with the votes that they have: whoever has left, is away or convicted
// loses its votes even where a draw lacks seats.
func (k draws) standing(ctx context.Context, set []sortition.Seat) (out []sortition.Seat, err error) {
	for _, s := range set {
		m, err := k.byName(ctx, s.Member)
		if err != nil {
			return nil, err
		}
		if m.Status == seatsv1.STATUS_PRESENT {
			out = append(out, s)
		}
	}
	return out, nil
}

// review takes seats from those who have left, were convicted or took bond back since they were given seats.
func (k draws) review(ctx context.Context, p *seatsv1.Params, d *seatsv1.Draw) error {
	had := d.Best
	d.Best = nil
	for _, s := range had {
		m, err := k.byName(ctx, s.Member)
		if err != nil {
			return err
		}
		votes := uint64(0)
		if stands(p, d, &m) {
			votes = min(s.Votes, bonded(&m, d.Epoch)/p.Bond)
		}
		if votes > 0 {
			d.Best = append(d.Best, seatsv1.Seat{Member: s.Member, Votes: votes})
		}
	}
	return nil
}

// Prove takes the output of a member's VRF for the draw under way.
func (k *Keeper) Prove(ctx context.Context, account sdk.AccAddress, epoch uint64, proof []byte) error {
	d, err := k.drawing.Get(ctx)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	p, e := k.rules.Get(ctx)
	if e != nil {
		return e
	}
	if err != nil || d.Epoch != epoch || p.Giving != Proofs || sdk.UnwrapSDKContext(ctx).BlockHeight() >= d.Opens {
		return errorsmod.Wrapf(ErrDraw, "none waits for proofs in epoch %d", epoch)
	}
	m, err := k.Get(ctx, account)
	if err != nil {
		return err
	}
	if m.OutputIn == epoch || m.From > epoch || m.Status != seatsv1.STATUS_PRESENT {
		return errorsmod.Wrapf(ErrDraw, "%s has proved in it, or is not drawn", account)
	}
	key, err := k.beacon.Key(ctx, account)
	if err != nil {
		return errorsmod.Wrap(ErrDraw, err.Error())
	}
	module.Charge(ctx, gasVRF, "vrf")
	output, err := vrf.Verify(key, wire.SeatInput(d.Value, epoch), proof)
	if err != nil {
		return errorsmod.Wrap(ErrDraw, err.Error())
	}
	m.Output, m.OutputIn = output[:], epoch
	return k.put(ctx, m)
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
