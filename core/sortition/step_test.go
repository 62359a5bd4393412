package sortition

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sets draws a set of members. Names are few, so that two sets share some.
func sets(most int, votes uint64) *rapid.Generator[[]Seat] {
	return rapid.Custom(func(t *rapid.T) (set []Seat) {
		scale := rapid.SampledFrom([]uint64{1, 10, 1000, votes}).Draw(t, "scale")
		for i := range most {
			if rapid.Bool().Draw(t, "in") {
				set = append(set, Seat{fmt.Sprintf("m%03d", i), rapid.Uint64Range(1, min(scale, votes)).Draw(t, "votes")})
			}
		}
		return set
	})
}

func of(votes ...uint64) (set []Seat) {
	for i, v := range votes {
		if v > 0 {
			set = append(set, Seat{string(rune('a' + i)), v})
		}
	}
	return set
}

func TestWithin(t *testing.T) {
	for _, x := range []struct {
		from, to []Seat
		want     bool
	}{
		{nil, nil, true}, {of(1), nil, false}, {nil, of(1), false},
		{of(1), of(7), true}, {of(3), of(3, 1), true}, {of(4), of(3, 1), true}, {of(4), of(2, 1), false},
		{of(300_000_000), of(299_999_999, 100_000_000), false}, {of(300_000_000), of(300_000_001, 100_000_000), true},
		{of(1, 1, 1, 1), of(1, 1, 1), true}, {of(1, 1, 1, 1), of(0, 0, 1, 1), false},
		{of(1, 1, 1), of(1, 1, 1, 1), true}, {of(1, 1, 1, 1), of(1, 1, 1, 0, 1), true}, {of(1, 1, 1), of(1, 1, 0, 1), false},
		{of(math.MaxUint64, math.MaxUint64), of(math.MaxUint64, math.MaxUint64/3), true},
		{of(math.MaxUint64, math.MaxUint64), of(math.MaxUint64, math.MaxUint64/3-1), false},
	} {
		if got := Within(x.from, x.to); got != x.want {
			t.Errorf("from %v to %v: %v", x.from, x.to, got)
		}
	}
}

// share returns what part of a set's votes the chosen members have.
func share(set []Seat, chosen map[string]bool) *big.Rat {
	part := new(big.Int)
	for _, s := range set {
		if chosen[s.Member] {
			part.Add(part, new(big.Int).SetUint64(s.Votes))
		}
	}
	return new(big.Rat).SetFrac(part, sumOf(set))
}

// leastTrusted returns the least share of a set that anybody had who can sign for the next: by more than 2/3 of its votes.
func leastTrusted(from, next []Seat) *big.Rat {
	least, need := big.NewRat(1, 1), big.NewRat(2, 3)
	for mask := range 1 << len(next) {
		signers := map[string]bool{}
		for i, s := range next {
			signers[s.Member] = mask>>i&1 == 1
		}
		if share(next, signers).Cmp(need) > 0 {
			if old := share(from, signers); old.Cmp(least) < 0 {
				least = old
			}
		}
	}
	return least
}

// Whoever can sign for the next set had more than 1/3 of the set before: 5/12 at least, which some come near to.
func TestSignersOfTheNextSetAreTrustedInThisOne(t *testing.T) {
	atLeast := big.NewRat(5, 12)
	rapid.Check(t, func(t *rapid.T) {
		from, target := sets(10, 1<<40).Draw(t, "from"), sets(10, 1<<40).Draw(t, "target")
		if len(from) == 0 || len(target) == 0 {
			t.Skip("nobody")
		}
		next := Step(from, target)
		if least := leastTrusted(from, next); least.Cmp(atLeast) <= 0 {
			t.Fatalf("from %v to %v: some who can sign had %v before", from, next, least)
		}
	})
	from := of(57, 43)
	if least := leastTrusted(from, Step(from, of(0, 1))); least.Cmp(big.NewRat(43, 100)) > 0 {
		t.Errorf("all who can sign had %v: a step could be longer", least)
	}
}

// Every step leads to a set that is sound and within the last one, and few steps lead to the target.
func TestStepsLeadToTheTarget(t *testing.T) {
	longest := 0
	rapid.Check(t, func(t *rapid.T) {
		most, votes := rapid.SampledFrom([]int{3, 12, 40}).Draw(t, "members"), rapid.SampledFrom([]uint64{1, 1 << 16, 1 << 20, math.MaxUint64}).Draw(t, "votes")
		at, target := sets(most, votes).Draw(t, "from"), sets(most, votes).Draw(t, "target")
		steps := 0
		for len(target) > 0 && !slices.Equal(at, target) {
			next := Step(at, target)
			if len(at) > 0 && !Within(at, next) {
				t.Fatalf("%v is not within %v", next, at)
			}
			sound(t, next)
			if steps++; steps > 8 {
				t.Fatalf("after %d steps: %v, and not yet %v", steps, next, target)
			}
			if !slices.Equal(next, target) && sumOf(next).Cmp(big.NewInt(sumOfStep)) > 0 {
				t.Fatalf("votes add up to %v on the way", sumOf(next))
			}
			at = next
		}
		longest = max(longest, steps)
		if got := Step(at, nil); !slices.Equal(got, at) {
			t.Fatalf("without a target the way leads to %v", got)
		}
	})
	t.Logf("at most %d steps", longest)
}

func sound(t *rapid.T, set []Seat) {
	t.Helper()
	for i, s := range set {
		if s.Votes == 0 || i > 0 && set[i-1].Member >= s.Member {
			t.Fatalf("member %d of %v has no votes, or is out of order", i, set)
		}
	}
}

// The hardest ways: everybody is exchanged at once, in sets of every size, and shares are as unequal as can be.
func TestStepsFromOneSetToAnotherOfNobodyInCommon(t *testing.T) {
	set := func(name string, n int, votes func(i int) uint64) (out []Seat) {
		for i := range n {
			out = append(out, Seat{fmt.Sprintf("%s%05d", name, i), votes(i)})
		}
		return out
	}
	equal := func(int) uint64 { return 1 }
	steep := func(i int) uint64 { return 1 << (i % 63) }
	lone := func(i int) uint64 { return 1 + 1<<40>>(i*50) }
	for name, x := range map[string][2][]Seat{
		"one by one":           {of(1), of(0, 1)},
		"a few by many":        {set("a", 3, equal), set("b", 1000, equal)},
		"many by a few":        {set("a", 1000, equal), set("b", 3, equal)},
		"many by many":         {set("a", 5000, equal), set("b", 5000, equal)},
		"steep":                {set("a", 63, steep), set("b", 63, steep)},
		"one who has all":      {set("a", 100, lone), set("b", 100, equal)},
		"by one who has all":   {set("a", 100, equal), set("b", 100, lone)},
		"from nobody":          {nil, of(1, 2, 3)},
		"one more than allows": {of(1_000_000), of(749_999, 250_001)},
	} {
		at, steps := x[0], 0
		for ; !slices.Equal(at, x[1]); steps++ {
			next := Step(at, x[1])
			if len(at) > 0 && !Within(at, next) || steps >= 5 {
				t.Fatalf("%s: step %d is not within the last, or one too many", name, steps)
			}
			at = next
		}
		t.Logf("%-22s %d steps", name, steps)
	}
}

func TestRankingIsSortAndCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := sets(40, 5).Draw(t, "all")
		all = append(all, Seat{"none", 0})
		offered := rapid.Permutation(all).Draw(t, "offered")
		r := Ranking{Most: rapid.IntRange(0, 20).Draw(t, "most")}
		for _, s := range offered {
			r.Offer(s)
		}
		want := slices.DeleteFunc(all, func(s Seat) bool { return s.Votes == 0 })
		slices.SortStableFunc(want, func(a, b Seat) int { // all were ascending
			switch {
			case a.Votes > b.Votes:
				return -1
			case a.Votes < b.Votes:
				return 1
			}
			return 0
		})
		if want = want[:min(len(want), r.Most)]; !slices.Equal(r.Best, want) {
			t.Fatalf("%d best are %v, want %v", r.Most, r.Best, want)
		}
	})
}

func BenchmarkStep(b *testing.B) {
	var from, target []Seat
	for i := range 100 {
		from = append(from, Seat{fmt.Sprintf("a%03d", i), uint64(10 + i)})
		target = append(target, Seat{fmt.Sprintf("b%03d", i), uint64(10 + i)})
	}
	b.ReportAllocs()
	for b.Loop() {
		Step(from, target)
	}
}
