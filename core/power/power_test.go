package power

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/money"
)

// growthOf[k] is the greatest g with g^168 ≤ 2^(k + 32·168).
func TestGrowth(t *testing.T) {
	power := func(g uint64) *big.Int {
		return new(big.Int).Exp(new(big.Int).SetUint64(g), big.NewInt(HalfLife), nil)
	}
	for k, g := range growthOf {
		limit := new(big.Int).Lsh(big.NewInt(1), uint(k+32*HalfLife))
		if power(g).Cmp(limit) > 0 || power(g+1).Cmp(limit) <= 0 {
			t.Errorf("growth of hour %d is %#x", k, g)
		}
	}
}

func TestPowerHalvesInAWeek(t *testing.T) {
	var r Record
	if err := r.Training.Credit(1_000_000, 5); err != nil {
		t.Fatal(err)
	}
	for hours, want := range map[Hour]uint64{0: 600_000, 1: 597_529, 84: 424_263, 168: 300_000, 2 * 168: 150_000, 20 * 168: 0, 1 << 20: 0} {
		if got := r.Effective(5 + hours); got != want {
			t.Errorf("%d hours later %d millionths of a ut count, want %d", hours, got, want)
		}
	}
	if r.Training.Total() != 1_000_000 {
		t.Errorf("the total is %d", r.Training.Total())
	}
	if err := r.Drilling.Credit(1_000_000, 173); err != nil {
		t.Fatal(err)
	}
	if got := r.Effective(173); got != 700_000 {
		t.Errorf("with drilling %d, want 0.4 of it more", got)
	}
}

// Whoever is credited, when, and in what order: records add up to that of all, what counts never grows by
// itself, and nobody gains by splitting an account.
func TestRecordsAddUp(t *testing.T) {
	type credit struct {
		who   int
		micro uint64
		at    Hour
	}
	rapid.Check(t, func(t *rapid.T) {
		credits := rapid.SliceOf(rapid.Custom(func(t *rapid.T) credit {
			return credit{rapid.IntRange(0, 3).Draw(t, "who"), rapid.Uint64Range(0, 1<<58).Draw(t, "micro"), Hour(rapid.IntRange(0, 5000).Draw(t, "at"))}
		})).Draw(t, "credits")
		var all, again Record
		var each [4]Record
		for _, c := range credits {
			if errors.Join(all.Training.Credit(c.micro, c.at), each[c.who].Training.Credit(c.micro, c.at)) != nil {
				t.Skip("full")
			}
		}
		for _, c := range slices.Backward(credits) {
			if err := again.Training.Credit(c.micro, c.at); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(all.Training.Grown(), again.Training.Grown()) {
			t.Fatal("it matters in what order work is counted")
		}
		before := uint64(math.MaxUint64)
		for _, h := range []Hour{5000, 5001, 5167, 5168, 5169, 9000, maxHour} {
			sum := uint64(0)
			for i := range each {
				sum += each[i].Training.Effective(h)
			}
			now := all.Training.Effective(h)
			if now > before || sum > now || now-sum >= uint64(len(each)) {
				t.Fatalf("at hour %d %d count, of all accounts %d, before %d", h, now, sum, before)
			}
			before = now
		}
		for i := range each {
			if err := each[i].Forfeit(&all); err != nil {
				t.Fatal(err)
			}
			if each[i].Effective(5000) != 0 {
				t.Fatal("what was forfeit counts")
			}
		}
		if len(all.Training.Grown()) != 0 {
			t.Fatal("all have forfeit, and something is left")
		}
	})
}

func TestForfeitOfWhatIsNotThere(t *testing.T) {
	var own, all Record
	if err := own.Training.Credit(1, 0); err != nil {
		t.Fatal(err)
	}
	if err := own.Forfeit(&all); err == nil {
		t.Error("an account had more than all")
	}
}

func TestThird(t *testing.T) {
	var all Record
	if err := all.Training.Credit(1_000_000, 0); err != nil {
		t.Fatal(err)
	}
	third, err := all.Third(0)
	if err != nil {
		t.Fatal(err)
	}
	var taker Record
	if err := errors.Join(taker.Training.Credit(third, 0), all.Training.Credit(third, 0)); err != nil {
		t.Fatal(err)
	}
	if own, of := taker.Effective(0), all.Effective(0); 3*own < of || 3*(own-1) > of {
		t.Errorf("with %d of training somebody has %d of %d", third, own, of)
	}
	full := Record{Training: Work{total: math.MaxUint64}, Drilling: Work{total: math.MaxUint64}}
	full.Training.grown.Mul(new(big.Int).SetUint64(math.MaxUint64), growth(0))
	full.Drilling.grown.Set(&full.Training.grown)
	if _, err := full.Third(0); err != nil && !errors.Is(err, money.ErrOverflow) {
		t.Error(err)
	}
	if err := full.Training.Credit(1, 0); !errors.Is(err, money.ErrOverflow) {
		t.Errorf("a full record took more: %v", err)
	}
}

func TestHourAt(t *testing.T) {
	const origin = 1_764_000_000_000
	for now, want := range map[int64]Hour{origin: 0, origin + 3_599_999: 0, origin + 3_600_000: 1, origin + 3_600_000*int64(maxHour): maxHour} {
		if got, err := HourAt(now, origin); err != nil || got != want {
			t.Errorf("%d ms after the origin is hour %d, %v; want %d", now-origin, got, err, want)
		}
	}
	for _, now := range []int64{origin - 1, 0, origin + 3_600_000*int64(maxHour+1), math.MinInt64, math.MaxInt64} {
		if h, err := HourAt(now, origin); !errors.Is(err, ErrTime) {
			t.Errorf("%d is hour %d, %v", now, h, err)
		}
	}
}

// What is written is read again, and nothing else is taken.
func FuzzWorkOf(f *testing.F) {
	f.Add(uint64(1), []byte{1, 0, 0, 0, 0}, int64(0))
	f.Add(uint64(0), []byte{0}, int64(168))
	f.Fuzz(func(t *testing.T, total uint64, grown []byte, hour int64) {
		h := Hour(uint64(hour) % uint64(maxHour))
		w, err := WorkOf(total, grown)
		if err != nil {
			return
		}
		sound := w.Check(h) == nil
		if w.Total() != total || !bytes.Equal(w.Grown(), grown) || w.Effective(h) > total || sound && w.Check(h+1) != nil {
			t.Errorf("%d with %x was read as %d with %x, of which %d count", total, grown, w.Total(), w.Grown(), w.Effective(h))
		}
	})
}
