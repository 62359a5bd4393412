package beacon

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/canon"
)

func lots(i uint64) Lots { return binary.LittleEndian.AppendUint64(nil, i) }

func TestPickIsWithoutReplacement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(0, 40).Draw(t, "n"), rapid.IntRange(0, 50).Draw(t, "k")
		l := lots(rapid.Uint64().Draw(t, "lots"))
		got := l.Pick(n, k)
		if len(got) != min(n, k) || !slices.Equal(got, l.Pick(n, k)) {
			t.Fatalf("drew %v", got)
		}
		seen := map[int]bool{}
		for _, x := range got {
			if x < 0 || x >= n || seen[x] {
				t.Fatalf("drew %v of %d", got, n)
			}
			seen[x] = true
		}
	})
}

// A fraction is a number of its own: of no other place, of no other draw, and not that of Below.
func TestFractionsDiffer(t *testing.T) {
	seen := map[canon.Hash]bool{}
	for i := range uint64(20) {
		for at := range uint64(300) {
			f := lots(i).Fraction(at)
			if seen[f] || f != lots(i).Fraction(at) {
				t.Fatalf("fraction %d of draw %d is that of another", at, i)
			}
			seen[f] = true
			if w := binary.LittleEndian.Uint64(f[:]); w%(1<<63) == lots(i).Below(at, 1<<63) {
				t.Fatalf("fraction %d of draw %d follows from the number of its place", at, i)
			}
		}
	}
}

func TestPickIsUniform(t *testing.T) {
	const n, k, runs = 7, 2, 20000
	var count [n]int
	for i := range uint64(runs) {
		for _, x := range lots(i).Pick(n, k) {
			count[x]++
		}
	}
	// Each number is drawn runs·k/n times, with a deviation of about 65.
	for x, c := range count {
		if math.Abs(float64(c)-float64(runs*k)/n) > 5*65 {
			t.Errorf("%d was drawn %d times of %d", x, c, runs*k/n)
		}
	}
}

// slow is what Weighted means: for each pick the weights that are left are added up anew.
func slow(l Lots, weights []uint64, k int) (out []int) {
	left := slices.Clone(weights)
	for i := 0; i < k; i++ {
		var total uint64
		for _, w := range left {
			total += w
		}
		if total == 0 {
			return out
		}
		x, at := l.Below(uint64(i), total), 0
		for ; x >= left[at]; at++ {
			x -= left[at]
		}
		out, left[at] = append(out, at), 0
	}
	return out
}

func TestWeightedIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Max(5), rapid.Uint64Max(math.MaxUint64/80)), 0, 70).Draw(t, "weights")
		k := rapid.IntRange(-1, 80).Draw(t, "k")
		l := lots(rapid.Uint64().Draw(t, "lots"))
		got, err := l.Weighted(weights, k)
		if err != nil || !slices.Equal(got, slow(l, weights, k)) {
			t.Fatalf("drew %v, want %v (%v)", got, slow(l, weights, k), err)
		}
	})
}

func TestWeightedRefusesWhatDoesNotAddUp(t *testing.T) {
	if _, err := lots(0).Weighted([]uint64{math.MaxUint64, 1}, 1); err == nil {
		t.Fatal("weights above 64 bits were taken")
	}
	if got, err := lots(0).Weighted([]uint64{0, math.MaxUint64}, 5); err != nil || !slices.Equal(got, []int{1}) {
		t.Fatal(got, err)
	}
}

// A share of the weight is drawn as often as any other of that size, under one name or many.
func TestDividingWeightGainsNothing(t *testing.T) {
	const runs = 20_000
	whole, divided := []uint64{60, 40}, []uint64{60, 10, 10, 10, 10}
	count := func(weights []uint64) (n float64) {
		for i := range uint64(runs) {
			got, err := lots(i).Weighted(weights, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got[0] > 0 {
				n++
			}
		}
		return n
	}
	// 0.4 of the runs, with a deviation of about 69.
	for _, n := range []float64{count(whole), count(divided)} {
		if math.Abs(n-0.4*runs) > 5*69 {
			t.Errorf("40 of 100 were drawn %.0f times of %d", n, runs)
		}
	}
}

func TestDrawsDoNotDependOnOneAnother(t *testing.T) {
	v, w := canon.Sum(canon.DomainBeacon, []byte("v")), canon.Sum(canon.DomainBeacon, []byte("w"))
	seen := map[string]bool{}
	for _, l := range []Lots{
		Draw(v, Auditors, []byte("a")), Draw(w, Auditors, []byte("a")),
		Draw(v, Custodians, []byte("a")), Draw(v, Auditors, []byte("b")), Draw(v, Auditors, nil),
	} {
		if seen[string(l)] {
			t.Fatalf("two draws have the lots %x", []byte(l))
		}
		seen[string(l)] = true
	}
	if !slices.Equal(Draw(v, Auditors, nil), Draw(v, Auditors, []byte{})) {
		t.Fatal("the same draw gives other lots")
	}
}

// BenchmarkWeighted draws eight of so many as a chain may hold.
func BenchmarkWeighted(b *testing.B) {
	weights := make([]uint64, 100_000)
	for i := range weights {
		weights[i] = bits.RotateLeft64(uint64(i), 7) + 1
	}
	for b.Loop() {
		if _, err := lots(1).Weighted(weights, 8); err != nil {
			b.Fatal(err)
		}
	}
}
