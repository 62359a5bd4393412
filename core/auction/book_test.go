package auction

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func id(n int) (out [32]byte) {
	binary.BigEndian.PutUint32(out[:], uint32(n))
	return out
}

// market is what is bid, by someone who knows what bids look like.
type market struct {
	tasks, providers, kinds int
	single                  bool // units of one kind
	extreme                 bool // numbers up to the limits
	handicaps               bool
}

func (m market) draw(t *rapid.T) ([]Task, []Provider) {
	upTo := func(n uint64, most uint64, what string) uint64 {
		if m.extreme {
			n = most
		}
		return rapid.Uint64Range(0, n).Draw(t, what)
	}
	var tasks []Task
	for i := range rapid.IntRange(0, m.tasks).Draw(t, "tasks") {
		task := Task{ID: id(i), Age: uint32(rapid.IntRange(0, 9).Draw(t, "age"))}
		for k := range m.kinds {
			task.Demand[k] = upTo(9, MaxUnits, "demand")
		}
		task.Demand[0] = max(task.Demand[0], 1)
		if m.single {
			task.Demand[0] = 1
		}
		task.Budget = upTo(400, MaxBudget, "budget")
		task.Fee = min(upTo(20, MaxBudget, "fee"), task.Budget)
		tasks = append(tasks, task)
	}
	var providers []Provider
	for j := range rapid.IntRange(0, m.providers).Draw(t, "providers") {
		p := Provider{ID: id(j), Ability: uint32(rapid.IntRange(0, bps).Draw(t, "ability"))}
		for k := range m.kinds {
			p.Capacity[k], p.Ask[k] = upTo(12, MaxUnits, "capacity"), max(upTo(40, MaxAsk, "ask"), 1)
		}
		if m.single {
			p.Capacity[0], p.Ask[0] = 1, max(upTo(400, MaxAsk, "ask of one"), 1)
		}
		if m.handicaps {
			p.Handicap = uint32(rapid.IntRange(0, bps).Draw(t, "handicap"))
		}
		providers = append(providers, p)
	}
	return tasks, providers
}

// book takes what is drawn, or fails.
func book(t rapid.TB, tasks []Task, providers []Provider) *Book {
	b, err := NewBook(tasks, providers)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// markets are what each rule is tried on.
func markets(r Rule) (out []market) {
	if r.Single() {
		return []market{{tasks: 8, providers: 8, kinds: 1, single: true}, {tasks: 8, providers: 8, kinds: 1, single: true, extreme: true}}
	}
	for _, m := range []market{{tasks: 8, providers: 6, kinds: 3}, {tasks: 8, providers: 6, kinds: Kinds, extreme: true}, {tasks: 30, providers: 30, kinds: 1}} {
		with := m
		with.handicaps = true
		out = append(out, m, with)
	}
	return out
}

func drawParams(t *rapid.T, r Rule) Params {
	p := Params{Rule: r, AgeStep: uint32(rapid.IntRange(0, 1000).Draw(t, "step")), AgeMost: uint32(rapid.IntRange(0, 50).Draw(t, "most"))}
	if r == SBBA || r == Exponential {
		p.Seed[0] = rapid.Byte().Draw(t, "seed")
	}
	if r == Exponential {
		p.Grid, p.Epsilon = Grid{Least: 1, Step: 17, Count: rapid.IntRange(1, 40).Draw(t, "grid")}, uint32(rapid.IntRange(1, maxEpsilon).Draw(t, "epsilon"))
	}
	return p
}

func drawMeasure(t *rapid.T, r Rule) Measure {
	m := Standard
	if r == Midpoint {
		m.Shape = Shape(rapid.IntRange(0, int(shapes)-1).Draw(t, "shape"))
		for k := range m.Weight {
			m.Weight[k] = rapid.Uint16Range(1, math.MaxUint16).Draw(t, "weight")
		}
	}
	return m
}

// everyRule tries something with each rule, on every market that it is for.
func everyRule(t *testing.T, try func(t *rapid.T, m market, p Params)) {
	for r := range rules {
		for _, m := range markets(r) {
			t.Run(r.String(), rapid.MakeCheck(func(t *rapid.T) { try(t, m, drawParams(t, r)) }))
		}
	}
}

func TestBooksRefuseWhatCannotBeCleared(t *testing.T) {
	good := func() ([]Task, []Provider) {
		return []Task{{ID: id(1), Demand: Vector{1}, Budget: 9}, {ID: id(2), Demand: Vector{2}, Budget: 9, Fee: 3}},
			[]Provider{{ID: id(1), Capacity: Vector{3}, Ask: Vector{2}}, {ID: id(2), Capacity: Vector{0, 3}, Ask: Vector{0, 2}}}
	}
	if _, err := NewBook(good()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		bend func(*Task, *Provider)
	}{
		{"task 00000001 bids twice", func(b *Task, _ *Provider) { b.ID = id(1) }},
		{"provider 00000001 bids twice", func(_ *Task, p *Provider) { p.ID = id(1) }},
		{"demands nothing", func(b *Task, _ *Provider) { b.Demand = Vector{} }},
		{"a fee of 10 utally", func(b *Task, _ *Provider) { b.Fee = 10 }},
		{"a budget of", func(b *Task, _ *Provider) { b.Budget = MaxBudget + 1 }},
		{"units of kind 7", func(b *Task, _ *Provider) { b.Demand[7] = MaxUnits + 1 }},
		{"units of kind 7", func(_ *Task, p *Provider) { p.Capacity[7] = MaxUnits + 1 }},
		{"an ask of 0", func(_ *Task, p *Provider) { p.Ask[1] = 0 }},
		{"an ask of", func(_ *Task, p *Provider) { p.Ask[1] = MaxAsk + 1 }},
		{"a handicap of", func(_ *Task, p *Provider) { p.Handicap = bps + 1 }},
	} {
		tasks, providers := good()
		c.bend(&tasks[1], &providers[1])
		if _, err := NewBook(tasks, providers); !errors.Is(err, ErrBid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	var rich []Task
	for i := range MaxBudgets/MaxBudget + 1 {
		rich = append(rich, Task{ID: id(i), Demand: Vector{1}, Budget: MaxBudget})
	}
	if _, err := NewBook(rich, nil); err == nil || !strings.Contains(err.Error(), "together") {
		t.Errorf("budgets of all: %v", err)
	}
}

// The result depends on who bids what, and on nothing else.
func TestClearingDependsOnTheBookAlone(t *testing.T) {
	everyRule(t, func(t *rapid.T, m market, p Params) {
		tasks, providers := m.draw(t)
		measure := drawMeasure(t, p.Rule)
		again, others := append([]Task(nil), tasks...), append([]Provider(nil), providers...)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		r.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
		_, one, err := Clear(book(t, tasks, providers), p, measure)
		if err != nil {
			t.Fatal(err)
		}
		_, two, err := Clear(book(t, again, others), p, measure)
		if err != nil {
			t.Fatal(err)
		}
		if !same(one, two) {
			t.Fatalf("%+v, and in another order %+v", one, two)
		}
	})
}
