package reserve

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func rules() Rules {
	return Rules{Halving: 35_064, Cap: 800, Bps: [Kinds]uint32{4_000, 3_000, 1_000}, Jackpot: 1_000, Insurance: 1_000, JoiningUT: 100}
}

func drawRules(t *rapid.T) Rules {
	r, left := Rules{
		Halving: rapid.Uint64Range(1, MaxHalving).Draw(t, "halving"), Cap: rapid.Uint64Range(0, MaxCap).Draw(t, "cap"),
		JoiningUT: rapid.Uint64Range(0, maxUT).Draw(t, "joining"),
	}, uint32(bps)
	for _, to := range []*uint32{&r.Bps[Seats], &r.Bps[Drilling], &r.Bps[Joining], &r.Jackpot, &r.Insurance} {
		*to = rapid.Uint32Range(0, left).Draw(t, "bps")
		left -= *to
	}
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	return r
}

// If every epoch pays all that it may, half of what is held is left after as many as a halving has, and little more.
func TestHalving(t *testing.T) {
	for _, halving := range []uint64{1, 2, 10, 720, 35_064} {
		r := rules()
		r.Halving = halving
		const all = 1 << 62
		held := uint64(all)
		for range halving {
			held -= r.Budget(held)
		}
		if held < all/2 || halving > 100 && held > all/2+all/100 {
			t.Errorf("after %d epochs %.6f are left", halving, float64(held)/all)
		}
	}
	if rules().Budget(0) != 0 || rules().Budget(math.MaxUint64) == 0 {
		t.Error("budget")
	}
}

// However much is held and whatever was computed: an epoch pays at most its budget, and no ut earns more than the
// cap, of all shares together.
func TestPayoutIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, held := drawRules(t), rapid.Uint64().Draw(t, "held")
		e := Epoch{Credited: rapid.Uint64().Draw(t, "credited")}
		e.Weights = [Kinds]uint64{
			rapid.Uint64().Draw(t, "seats"), rapid.Uint64Range(0, e.Credited).Draw(t, "drilling"), rapid.Uint64Range(0, e.Credited).Draw(t, "joining"),
		}
		p, err := r.Close(held, &e)
		if err != nil {
			t.Fatal(err)
		}
		paid := new(big.Int)
		for _, x := range []uint64{p.Pots[Seats].Pay, p.Pots[Drilling].Pay, p.Pots[Joining].Pay, p.Jackpot, p.Insurance} {
			paid.Add(paid, new(big.Int).SetUint64(x))
		}
		if paid.Cmp(new(big.Int).SetUint64(r.Budget(held))) > 0 {
			t.Fatalf("pays %s, the budget is %d", paid, r.Budget(held))
		}
		most := new(big.Int).Mul(new(big.Int).SetUint64(e.Credited), new(big.Int).SetUint64(r.Cap))
		if paid.Mul(paid, big.NewInt(microUT)).Cmp(most) > 0 {
			t.Fatalf("pays %s for %d µut: more than the cap", paid, e.Credited)
		}
		for _, k := range []Kind{Drilling, Joining} { // nor does work of one kind, alone
			own := new(big.Int).Mul(new(big.Int).SetUint64(p.Pots[k].Pay), big.NewInt(microUT*bps))
			if own.Cmp(new(big.Int).Mul(new(big.Int).SetUint64(e.Weights[k]), new(big.Int).SetUint64(r.Cap*uint64(r.Bps[k])))) > 0 {
				t.Fatalf("kind %d pays %d for %d µut", k, p.Pots[k].Pay, e.Weights[k])
			}
		}
	})
}

// A pot is taken to the last utally, and who gets what does not depend on who comes first.
func TestPotIsDivided(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Range(1, 1<<56), 1, 20).Draw(t, "weights")
		sum := uint64(0)
		for _, w := range weights {
			sum += w
		}
		pay := rapid.Uint64().Draw(t, "pay")
		got := func(order []int) (parts map[int]uint64, rest uint64) {
			p, parts := NewPot(pay, sum), map[int]uint64{}
			for _, i := range order {
				part, left, err := p.Take(weights[i])
				if err == nil {
					err = p.Check()
				}
				if err != nil {
					t.Fatal(err)
				}
				parts[i], rest = part, rest+left
			}
			if p.LeftPay != 0 || p.LeftWeight != 0 {
				t.Fatalf("all have taken, and %+v is left", p)
			}
			return parts, rest
		}
		order := make([]int, len(weights))
		for i := range order {
			order[i] = i
		}
		one, rest := got(order)
		other, again := got(rapid.Permutation(order).Draw(t, "order"))
		total := rest
		for i := range weights {
			if total += one[i]; one[i] != other[i] {
				t.Fatalf("%d gets %d, or %d", i, one[i], other[i])
			}
		}
		if total != pay || rest != again || rest >= uint64(len(weights)) {
			t.Fatalf("%d of %d are accounted for, %d by rounding", total, pay, rest)
		}
	})
}

func TestPotRefuses(t *testing.T) {
	p := NewPot(10, 3)
	if _, _, err := p.Take(4); err == nil {
		t.Error("more was taken than there is")
	}
	if pay, rest, err := p.Take(0); pay != 0 || rest != 0 || err != nil {
		t.Error("nothing takes something")
	}
	for _, bad := range []Pot{{1, 1, 2, 1}, {1, 1, 1, 2}, {1, 1, 1, 0}} {
		if bad.Check() == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

// The first work is what an account has below a bound, however it is cut.
func TestFirstWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRules(t)
		before, first := uint64(0), uint64(0)
		for _, micro := range rapid.SliceOf(rapid.Uint64Range(0, 1<<53)).Draw(t, "credits") {
			first += r.First(micro, before)
			before += micro
		}
		if want := min(before, r.JoiningUT*microUT); first != want {
			t.Fatalf("%d of %d are first, want %d", first, before, want)
		}
	})
}

func TestCheck(t *testing.T) {
	for name, bend := range map[string]func(*Rules){
		"at once":      func(r *Rules) { r.Halving = 0 },
		"never":        func(r *Rules) { r.Halving = MaxHalving + 1 },
		"pays":         func(r *Rules) { r.Cap = MaxCap + 1 },
		"too much":     func(r *Rules) { r.Jackpot++ },
		"a lot":        func(r *Rules) { r.Bps = [Kinds]uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32} },
		"always first": func(r *Rules) { r.JoiningUT = maxUT + 1 },
	} {
		r := rules()
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		if bend(&r); r.Check() == nil {
			t.Errorf("%s: %+v were taken", name, r)
		}
	}
}

func TestEpochIsFull(t *testing.T) {
	e := Epoch{Credited: math.MaxUint64}
	if e.Count(1, [Kinds]uint64{}) == nil {
		t.Error("work overflows")
	}
	e = Epoch{Weights: [Kinds]uint64{0, math.MaxUint64, 0}}
	if e.Count(1, [Kinds]uint64{0, 1, 0}) == nil {
		t.Error("weights overflow")
	}
}
