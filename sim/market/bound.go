package market

import (
	"cmp"
	"slices"

	"github.com/tally-network/tally/core/auction"
)

// Bound is more welfare than any clearing of a book can have, in utally: the value of the linear program in which tasks may
// be served in part, bounded from above. It returns the prices of units that show it, too.
//
// Weak duality: for any prices p of units, and whoever wins,
//
//	welfare ≤ Σ_tasks max(0, net_i − p·C_i) + Σ_providers Σ_kinds capacity_jk · max(0, p_k − ask_jk)
//
// The right side is convex in p. It is made small kind by kind; if each task demands one kind, it is least then, and is
// the program's value but for prices being whole utally.
func Bound(b *auction.Book) (welfare float64, prices [auction.Kinds]float64) {
	var d dual
	for j := range b.Providers {
		for k, units := range b.Providers[j].Capacity {
			if units > 0 {
				d.supply[k] = append(d.supply[k], line{float64(b.Providers[j].Ask[k]), float64(units)})
			}
		}
	}
	for k := range d.supply {
		slices.SortFunc(d.supply[k], func(x, y line) int { return cmp.Compare(x.at, y.at) })
		if s := d.supply[k]; len(s) > 0 {
			prices[k] = s[len(s)/2].at
		}
	}
	d.tasks = b.Tasks
	welfare = d.value(&prices)
	for range 20 {
		before := welfare
		for k := range prices {
			d.lower(k, &prices)
		}
		if welfare = d.value(&prices); before-welfare <= before*1e-6 {
			break
		}
	}
	return welfare, prices
}

// line is a number of units from a price on.
type line struct{ at, units float64 }

type dual struct {
	tasks  []auction.Task
	supply [auction.Kinds][]line
}

// value is the bound that prices show.
func (d *dual) value(p *[auction.Kinds]float64) (sum float64) {
	for k := range d.supply {
		for _, l := range d.supply[k] {
			if l.at >= p[k] {
				break
			}
			sum += l.units * (p[k] - l.at)
		}
	}
	for i := range d.tasks {
		t := &d.tasks[i]
		rent := float64(t.Budget - t.Fee)
		for k, q := range t.Demand {
			rent -= p[k] * float64(q)
		}
		sum += max(rent, 0)
	}
	return sum
}

// lower sets the price of a kind where supply first reaches demand, which is least for it: at a higher one, more is offered
// than wanted.
func (d *dual) lower(kind int, p *[auction.Kinds]float64) {
	var demand []line // from the highest price that its task would pay for a unit of the kind
	for i := range d.tasks {
		t := &d.tasks[i]
		q := float64(t.Demand[kind])
		if q == 0 {
			continue
		}
		rent := float64(t.Budget - t.Fee)
		for k, other := range t.Demand {
			if k != kind {
				rent -= p[k] * float64(other)
			}
		}
		if rent > 0 {
			demand = append(demand, line{rent / q, q})
		}
	}
	slices.SortFunc(demand, func(x, y line) int { return cmp.Compare(y.at, x.at) })
	s, i, wanted, offered := d.supply[kind], 0, 0.0, 0.0
	p[kind] = 0
	for _, l := range demand { // down the prices that tasks would pay
		wanted += l.units
		for i < len(s) && offered < wanted {
			offered += s[i].units
			i++
		}
		if i == 0 || offered < wanted || s[i-1].at >= l.at { // it is rationed at what this task would pay
			p[kind] = l.at
			return
		}
		p[kind] = s[i-1].at
	}
}
