package market

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/role"
)

// Costs are what an order costs as it is, then with other assurances.
type Costs struct {
	Order    string    `json:"order"` // what it starts from
	FLOPs    float64   `json:"flops"` // of its result
	MaxPrice uint64    `json:"max_price_utally"`
	Variants []Variant `json:"variants"`
	Time     *Guess    `json:"time,omitempty"` // of the best offer
}

// Variant is what an order costs with one assurance.
type Variant struct {
	Assurance string  `json:"assurance"`
	Own       bool    `json:"as_written"`
	Best      string  `json:"best,omitempty"`
	Offers    []Asked `json:"offers"`            // those that meet it first, then by price
	Refused   string  `json:"refused,omitempty"` // why the chain would not take it
}

// Asked is what an offer would take, by parts. Price = Pay + Wages + Fee + Burn + Tax.
type Asked struct {
	Validator string `json:"validator"`
	Price     uint64 `json:"price_utally"`
	Pay       uint64 `json:"pay_utally"`   // to providers
	Wages     uint64 `json:"wages_utally"` // to auditors and custodians
	Fee       uint64 `json:"fee_utally"`   // to the validator
	Burn      uint64 `json:"burn_utally"`
	Tax       uint64 `json:"tax_utally"`
	Deposit   uint64 `json:"deposit_utally"` // locked beside it, and returned
	Providers int    `json:"providers"`
	Obstacle  string `json:"obstacle,omitempty"`
}

// Guess is how long providers would compute, by their measured speeds.
type Guess struct {
	Compute  float64 `json:"compute_seconds"`
	Speed    uint64  `json:"flops_per_second"` // of those that were measured, together
	Measured int     `json:"providers_measured"`
	Windows  float64 `json:"windows_seconds"` // that come on top, at least
}

// Cost asks what a draft costs, as it is and with other assurances. env can ask a chain; source names what the draft starts from.
func Cost(ctx context.Context, env *role.Env, source string, d *consume.Draft) (*Costs, error) {
	p := &d.Problem
	out := &Costs{Order: source, FLOPs: float64(p.UnitFLOPs()) * float64(p.Units()), MaxPrice: d.Terms.MaxPrice}
	own := d.Terms.Form(p.Segments())
	add := func(name string, c job.Conditions) error {
		o := d.Unsigned()
		o.Conditions = c
		o.Conditions.MaxPrice = 0 // any
		v := Variant{Assurance: name, Own: name == assuranceName(own, &d.Terms), Offers: []Asked{}}
		checked := *o
		checked.Conditions.MaxPrice = 1
		if err := checked.Check(); err != nil {
			v.Refused = err.Error()
			out.Variants = append(out.Variants, v)
			return nil
		}
		q, err := consume.Quote(ctx, env, o)
		if err != nil {
			return err
		}
		v.Best = q.Best
		for _, b := range q.Bids {
			a := Asked{
				Validator: b.Validator, Price: b.Price, Fee: b.Fee, Burn: b.Burn, Tax: b.Tax, Deposit: b.Deposit,
				Providers: int(b.Providers), Obstacle: b.Obstacle,
			}
			if b.Price > 0 {
				a.Pay = b.UnitPrice * uint64(p.Units()*c.Copies())
				a.Wages = b.Price - a.Pay - b.Fee - b.Burn - b.Tax
			}
			v.Offers = append(v.Offers, a)
		}
		slices.SortStableFunc(v.Offers, func(x, y Asked) int {
			rank := func(a Asked) int {
				switch {
				case a.Validator == v.Best:
					return 0
				case a.Obstacle == "":
					return 1
				}
				return 2
			}
			return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(x.Price, y.Price))
		})
		out.Variants = append(out.Variants, v)
		return nil
	}
	if err := add(assuranceName(own, &d.Terms), d.Terms); err != nil {
		return nil, err
	}
	for _, other := range consume.Assurances(d.Terms, p.Segments()) {
		if name := assuranceName(other.Form(p.Segments()), &other); name != out.Variants[0].Assurance {
			if err := add(name, other); err != nil {
				return nil, err
			}
		}
	}
	var err error
	if best := out.Variants[0].Best; best != "" {
		out.Time, err = guess(ctx, env, best, d)
	}
	return out, err
}

// assuranceName is how an assurance is called in a table.
func assuranceName(form job.Form, c *job.Conditions) string {
	if c.Replicas > 0 {
		return fmt.Sprintf("replicas: %d", c.Replicas)
	}
	return string(form)
}

// guess tells how long the providers behind an offer would compute, if any of them was measured.
func guess(ctx context.Context, env *role.Env, lead string, d *consume.Draft) (*Guess, error) {
	behind, err := providers(ctx, providerv1.NewQueryClient(env.Chain.Conn), lead)
	if err != nil {
		return nil, err
	}
	p := &d.Problem
	g := &Guess{Windows: float64(d.Terms.Windows(p.Rounds)) / 1000}
	for i := range behind {
		if v := wire.SpeedOf(&behind[i].Pace); v > 0 {
			g.Speed += v
			g.Measured++
		}
	}
	if g.Speed == 0 {
		return nil, nil
	}
	g.Compute = float64(p.UnitFLOPs()) * float64(p.Units()*d.Terms.Copies()) / float64(g.Speed)
	return g, nil
}
