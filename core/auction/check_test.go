package auction

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func (c *Certificate) clone() *Certificate {
	d := *c
	d.Tasks = slices.Clone(c.Tasks)
	for k := range d.Sellers {
		d.Sellers[k] = slices.Clone(c.Sellers[k])
	}
	return &d
}

// What is checked is what was found.
func TestCheckerAcceptsWhatIsHonest(t *testing.T) {
	everyRule(t, func(t *rapid.T, m market, p Params) {
		tasks, providers := m.draw(t)
		b := book(t, tasks, providers)
		out, cert, err := Clear(b, p, drawMeasure(t, p.Rule))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Check(b, p, cert)
		if err != nil {
			t.Fatal(err)
		}
		if !same(out, again) {
			t.Fatalf("checked %+v, found %+v", again, out)
		}
	})
}

// Each bend of an honest certificate is refused: there is one for each measure.
func TestCheckerRefusesEveryBend(t *testing.T) {
	bends := map[string]func(t *rapid.T, b *Book, c *Certificate){
		"welfare":    func(t *rapid.T, _ *Book, c *Certificate) { c.Welfare += rapid.Uint64Min(1).Draw(t, "by") },
		"trades":     func(t *rapid.T, _ *Book, c *Certificate) { c.Trades += rapid.Uint32Min(1).Draw(t, "by") },
		"a task":     func(t *rapid.T, b *Book, c *Certificate) { set(t, c.Tasks, len(b.Tasks)) },
		"a seller":   func(t *rapid.T, b *Book, c *Certificate) { set(t, c.Sellers[0], len(b.Providers)) },
		"tasks":      func(t *rapid.T, _ *Book, c *Certificate) { swap(t, c.Tasks) },
		"sellers":    func(t *rapid.T, _ *Book, c *Certificate) { swap(t, c.Sellers[0]) },
		"one less":   func(t *rapid.T, _ *Book, c *Certificate) { c.Tasks = c.Tasks[1:] },
		"one more":   func(t *rapid.T, _ *Book, c *Certificate) { c.Tasks = append(c.Tasks, c.Tasks[0]) },
		"one twice":  func(t *rapid.T, _ *Book, c *Certificate) { c.Tasks[1] = c.Tasks[0] },
		"less sold":  func(t *rapid.T, _ *Book, c *Certificate) { c.Sellers[0] = c.Sellers[0][1:] },
		"not sold":   func(t *rapid.T, b *Book, c *Certificate) { c.Sellers[7] = append(c.Sellers[7], 0) },
		"the weight": func(t *rapid.T, _ *Book, c *Certificate) { c.Measure.Weight[2] = 0 },
		"the shape":  func(t *rapid.T, _ *Book, c *Certificate) { c.Measure.Shape = shapes },
	}
	for what, bend := range bends {
		t.Run(what, rapid.MakeCheck(func(t *rapid.T) {
			b := tight(t, 3)
			if b.sellers[0] < 2 {
				t.Skip("too few sellers")
			}
			_, cert, err := Clear(b, Params{}, drawMeasure(t, Midpoint))
			if err != nil {
				t.Fatal(err)
			}
			bent := cert.clone()
			bend(t, b, bent)
			if same(bent, cert) {
				t.Skip("not bent")
			}
			if _, err := Check(b, Params{}, bent); !errors.Is(err, ErrCertificate) && !errors.Is(err, ErrMeasure) {
				t.Fatalf("%+v is accepted: %v", bent, err)
			}
		}))
	}
}

func set(t *rapid.T, list []uint32, n int) {
	list[rapid.IntRange(0, len(list)-1).Draw(t, "at")] = rapid.Uint32Range(0, uint32(n+2)).Draw(t, "to")
}

func swap(t *rapid.T, list []uint32) {
	i, j := rapid.IntRange(0, len(list)-1).Draw(t, "i"), rapid.IntRange(0, len(list)-1).Draw(t, "j")
	list[i], list[j] = list[j], list[i]
}

func TestBetterIsAnOrder(t *testing.T) {
	heavy := Standard
	heavy.Weight[0]++
	best := []*Certificate{{Welfare: 9, Trades: 5, Measure: heavy}, {Welfare: 8, Trades: 2, Measure: heavy}, {Welfare: 8, Trades: 3, Measure: Standard}, {Welfare: 8, Trades: 3, Measure: heavy}}
	for i, c := range best {
		for j, d := range best {
			if c.Better(d) != (i < j) {
				t.Errorf("%d better than %d: %v", i, j, c.Better(d))
			}
		}
	}
}

// Whatever is posted, the checker neither panics nor makes a clearing that does not add up.
func FuzzChecker(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, []byte{1, 0}, uint64(7), uint8(0))
	f.Fuzz(func(t *testing.T, tasks, sellers []byte, welfare uint64, shape uint8) {
		b := book(t, []Task{{ID: id(1), Demand: Vector{2, 1}, Budget: 50, Fee: 1}, {ID: id(2), Demand: Vector{4}, Budget: 60}, {ID: id(3), Demand: Vector{5}, Budget: 90}},
			[]Provider{{ID: id(1), Capacity: Vector{5, 4}, Ask: Vector{3, 10}}, {ID: id(2), Capacity: Vector{5}, Ask: Vector{8}}})
		c := &Certificate{Measure: Measure{Shape(shape), Standard.Weight}, Welfare: welfare}
		for _, x := range tasks {
			c.Tasks = append(c.Tasks, uint32(x))
		}
		for i, x := range sellers {
			c.Sellers[i%2] = append(c.Sellers[i%2], uint32(x))
		}
		out, err := Check(b, Params{}, c)
		if err != nil {
			return
		}
		if fault := faultOf(b, Params{}, out); fault != "" || out.Welfare != welfare {
			t.Fatal(fault, out.Welfare)
		}
	})
}
