package reserve

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// holder is a part of a stream, and what it has had.
type holder struct {
	weight *big.Int
	mark   Mark
	had    uint64
	want   *big.Rat // by exact division
}

func (h *holder) take(t *rapid.T, s *Stream) {
	some, err := s.Since(&h.mark, h.weight)
	if err != nil {
		t.Fatal(err)
	}
	h.had += some
	h.mark = s.Mark()
}

// Whatever comes when, and whoever weighs more or less in between: each has what exact division gives, less a
// utally each time that it takes, and all together have no more than came.
func TestAStreamIsDividedByWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Stream
		all := make([]holder, rapid.IntRange(1, 5).Draw(t, "parts"))
		for i := range all {
			all[i] = holder{weight: weigh(t, 40), mark: s.Mark(), want: new(big.Rat)}
		}
		poured, takes := uint64(0), 1
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			i := rapid.IntRange(0, len(all)-1).Draw(t, "who")
			if rapid.Bool().Draw(t, "changes") {
				all[i].take(t, &s)
				takes++
				all[i].weight = weigh(t, 40+20*step) // power grows as weeks pass
			}
			sum := new(big.Int)
			for _, h := range all {
				sum.Add(sum, h.weight)
			}
			pay := rapid.Uint64Range(0, 1<<40).Draw(t, "pay")
			if err := s.Pour(pay, sum); err != nil {
				if sum.Sign() == 0 {
					continue
				}
				t.Fatal(err)
			}
			poured += pay
			for j := range all {
				share := new(big.Rat).SetFrac(all[j].weight, sum)
				all[j].want.Add(all[j].want, share.Mul(share, new(big.Rat).SetFrac(new(big.Int).SetUint64(pay), big.NewInt(1))))
			}
		}
		total := uint64(0)
		for i := range all {
			all[i].take(t, &s)
			total += all[i].had
			short := new(big.Rat).Sub(all[i].want, new(big.Rat).SetFrac(new(big.Int).SetUint64(all[i].had), big.NewInt(1)))
			if short.Sign() < 0 || short.Cmp(big.NewRat(int64(takes)+1, 1)) > 0 {
				t.Fatalf("part %d has had %d, exactly %s", i, all[i].had, all[i].want.FloatString(3))
			}
		}
		if total > poured {
			t.Fatalf("%d utally were taken of %d", total, poured)
		}
	})
}

func weigh(t *rapid.T, bits int) *big.Int {
	w := new(big.Int).SetUint64(rapid.Uint64Range(0, 1<<40).Draw(t, "weight"))
	return w.Lsh(w, uint(bits))
}

// A stream goes on as it was stored, and refuses what cannot be one.
func TestStreamsAreStored(t *testing.T) {
	var s Stream
	before := s.Mark()
	if err := s.Pour(1_000, big.NewInt(3)); err != nil {
		t.Fatal(err)
	}
	per, shift := s.Bytes()
	again, err := StreamOf(per, shift)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Since(&before, big.NewInt(2)); err != nil || got != 666 {
		t.Errorf("%d, %v", got, err)
	}
	ahead := again.Mark()
	var empty Stream
	for name, err := range map[string]error{
		"by nothing":       s.Pour(1, new(big.Int)),
		"by less":          s.Pour(1, big.NewInt(-1)),
		"by far too much":  s.Pour(1, new(big.Int).Lsh(big.NewInt(1), maxShift)),
		"a mark ahead":     func() error { _, err := empty.Since(&ahead, big.NewInt(1)); return err }(),
		"a shift too far":  func() error { _, err := StreamOf(nil, maxShift+1); return err }(),
		"a number too big": func() error { _, err := MarkOf(make([]byte, maxShift), 0); return err }(),
	} {
		if err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}
