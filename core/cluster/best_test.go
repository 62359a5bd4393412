package cluster

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// best returns the most that a plan can gain, by trying all: of those who use only places that are free at the
// beginning, and of all.
func best(p *planner) (free, all int64) {
	load := append([]int{}, p.load...)
	arrived := make([]int, len(load))
	var try func(i, moves int, gained int64)
	try = func(i, moves int, gained int64) {
		if moves > p.left {
			return
		}
		if i == len(p.providers) {
			for j := range load {
				if load[j] > p.validators[j].Room {
					return
				}
			}
			all = max(all, gained)
			for j := range arrived {
				if arrived[j] > p.validators[j].Room-p.load[j] {
					return
				}
			}
			free = max(free, gained)
			return
		}
		try(i+1, moves, gained)
		for j := range p.validators {
			w := wish{int64(p.is[i]) - int64(p.place(i, j).Cost.Sum()), int32(i), int32(j)}
			if j == p.now[i] || !p.gains(w) {
				continue
			}
			load[j], load[p.now[i]], arrived[j] = load[j]+1, load[p.now[i]]-1, arrived[j]+1
			try(i+1, moves+1, gained+w.gain)
			load[j], load[p.now[i]], arrived[j] = load[j]-1, load[p.now[i]]+1, arrived[j]-1
		}
	}
	try(0, 0, 0)
	return free, all
}

// A plan gains at least half of what the best does that fills only places which are free: wishes for them are an
// intersection of two matroids, of which greed takes half. What it gains by places that become free comes on top.
func TestPlanGainsHalfOfTheBest(t *testing.T) {
	var got, most int64
	rapid.Check(t, func(rt *rapid.T) {
		w, r := draw(rt, 6), Standard
		r.Moved = rapid.SampledFrom([]int{300, 500, 1000}).Draw(rt, "moved")
		for i := range w.providers {
			if w.providers[i].Now == "" {
				w.providers[i].Now = w.validators[i%len(w.validators)].Account
			}
		}
		now := map[string]int{}
		for _, p := range w.providers {
			now[p.Now]++
		}
		for j := range w.validators {
			v := &w.validators[j]
			v.Room = max(v.Room, now[v.Account])
		}
		p := w.plan(t, r)
		fresh, err := newPlanner(w.validators, w.providers, &r)
		if err != nil {
			t.Fatal(err)
		}
		free, all := best(fresh)
		if gained := int64(p.Before) - int64(p.After); 2*gained < free || gained > all {
			rt.Fatalf("the plan gains %d, the best %d, and %d with free places alone", gained, all, free)
		} else {
			got, most = got+gained, most+all
		}
	})
	t.Logf("plans gain %d of 1000 parts of what the best gain", got*1000/max(most, 1))
}

// crowd is a network of places on a plane: what is far away is slow.
func crowd(n, m int) (w network) {
	r := rand.New(rand.NewPCG(uint64(n), uint64(m)))
	var at [][2]float64
	for j := range m {
		w.validators = append(w.validators, Validator{fmt.Sprintf("v%04d", j), Room(n, m)})
		at = append(at, [2]float64{r.Float64(), r.Float64()})
	}
	for i := range n {
		x, y := r.Float64(), r.Float64()
		p := Provider{Account: fmt.Sprintf("p%06d", i), Now: w.validators[r.IntN(m)].Account, Region: string([]byte{'A' + byte(3*x), 'A' + byte(3*y)}), Speed: 10_000_000_000 << r.IntN(8)}
		for j := range m {
			dx, dy := x-at[j][0], y-at[j][1]
			d := dx*dx + dy*dy
			p.Links = append(p.Links, Link{1_000 + uint64(200_000*d), uint64(100_000_000 / (1 + 50*d))})
		}
		w.providers = append(w.providers, p)
	}
	return w
}

func BenchmarkMake(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		for _, m := range []int{10, 100} {
			b.Run(fmt.Sprintf("%d×%d", n, m), func(b *testing.B) {
				w := crowd(n, m)
				b.ReportAllocs()
				for b.Loop() {
					w.plan(b, Standard)
				}
			})
		}
	}
}
