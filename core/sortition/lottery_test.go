package sortition

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
)

func lots(i uint64) beacon.Lots { return binary.LittleEndian.AppendUint64(nil, i) }

func TestLotteryCheck(t *testing.T) {
	for _, x := range []struct {
		Lottery
		ok bool
	}{
		{Lottery{1, 2}, true}, {Lottery{MaxSeats, 2 * MaxSeats}, true}, {Lottery{1000, math.MaxUint64}, true},
		{Lottery{}, false}, {Lottery{0, 100}, false}, {Lottery{1, 1}, false}, {Lottery{50, 99}, false},
		{Lottery{MaxSeats + 1, math.MaxUint64}, false}, {Lottery{math.MaxUint64, math.MaxUint64}, false},
	} {
		if err := x.Check(); (err == nil) != x.ok {
			t.Errorf("%d seats for %d: %v", x.Seats, x.Weight, err)
		}
		if !x.ok && (x.Won(100, lots(1)) != 0 || x.Share(100) != 0) {
			t.Errorf("a lottery of %d seats for %d was held", x.Seats, x.Weight)
		}
	}
}

// A weight wins the quantile of its exact odds, which the fraction says.
func TestWonIsTheExactQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Lottery{Seats: rapid.Uint64Range(1, 200).Draw(t, "seats")}
		l.Weight = rapid.Uint64Range(2*l.Seats, 100*l.Seats).Draw(t, "weight")
		n := rapid.Uint64Range(0, min(128, l.Weight)).Draw(t, "units")
		own := lots(rapid.Uint64().Draw(t, "lots"))
		f := own.Fraction(0)
		left := new(big.Rat).SetFrac(new(big.Int).SetBytes(f[:]), new(big.Int).Lsh(big.NewInt(1), 256))
		want := uint64(0)
		for ; ; want++ {
			p := new(big.Int).Binomial(int64(n), int64(want))
			p.Mul(p, new(big.Int).Exp(new(big.Int).SetUint64(l.Seats), new(big.Int).SetUint64(want), nil))
			p.Mul(p, new(big.Int).Exp(new(big.Int).SetUint64(l.Weight-l.Seats), new(big.Int).SetUint64(n-want), nil))
			all := new(big.Int).Exp(new(big.Int).SetUint64(l.Weight), new(big.Int).SetUint64(n), nil)
			if left.Sub(left, new(big.Rat).SetFrac(p, all)).Sign() < 0 {
				break
			}
		}
		if got := l.Won(n, own); got != want {
			t.Fatalf("%d of %d won %d seats of %d, want %d", n, l.Weight, got, l.Seats, want)
		}
	})
}

// What a weight wins is distributed as the binomial says, whether it is drawn for at once or in chunks, and as nothing else.
func TestWonIsBinomial(t *testing.T) {
	const runs = 10_000
	for i, x := range []struct {
		Lottery
		weight uint64
	}{
		{Lottery{1, 2}, 1},
		{Lottery{1, 2}, 2},
		{Lottery{50, 100}, 100},
		{Lottery{64, 128}, 128},
		{Lottery{10, 1000}, 37},
		{Lottery{100, 1000}, 1000}, // two chunks
		{Lottery{500, 1000}, 700},  // six of p = 1/2
		{Lottery{200, 1 << 63}, 1 << 62},
		{Lottery{1000, 1 << 40}, 1<<36 + 12345},
		{Lottery{2000, math.MaxUint64}, 1 << 61},
	} {
		count := map[uint64]int{}
		for r := range uint64(runs) {
			count[x.Won(x.weight, lots(r<<8|uint64(i)))]++
		}
		p := float64(x.Seats) / float64(x.Weight)
		if z := fit(count, runs, binomial(x.weight, p)); z > 4.5 {
			t.Errorf("%d of %d with %d seats: %.1f sigma from the binomial", x.weight, x.Weight, x.Seats, z)
		}
		if z := fit(count, runs, binomial(x.weight, p*0.93)); z < 4.5 {
			t.Errorf("%d of %d with %d seats: a chance 7 %% less fits as well, by %.1f sigma", x.weight, x.Weight, x.Seats, z)
		}
	}
}

// Nobody wins by many names: what parts of a weight win together is distributed as what the whole wins.
func TestPartsWinWhatTheWholeDoes(t *testing.T) {
	const runs = 6_000
	for i, x := range []struct {
		Lottery
		weight, parts uint64
	}{
		{Lottery{20, 1000}, 200, 2}, {Lottery{20, 1000}, 200, 200}, {Lottery{300, 3000}, 1500, 5}, {Lottery{1000, 1 << 62}, 1 << 58, 16},
	} {
		whole, parts, less := map[uint64]int{}, map[uint64]int{}, map[uint64]int{}
		for r := range uint64(runs) {
			own := r<<32 | uint64(i)<<24
			whole[x.Won(x.weight, lots(own|1<<23))]++
			sum, short := uint64(0), uint64(0)
			for k := range x.parts {
				won := x.Won(x.weight/x.parts, lots(own|k))
				if sum += won; k > 0 || x.parts > 16 && r%8 > 0 {
					short += won
				}
			}
			parts[sum]++
			less[short]++
		}
		if z := fitOfTwo(whole, parts); z > 4.5 {
			t.Errorf("%d of %d in %d parts: %.1f sigma from the whole", x.weight, x.Weight, x.parts, z)
		}
		if z := fitOfTwo(whole, less); x.parts <= 16 && z < 4.5 {
			t.Errorf("%d of %d in %d parts, without one: fits as well, by %.1f sigma", x.weight, x.Weight, x.parts, z)
		}
	}
}

func TestExtremeWeights(t *testing.T) {
	for _, x := range []struct {
		Lottery
		weight, least, most uint64
	}{
		{Lottery{1000, 1 << 40}, 0, 0, 0},
		{Lottery{1, 2}, 1, 0, 1},
		{Lottery{1, 2}, math.MaxUint64, 0, 2}, // as 2
		{Lottery{1, 1 << 63}, 1 << 63, 0, 12},
		{Lottery{1, math.MaxUint64}, 1 << 63, 0, 10},
		{Lottery{1000, 1 << 63}, 1 << 63, 800, 1200},
		{Lottery{1000, 1 << 63}, math.MaxUint64, 800, 1200},
		{Lottery{MaxSeats, 2 * MaxSeats}, 2 * MaxSeats, MaxSeats - 1500, MaxSeats + 1500},
		{Lottery{MaxSeats, math.MaxUint64}, 1 << 63, MaxSeats/2 - 1500, MaxSeats/2 + 1500},
		{Lottery{MaxSeats, math.MaxUint64}, 1, 0, 0},
	} {
		for i := range uint64(4) {
			won := x.Won(x.weight, lots(i))
			if won < x.least || won > x.most {
				t.Errorf("%d of %d won %d seats of %d, want %d to %d", x.weight, x.Weight, won, x.Seats, x.least, x.most)
			}
			if won != x.Won(min(x.weight, x.Weight), lots(i)) {
				t.Errorf("more than all, %d of %d, is not as all", x.weight, x.Weight)
			}
		}
	}
}

// The ends of what a fraction may be: none for the least, and for the greatest what odds were cut off at.
func TestExtremeFractions(t *testing.T) {
	least, greatest := canon.Hash{}, canon.Hash{}
	for i := range greatest {
		greatest[i] = 0xff
	}
	for _, x := range []struct {
		Lottery
		units, most uint64
	}{
		{Lottery{1, 2}, 1, 1}, {Lottery{1, 3}, 2, 2}, {Lottery{1, 3}, 20, 20}, {Lottery{1, 2}, 128, 128}, {Lottery{10, 1000}, 50, 50},
		{Lottery{64, 1 << 63}, 1 << 63, 400}, {Lottery{MaxSeats, math.MaxUint64}, 1 << 54, 400},
	} {
		var c chunk
		c.begin(x.Lottery, x.units)
		if c.none.Sign() <= 0 || c.none.BitLen() < precision/2-1 {
			t.Errorf("%d units of %d: odds of none have %d bits", x.units, x.Weight, c.none.BitLen())
		}
		if won := c.won(least); won != 0 {
			t.Errorf("%d units of %d won %d seats by the least fraction", x.units, x.Weight, won)
		}
		if won := c.won(greatest); won > x.most || won < x.most/4 {
			t.Errorf("%d units of %d won %d seats by the greatest fraction, want about %d", x.units, x.Weight, won, x.most)
		}
	}
}

func TestShareNeverExceeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Lottery{Seats: rapid.Uint64Range(1, MaxSeats).Draw(t, "seats")}
		l.Weight = rapid.Uint64Range(2*l.Seats, math.MaxUint64).Draw(t, "weight")
		weight := rapid.Uint64Range(0, l.Weight).Draw(t, "own")
		got := l.Share(weight)
		exact := new(big.Int).Mul(new(big.Int).SetUint64(l.Seats), new(big.Int).SetUint64(weight))
		if exact.Quo(exact, new(big.Int).SetUint64(l.Weight)); exact.Uint64() != got {
			t.Fatalf("%d of %d has %d seats of %d, want %v", weight, l.Weight, got, l.Seats, exact)
		}
		part := rapid.Uint64Range(0, weight).Draw(t, "part")
		if parts := l.Share(part) + l.Share(weight-part); parts > got {
			t.Fatalf("in two parts %d of %d has %d seats, as a whole %d", weight, l.Weight, parts, got)
		}
		if l.Share(l.Weight) != l.Seats || l.Share(math.MaxUint64) != l.Seats {
			t.Fatal("who has all of the weight has not all seats")
		}
	})
}

// What is won is the same on every machine, and for ever.
func TestGoldenLots(t *testing.T) {
	for _, x := range []struct {
		Lottery
		weight, lots, want uint64
	}{
		{Lottery{1, 2}, 1, 1, 1},
		{Lottery{1, 2}, 2, 2, 1},
		{Lottery{64, 128}, 128, 3, 58},
		{Lottery{10, 1000}, 37, 4, 2},
		{Lottery{100, 1000}, 1000, 5, 100},
		{Lottery{500, 1000}, 700, 6, 321},
		{Lottery{200, 0x8000000000000000}, 0x4000000000000000, 7, 112},
		{Lottery{1000, 0x10000000000}, 0x1000003039, 8, 55},
		{Lottery{2000, 0xffffffffffffffff}, 0x2000000000000000, 9, 239},
		{Lottery{1, 0xffffffffffffffff}, 0x8000000000000000, 10, 0},
		{Lottery{65536, 131072}, 131072, 11, 65565},
		{Lottery{65536, 0xffffffffffffffff}, 0x8000000000000000, 0xffffffffffffffff, 32709},
		{Lottery{1000, 0x8000000000000000}, 0xffffffffffffffff, 12, 1007},
		{Lottery{333, 1000003}, 999999, 13, 329},
	} {
		if got := x.Won(x.weight, lots(x.lots)); got != x.want {
			t.Errorf("%d of %d with %d seats won %d by lots %d, want %d", x.weight, x.Weight, x.Seats, got, x.lots, x.want)
		}
	}
}

func BenchmarkWon(b *testing.B) {
	for _, x := range []struct {
		name string
		Lottery
		weight uint64
	}{
		{"a chunk of 64 seats", Lottery{2000, 1 << 62}, 1 << 62 / 2000 * 64},
		{"a chunk at odds of a half", Lottery{2000, 4000}, 128},
		{"a seat", Lottery{2000, 1 << 62}, 1 << 62 / 2000},
		{"a hundredth of a seat", Lottery{2000, 1 << 62}, 1 << 62 / 200_000},
		{"2000 seats", Lottery{2000, 1 << 62}, 1 << 62},
	} {
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := uint64(0); b.Loop(); i++ {
				x.Won(x.weight, lots(i))
			}
		})
	}
}
