// Package power counts computing power: what an account has computed and the chain has verified. Power
// halves in a week, so that it says who computes now.
//
// Begin with [Record], which is of one account or of all together. [Work.Credit] adds to it, and
// [Record.Effective] tells its power at an [Hour].
//
// A sum of work is held as if it grew, so that nothing has to be done when time passes:
//
//	grown        = Σ work · growth(hour of the work)
//	effective(t) = ⌊grown / growth(t)⌋            growth(t) = ⌊2³²·2^(t mod 168 / 168)⌋ · 2^⌊t/168⌋
//
// Invariants: grown is exact, so records add up to the record of all together, to the last bit, in
// whatever order and whenever they are touched. Power never grows by itself.
//
// Source: docs/spec/power.md.
package power

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/tally-network/tally/core/money"
)

// UT is the computation that earns one unit of computing power, in FLOP, and MicroUT that for a millionth.
const (
	UT      = 1_000_000 * MicroUT
	MicroUT = 432_000
)

// HalfLife is how many hours it takes until half of the power is left: a week.
const HalfLife = 168

// What drilling and training weigh in effective power, in tenths.
const (
	drillingWeight = 4
	trainingWeight = 6
)

// Hour counts whole hours of protocol time since a chain began.
type Hour int64

// maxHour is after some 240 years. A sum then has 1.6 KB.
const maxHour = Hour(1 << 21)

// ErrTime is returned for an hour that is before the chain's first or too far behind it.
var ErrTime = errors.New("no hour of this chain")

// HourAt returns the hour of a protocol time, of a chain whose first hour begins at origin; both in ms.
func HourAt(now, origin int64) (Hour, error) {
	const ms = 3_600_000
	if h := Hour((now - origin) / ms); now >= origin && h <= maxHour {
		return h, nil
	}
	return 0, fmt.Errorf("%w: %d ms after it began", ErrTime, now-origin)
}

// growth returns 2³²·2^(h/168), rounded in one way for all.
func growth(h Hour) *big.Int {
	g := new(big.Int).SetUint64(growthOf[h%HalfLife])
	return g.Lsh(g, uint(h/HalfLife))
}

// Work is verified computation of one kind, in millionths of a ut. The zero value is none.
type Work struct {
	total uint64
	grown big.Int
}

// Total returns all that was ever counted. Nothing takes it away.
func (w *Work) Total() uint64 { return w.total }

// Grown returns the sum that effective power follows from: a whole number, its bytes from the highest.
func (w *Work) Grown() []byte { return w.grown.Bytes() }

// maxGrown is how many bytes a sum may have: 64 bits of work, 33 of growth, and one for each week.
const maxGrown = (64 + 33 + int(maxHour)/HalfLife + 7) / 8

// WorkOf returns work by its total and the bytes of its sum.
func WorkOf(total uint64, grown []byte) (w Work, err error) {
	if len(grown) > maxGrown || len(grown) > 0 && grown[0] == 0 {
		return w, fmt.Errorf("a sum of %d bytes: want at most %d, of which the first is not 0", len(grown), maxGrown)
	}
	w.total = total
	w.grown.SetBytes(grown)
	return w, nil
}

// Check returns an error if more counts at an hour than was ever computed.
func (w *Work) Check(h Hour) error {
	if most := new(big.Int).Mul(new(big.Int).SetUint64(w.total), growth(h)); w.grown.Cmp(most) > 0 {
		return fmt.Errorf("more counts at hour %d than the %d millionths of a ut in all", h, w.total)
	}
	return nil
}

// Effective returns what of it counts at an hour, which is not before that of its last credit.
func (w *Work) Effective(h Hour) uint64 {
	if now := new(big.Int).Quo(&w.grown, growth(h)); now.IsUint64() {
		return min(now.Uint64(), w.total)
	}
	return w.total // Check refuses it
}

// Credit adds micro millionths of a ut that were verified at an hour.
func (w *Work) Credit(micro uint64, h Hour) (err error) {
	if w.total, err = money.Sum(w.total, micro); err != nil {
		return fmt.Errorf("the record is full: %w", err)
	}
	w.grown.Add(&w.grown, new(big.Int).Mul(new(big.Int).SetUint64(micro), growth(h)))
	return nil
}

// Record is the work of an account, or of all accounts together.
type Record struct {
	Drilling, Training Work
}

// Effective returns computing power at an hour, in millionths of a ut: 0.4 of what drilling and 0.6 of what
// training counts, rounded down.
func (r *Record) Effective(h Hour) uint64 {
	return tenths(r.Drilling.Effective(h), drillingWeight) + tenths(r.Training.Effective(h), trainingWeight)
}

func tenths(x, n uint64) uint64 { return x/10*n + x%10*n/10 }

// Grown returns ten times the number of which Effective is a part at each hour: shares of power follow from it, at any
// time.
func (r *Record) Grown() *big.Int {
	d := new(big.Int).Mul(&r.Drilling.grown, big.NewInt(drillingWeight))
	return d.Add(d, new(big.Int).Mul(&r.Training.grown, big.NewInt(trainingWeight)))
}

// Total returns all that was ever counted, of both kinds, or the most that can be told.
func (r *Record) Total() uint64 {
	sum, err := money.Sum(r.Drilling.total, r.Training.total)
	if err != nil {
		return math.MaxUint64
	}
	return sum
}

// Join adds the work of another record: together they count for as much as before.
func (r *Record) Join(other *Record) error {
	for _, x := range []struct{ own, other *Work }{{&r.Drilling, &other.Drilling}, {&r.Training, &other.Training}} {
		total, err := money.Sum(x.own.total, x.other.total)
		if err != nil {
			return fmt.Errorf("the record is full: %w", err)
		}
		x.own.total = total
		x.own.grown.Add(&x.own.grown, &x.other.grown)
	}
	return nil
}

// Part takes the work of another record out again: what is left counts for as much as without it.
func (r *Record) Part(other *Record) error {
	for _, x := range []struct{ own, other *Work }{{&r.Drilling, &other.Drilling}, {&r.Training, &other.Training}} {
		if x.own.total < x.other.total || x.own.grown.Cmp(&x.other.grown) < 0 {
			return errors.New("more work leaves than there is")
		}
		x.own.total -= x.other.total
		x.own.grown.Sub(&x.own.grown, &x.other.grown)
	}
	return nil
}

// Copy returns a record that does not change with this one.
func (r *Record) Copy() *Record {
	out := &Record{}
	_ = out.Join(r) // of nothing: it fits
	return out
}

// Forfeit takes the effective power of an account away, from its record and from that of all together.
func (r *Record) Forfeit(all *Record) error {
	for _, x := range []struct{ own, all *Work }{{&r.Drilling, &all.Drilling}, {&r.Training, &all.Training}} {
		if x.all.grown.Sub(&x.all.grown, &x.own.grown); x.all.grown.Sign() < 0 {
			return errors.New("an account has more power than all together")
		}
		x.own.grown.SetUint64(0)
	}
	return nil
}

// Third returns how much training somebody who has no power must be credited with at an hour, to have a
// third of what all have then: in millionths of a ut, rounded up.
func (r *Record) Third(h Hour) (uint64, error) {
	all := r.Effective(h)
	return money.Scale(all/2+all%2, 10, trainingWeight)
}
