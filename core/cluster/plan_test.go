package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// network is validators and providers, as drawn.
type network struct {
	validators []Validator
	providers  []Provider
}

func draw(t *rapid.T, most int) (w network) {
	m, n := rapid.IntRange(1, 4).Draw(t, "validators"), rapid.IntRange(0, most).Draw(t, "providers")
	for j := range m {
		w.validators = append(w.validators, Validator{fmt.Sprint("v", j), rapid.IntRange(0, most/2+1).Draw(t, "room")})
	}
	for i := range n {
		p := Provider{Account: fmt.Sprint("p", i)}
		if at := rapid.IntRange(0, m).Draw(t, "now"); at < m {
			p.Now = w.validators[at].Account
		}
		p.Region = rapid.SampledFrom([]string{"", "DE", "FR", "US"}).Draw(t, "region")
		p.Speed = rapid.SampledFrom([]uint64{0, 1, 5, 20, 400}).Draw(t, "speed") * 10_000_000_000
		p.Links = rapid.SliceOfN(links, 0, m).Draw(t, "links")
		w.providers = append(w.providers, p)
	}
	return w
}

func (w network) plan(t testing.TB, r Rules) *Plan {
	t.Helper()
	p, err := Make(w.validators, w.providers, r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// loads counts who is where, by one side of all advice.
func loads(p *Plan, side func(*Advice) Place) map[string]int {
	out := map[string]int{}
	for i := range p.Advice {
		out[side(&p.Advice[i]).Validator]++
	}
	return out
}

func isAt(a *Advice) Place { return a.Now }
func goes(a *Advice) Place { return a.To }

// follow does what a plan says.
func (w network) follow(p *Plan) (out network) {
	out.validators, out.providers = w.validators, slices.Clone(w.providers)
	to := map[string]string{}
	for _, a := range p.Advice {
		to[a.Provider] = a.To.Validator
	}
	for i := range out.providers {
		out.providers[i].Now = to[out.providers[i].Account]
	}
	return out
}

// shuffled is the same network in another order.
func (w network) shuffled(seed uint64) (out network) {
	r := rand.New(rand.NewPCG(seed, 0))
	perm := r.Perm(len(w.validators))
	for _, j := range perm {
		out.validators = append(out.validators, w.validators[j])
	}
	for _, i := range r.Perm(len(w.providers)) {
		p := w.providers[i]
		p.Links = make([]Link, len(perm))
		for k, j := range perm {
			if j < len(w.providers[i].Links) {
				p.Links[k] = w.providers[i].Links[j]
			}
		}
		out.providers = append(out.providers, p)
	}
	return out
}

func TestPlanKeepsWhatItPromises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, r := draw(rt, 12), Standard
		r.Moved = rapid.IntRange(0, 1000).Draw(rt, "moved")
		p := w.plan(t, r)
		if other := w.shuffled(rapid.Uint64().Draw(rt, "seed")).plan(t, r); !slices.Equal(p.Advice, other.Advice) {
			rt.Fatalf("in another order the plan is another:\n%+v\n%+v", p, other)
		}
		before, after := loads(p, isAt), loads(p, goes)
		free := 0
		for _, v := range w.validators {
			if after[v.Account] > max(v.Room, before[v.Account]) {
				rt.Fatalf("%s has room for %d, had %d and is to have %d", v.Account, v.Room, before[v.Account], after[v.Account])
			}
			free += max(0, v.Room-after[v.Account])
		}
		if after[""] > 0 && free > 0 {
			rt.Fatalf("%d are left over, and there are %d places", after[""], free)
		}
		if n := len(w.providers) - before[""]; p.Moves > max(2, n*r.Moved/1000) {
			rt.Fatalf("%d of %d move", p.Moves, n)
		}
		for _, a := range p.Advice {
			is, then := a.Now.Cost.Sum(), a.To.Cost.Sum()
			switch {
			case a.Now.Validator == "" || a.Now.Validator == a.To.Validator:
			case a.To.Validator == "":
				rt.Fatalf("%s is to leave for nowhere", a.Provider)
			case (then+r.Least > is || then*1000 > is*(1000-r.Part)) && before[a.Now.Validator] <= room(w, a.Now.Validator):
				rt.Fatalf("%s is to move at a cost of %d, of %d now", a.Provider, then, is)
			}
		}
	})
}

func room(w network, account string) int {
	return w.validators[slices.IndexFunc(w.validators, func(v Validator) bool { return v.Account == account })].Room
}

func TestAccountsThatAreThereTwice(t *testing.T) {
	if _, err := Make([]Validator{{"v", 1}, {"w", 1}, {"v", 2}}, nil, Standard); err == nil {
		t.Error("a validator is there twice")
	}
	if _, err := Make(nil, []Provider{{Account: "p"}, {Account: "p"}}, Standard); err == nil {
		t.Error("a provider is there twice")
	}
}

// Whoever follows every plan ends: with what is known unchanged nobody moves any more, no cluster has more than it may,
// and each plan but those that empty a cluster lowers what all cost.
func TestPlansEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := draw(rt, 12)
		for j := range w.validators {
			w.validators[j].Room = max(w.validators[j].Room, (len(w.providers)+len(w.validators)-1)/len(w.validators))
		}
		w = w.follow(w.plan(t, Standard)) // whoever had none has one
		for plans := 0; ; plans++ {
			if plans > 200 {
				rt.Fatal("it does not end")
			}
			p := w.plan(t, Standard)
			crowded, all := false, loads(p, isAt)
			for _, v := range w.validators {
				crowded = crowded || all[v.Account] > v.Room
			}
			if p.Moves == 0 {
				if crowded {
					rt.Fatalf("it ends in a crowd: %v", all)
				}
				return
			}
			next := w.follow(p)
			if after := next.plan(t, Standard).Before; !crowded && after >= p.Before {
				rt.Fatalf("%d moves made of a cost of %d one of %d", p.Moves, p.Before, after)
			}
			w = next
		}
	})
}

// Measured again, with errors of a twentieth, nobody who has moved is sent back.
func TestErrorsSendNobodyBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, err := draw(rt, 8), rapid.Uint64Range(950, 1050)
		for i := range w.providers {
			p := &w.providers[i]
			p.Region, p.Speed, p.Now, p.Links = "", 0, w.validators[i%len(w.validators)].Account, nil
			for range w.validators {
				p.Links = append(p.Links, Link{rapid.Uint64Range(1000, 1_000_000).Draw(rt, "rtt"), rapid.Uint64Range(1_000_000, 100_000_000).Draw(rt, "rate")})
			}
		}
		for j := range w.validators {
			w.validators[j].Room = len(w.providers) // nobody is put out
		}
		p := w.plan(t, Standard)
		was := map[string]string{}
		for _, a := range p.Advice {
			if a.To.Validator != a.Now.Validator {
				was[a.Provider] = a.Now.Validator
			}
		}
		next := w.follow(p)
		for i := range next.providers {
			again := slices.Clone(next.providers[i].Links)
			for j, l := range again {
				again[j] = Link{l.RTT * err.Draw(rt, "error") / 1000, l.Rate * err.Draw(rt, "error") / 1000}
			}
			next.providers[i].Links = again
		}
		for _, a := range next.plan(t, Standard).Advice {
			if a.To.Validator == was[a.Provider] && a.Now != a.To {
				rt.Fatalf("%s is sent back: it costs %d, and %d there", a.Provider, a.Now.Cost.Sum(), a.To.Cost.Sum())
			}
		}
	})
}

// What is said of one provider's links changes no other's costs. Where there is room for all, and all may move, it changes
// nobody else's advice either. Where there is not, it takes one place: still nobody is sent where it costs more.
func TestForgedLinksAreTheForgersOwn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, r := draw(rt, 10), Standard
		if len(w.providers) == 0 {
			return
		}
		wide := rapid.Bool().Draw(rt, "room for all")
		if wide {
			r.Moved = 1000
			for j := range w.validators {
				w.validators[j].Room = len(w.providers) + 2
			}
			if len(w.providers) < 2 {
				return
			}
		}
		forged := network{w.validators, slices.Clone(w.providers)}
		liar := &forged.providers[rapid.IntRange(0, len(w.providers)-1).Draw(rt, "liar")]
		liar.Links = rapid.SliceOfN(links, 0, len(w.validators)).Draw(rt, "forged")
		honest, lied := w.plan(t, r), forged.plan(t, r)
		for i, a := range honest.Advice {
			b := lied.Advice[i]
			if a.Provider == liar.Account {
				continue
			}
			if a.Now != b.Now {
				rt.Fatalf("%s finds its place otherwise: %+v, %+v", a.Provider, a.Now, b.Now)
			}
			if a.To.Validator == b.To.Validator && a.To != b.To || wide && a.To != b.To {
				rt.Fatalf("%s is advised otherwise: %+v, %+v", a.Provider, a.To, b.To)
			}
			at := b.Now.Validator
			if at != "" && loads(lied, isAt)[at] <= room(w, at) && b.To.Cost.Sum() > b.Now.Cost.Sum() {
				rt.Fatalf("%s loses by a lie of %s", b.Provider, liar.Account)
			}
		}
	})
}

// Who begins finds each place that is free, the best first, and is sent to it by a plan.
func TestPlacesOfANewcomer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := draw(rt, 8)
		for i := range w.providers {
			w.providers[i].Now = w.validators[i%len(w.validators)].Account
		}
		p := Provider{Account: "newcomer", Region: "DE", Now: "v0", Links: rapid.SliceOfN(links, 0, len(w.validators)).Draw(rt, "links")}
		got, err := Places(w.validators, w.providers, p, Standard)
		if err != nil {
			t.Fatal(err)
		}
		all, free := loads(w.plan(t, Standard), isAt), 0
		for _, v := range w.validators {
			if all[v.Account] < v.Room {
				free++
			}
		}
		if len(got) != free {
			rt.Fatalf("%d places, want %d", len(got), free)
		}
		for i, x := range got {
			if i > 0 && x.Cost.Sum() < got[i-1].Cost.Sum() {
				rt.Fatalf("the %dth costs %d, and the one before %d", i, x.Cost.Sum(), got[i-1].Cost.Sum())
			}
		}
		p.Now = ""
		w.providers = append(w.providers, p)
		for _, a := range w.plan(t, Standard).Advice {
			if a.Provider == p.Account && free > 0 && a.To != got[0] {
				rt.Fatalf("it is sent to %+v, and finds %+v", a.To, got[0])
			}
		}
	})
}
