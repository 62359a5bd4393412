package auction

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func same(a, b any) bool { return reflect.DeepEqual(a, b) }

// What is sold is there and is demanded, what is paid is earned, nobody pays above its bid or earns below its ask, and
// nobody adds money. Of the seed's rule all holds but the bids.
func TestClearingsAddUp(t *testing.T) {
	everyRule(t, func(t *rapid.T, m market, p Params) {
		tasks, providers := m.draw(t)
		b := book(t, tasks, providers)
		out, _, err := Clear(b, p, drawMeasure(t, p.Rule))
		if err != nil {
			t.Fatal(err)
		}
		if fault := faultOf(b, p, out); fault != "" {
			t.Fatal(fault)
		}
	})
}

// faultOf says what a clearing does that none may do.
func faultOf(b *Book, p Params, out *Outcome) string {
	sold, won := make([]Vector, len(b.Providers)), make([]bool, len(b.Tasks))
	var welfare, surplus uint64
	for _, trade := range out.Trades {
		task := &b.Tasks[trade.Task]
		if won[trade.Task] {
			return "a task wins twice"
		}
		won[trade.Task] = true
		var got, each Vector
		var cost, floor, pay uint64
		for _, f := range trade.Fills {
			ask := f.Units * b.Providers[f.Provider].Ask[f.Kind]
			got[f.Kind] += f.Units
			sold[f.Provider][f.Kind] += f.Units
			cost, pay = cost+ask, pay+f.Pay
			each[f.Kind] = max(each[f.Kind], b.Providers[f.Provider].Ask[f.Kind])
			if f.Pay < ask || f.Units == 0 || f.Task != trade.Task {
				return "a provider earns less than it asks"
			}
		}
		for k, q := range got {
			floor += q * each[k]
		}
		switch {
		case got != task.Demand:
			return "a task does not get what it demands"
		case trade.Price > task.net() && p.Rule != Literal:
			return "a task pays more than it bids"
		case pay > trade.Price:
			return "more is earned than is paid"
		case cost != trade.Cost:
			return "a cost is not what is asked"
		case p.Rule != McAfee && pay != trade.Price:
			return "something is left over"
		case p.Rule == Midpoint && (trade.Price > floor+(task.net()-floor)/2 || trade.Price+uint64(len(trade.Fills)+Kinds) < floor+(task.net()-floor)/2):
			return "the price is not in the middle"
		case !p.Rule.Single() && p.Rule != Literal && !onePrice(b, &trade):
			return "units of one kind have two prices"
		}
		welfare, surplus = welfare+task.net()-cost, surplus+trade.Price-pay
	}
	for j, v := range sold {
		for k, q := range v {
			if q > b.Providers[j].Capacity[k] {
				return "a provider sells more than it has"
			}
		}
	}
	if welfare != out.Welfare || surplus != out.Surplus {
		return "the sums are wrong"
	}
	return ""
}

// onePrice says whether everybody gets as much for a unit of a kind, and nobody less than it asks.
func onePrice(b *Book, t *Trade) bool {
	for _, f := range t.Fills {
		units := b.Tasks[t.Task].Demand[f.Kind]
		got, due := new(big.Int).SetUint64(f.Pay), new(big.Int).SetUint64(t.Due[f.Kind])
		due.Div(due.Mul(due, new(big.Int).SetUint64(f.Units)), new(big.Int).SetUint64(units))
		if got.Cmp(due) != 0 || t.Due[f.Kind]/units < b.Providers[f.Provider].Ask[f.Kind] {
			return false
		}
	}
	return true
}

// By the seed's rule as printed a buyer may pay more than it bids: 6 units at 1 and 2 at 9, of a bid of 24, which is 3 a unit.
func TestTheSeedsRuleIsNotRational(t *testing.T) {
	b := book(t, []Task{{ID: id(1), Demand: Vector{8}, Budget: 24}},
		[]Provider{{ID: id(1), Capacity: Vector{6}, Ask: Vector{1}}, {ID: id(2), Capacity: Vector{2}, Ask: Vector{9}}})
	out, _, err := Clear(b, Params{Rule: Literal}, Standard)
	if err != nil {
		t.Fatal(err)
	}
	if want := uint64(6 + 6 + 2*9); len(out.Trades) != 1 || out.Trades[0].Price != want {
		t.Fatalf("%+v: want one trade at %d", out.Trades, want)
	}
	if out, _, err = Clear(b, Params{}, Standard); err != nil || len(out.Trades) != 0 {
		t.Fatalf("%+v, %v: all eight cost 9 if the dearest does", out.Trades, err)
	}
}

// A worked example: of two tasks for two kinds the denser one comes first and takes the cheap units.
func TestMidpointByHand(t *testing.T) {
	b := book(t, []Task{
		{ID: id(1), Demand: Vector{2, 1}, Budget: 50, Fee: 1}, // 0.2 + 0.25 of the supply, density 49/0.45
		{ID: id(2), Demand: Vector{4}, Budget: 60},            // 0.4, density 150
		{ID: id(3), Demand: Vector{5}, Budget: 90},            // too much for what is left
	}, []Provider{
		{ID: id(1), Capacity: Vector{5, 4}, Ask: Vector{3, 10}},
		{ID: id(2), Capacity: Vector{5}, Ask: Vector{8}},
	})
	out, _, err := Clear(b, Params{}, Standard)
	if err != nil {
		t.Fatal(err)
	}
	// Task 3 has 90/0.5 = 180 and takes five at 3: 15, midpoint 52. Task 2 takes four at 8: 32, midpoint 46.
	// One unit is left for task 1, which wants two.
	if len(out.Trades) != 2 || out.Trades[0].Task != 2 || out.Trades[0].Price != 52 || out.Trades[1].Task != 1 || out.Trades[1].Price != 46 || out.Welfare != 75+28 {
		t.Fatalf("%+v", out)
	}
	// By critical value both must outbid task 1, of density 49/0.45: it would take two units and leave too few.
	// That takes ⌈108.9 · 0.5⌉ and ⌈108.9 · 0.4⌉.
	if out, _, err = Clear(b, Params{Rule: Critical}, Standard); err != nil || out.Trades[0].Price != 55 || out.Trades[1].Price != 44 {
		t.Fatalf("%+v, %v", out, err)
	}
	// Without it task 3 could stand behind task 2, where one unit at 3 and four at 8 would all fetch 8; and task 2 pays what
	// its units cost.
	b = book(t, b.Tasks[1:], b.Providers)
	if out, _, err = Clear(b, Params{Rule: Critical}, Standard); err != nil || out.Trades[0].Price != 40 || out.Trades[1].Price != 32 {
		t.Fatalf("%+v, %v", out, err)
	}
}

func TestRulesRefuse(t *testing.T) {
	two := book(t, []Task{{ID: id(1), Demand: Vector{1, 1}, Budget: 9}, {ID: id(2), Demand: Vector{0, 1}, Budget: 9}}, nil)
	for _, r := range []Rule{McAfee, SBBA, Exponential} {
		if _, _, err := Clear(two, Params{Rule: r, Grid: Grid{1, 1, 9}, Epsilon: 1}, Standard); !errors.Is(err, ErrRule) {
			t.Errorf("%s clears two units of one task: %v", r, err)
		}
	}
	for _, p := range []Params{{Rule: rules}, {AgeStep: 1 << 31, AgeMost: 1 << 31}, {Rule: Exponential}, {Rule: Exponential, Epsilon: 1}} {
		if _, _, err := Clear(two, p, Standard); !errors.Is(err, ErrRule) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	other := Standard
	other.Weight[3]++
	for _, c := range []struct {
		r Rule
		m Measure
	}{{Critical, other}, {Literal, other}, {Midpoint, Measure{}}, {Midpoint, Measure{Shape: shapes, Weight: Standard.Weight}}} {
		if _, _, err := Clear(two, Params{Rule: c.r}, c.m); !errors.Is(err, ErrMeasure) {
			t.Errorf("%s by %+v: %v", c.r, c.m, err)
		}
	}
}

// A task that has lost comes before an equal one, and bids no more for that.
func TestAgeingRaisesDensityAlone(t *testing.T) {
	b := book(t, []Task{{ID: id(1), Demand: Vector{2}, Budget: 100}, {ID: id(2), Demand: Vector{2}, Budget: 60, Age: 9}},
		[]Provider{{ID: id(1), Capacity: Vector{2}, Ask: Vector{1}}})
	for step, want := range map[uint32]uint32{0: 0, 500: 0, 5000: 1} { // at most 3 count: 60 · 1.15 and 60 · 2.5
		out, _, err := Clear(b, Params{AgeStep: step, AgeMost: 3}, Standard)
		if err != nil || len(out.Trades) != 1 || out.Trades[0].Task != want {
			t.Errorf("step %d: %+v, %v", step, out.Trades, err)
		}
		if want == 1 && out.Trades[0].Price != 31 {
			t.Errorf("price %d", out.Trades[0].Price)
		}
	}
}

// What anybody may post is never worse than the fallback, and nothing is better than the optimum.
func TestSearchIsBetweenFallbackAndOptimum(t *testing.T) {
	better := 0
	rapid.Check(t, func(t *rapid.T) {
		b := tight(t, 3)
		base, _, err := Fallback(b, Params{})
		if err != nil {
			t.Fatal(err)
		}
		found, cert, err := Search(b, Params{}, 60)
		if err != nil {
			t.Fatal(err)
		}
		best, err := Optimum(b)
		if err != nil {
			t.Fatal(err)
		}
		if found.Welfare < base.Welfare || found.Welfare > best || base.Welfare > best {
			t.Fatalf("fallback %d, found %d, optimum %d", base.Welfare, found.Welfare, best)
		}
		if found.Welfare > base.Welfare {
			better++
		}
		again, _, err := Clear(b, Params{}, cert.Measure)
		if err != nil || !same(again, found) {
			t.Fatalf("its measure gives %+v, %v: want %+v", again, err, found)
		}
	})
	if better == 0 {
		t.Error("the search has never found anything better")
	}
}

// tight is a book in which there is less than is wanted.
func tight(t *rapid.T, kinds int) *Book {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) // evenly, where rapid likes small numbers
	n := func(from, to uint64) uint64 { return from + r.Uint64N(to-from+1) }
	var tasks []Task
	for i := range 10 {
		task := Task{ID: id(i)}
		var units uint64
		for k := range kinds {
			task.Demand[k] = n(0, 10)
			units += task.Demand[k]
		}
		if units == 0 {
			task.Demand[0], units = 1, 1
		}
		task.Budget = units * n(5, 25)
		tasks = append(tasks, task)
	}
	var providers []Provider
	for j := range 6 {
		p := Provider{ID: id(j)}
		for k := range kinds {
			p.Capacity[k], p.Ask[k] = n(0, 10), n(5, 15)
		}
		providers = append(providers, p)
	}
	return book(t, tasks, providers)
}

// Where every task demands one kind, as all orders on the chain do, weights move no task before another of its kind. So nobody can
// post a clearing that beats the fallback, and whoever posts has nothing to choose.
func TestOneKindLeavesNothingToChoose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks, providers := market{tasks: 12, providers: 6, kinds: Kinds, extreme: rapid.Bool().Draw(t, "extreme")}.draw(t)
		for i := range tasks {
			kind := rapid.IntRange(0, Kinds-1).Draw(t, "kind")
			units := max(tasks[i].Demand[kind], 1)
			tasks[i].Demand = [Kinds]uint64{}
			tasks[i].Demand[kind] = units
		}
		b, p := book(t, tasks, providers), Params{Rule: Midpoint}
		_, own, err := Fallback(b, p)
		if err != nil {
			t.Fatal(err)
		}
		_, cert, err := Clear(b, p, drawMeasure(t, Midpoint))
		if err != nil {
			t.Fatal(err)
		}
		if cert.Welfare > own.Welfare || cert.Welfare == own.Welfare && cert.Trades < own.Trades {
			t.Fatalf("%+v beats the fallback, %+v", cert, own)
		}
	})
}
