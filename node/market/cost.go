package market

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/role"
)

// Costs are what an order costs as it is, then with other assurances.
type Costs struct {
	Order    string    `json:"order"` // what it starts from
	FLOPs    float64   `json:"flops"` // of its result
	MaxPrice uint64    `json:"max_price_utally"`
	Deposit  uint64    `json:"deposit_utally"` // locked beside the maximum price, and returned
	Variants []Variant `json:"variants"`
	Time     *Guess    `json:"time,omitempty"` // of the best offer
}

// Variant is what an order costs with one assurance: at standing offers, or at an auction.
type Variant struct {
	Assurance string   `json:"assurance"`
	Own       bool     `json:"as_written"`
	Best      string   `json:"best,omitempty"`
	Offers    []Asked  `json:"offers"`            // those that meet it first, then by price
	Auction   *Outlook `json:"auction,omitempty"` // of an order that asks for one
	Refused   string   `json:"refused,omitempty"` // why the chain would not take it, or no offer meets it
}

// Asked is what an offer would take with all of its providers, by parts. Price = Pay + Wages + Fee + Burn + Tax.
type Asked struct {
	Validator string `json:"validator"`
	Price     uint64 `json:"price_utally"`
	Least     uint64 `json:"least_utally"` // the lowest maximum price that it takes: fewer, cheaper providers
	Pay       uint64 `json:"pay_utally"`   // to providers
	Wages     uint64 `json:"wages_utally"` // to auditors and custodians
	Fee       uint64 `json:"fee_utally"`   // to the validator
	Burn      uint64 `json:"burn_utally"`
	Tax       uint64 `json:"tax_utally"`
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
	var err error
	if out.Deposit, err = consume.Deposit(ctx, env, d.Unsigned()); err != nil {
		return nil, err
	}
	forms := append([]job.Conditions{d.Terms}, consume.Assurances(d.Terms, p.Segments())...)
	var on *sale
	if d.Terms.Auction {
		if on, err = lookAtSale(ctx, env); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{}
	for i, c := range forms {
		name := assuranceName(c.Form(p.Segments()), &c)
		if seen[name] {
			continue
		}
		seen[name] = true
		o := d.Unsigned()
		o.Conditions = c
		v, err := variant(ctx, env, o, uint64(d.Bid), on)
		if err != nil {
			return nil, err
		}
		v.Assurance, v.Own = name, i == 0
		out.Variants = append(out.Variants, *v)
	}
	if best := out.Variants[0].Best; best != "" {
		out.Time, err = guess(ctx, env, best, d)
	}
	return out, err
}

// variant asks what an order costs that bids so much in secret; on is what is on sale, if it asks for auctions.
func variant(ctx context.Context, env *role.Env, o *job.Order, bid uint64, on *sale) (*Variant, error) {
	v := &Variant{Offers: []Asked{}}
	err := o.Check()
	switch {
	case err != nil:
		v.Refused = err.Error()
		return v, nil
	case o.Conditions.Auction:
		v.Auction, err = on.outlook(o, bid)
		return v, err
	}
	o.Conditions.MaxPrice = 0 // any, with all providers
	q, err := consume.Quote(ctx, env, o)
	if err != nil {
		return nil, err
	}
	o.Conditions.MaxPrice = 1 // too little for anybody: the fewest providers are priced
	least, err := consume.Quote(ctx, env, o)
	if err != nil {
		return nil, err
	}
	v.enter(o, q, least)
	return v, nil
}

// enter takes offers whose validator has providers for an order, as they are priced at any price and at the least.
func (v *Variant) enter(o *job.Order, q, least *marketv1.QueryQuoteResponse) {
	v.Best = q.Best
	leasts := map[string]uint64{}
	for _, b := range least.Bids {
		leasts[b.Validator] = b.Price
	}
	obstacles := map[string]bool{}
	for _, b := range q.Bids {
		obstacles[b.Obstacle] = true
		if b.Price == 0 && b.Providers == 0 {
			continue
		}
		a := Asked{
			Validator: b.Validator, Price: b.Price, Least: leasts[b.Validator], Fee: b.Fee, Burn: b.Burn, Tax: b.Tax,
			Providers: int(b.Providers), Obstacle: b.Obstacle,
		}
		if b.Price > 0 {
			a.Pay = b.UnitPrice * uint64(o.Problem.Units()*o.Conditions.Copies())
			a.Wages = b.Price - a.Pay - b.Fee - b.Burn - b.Tax
		}
		v.Offers = append(v.Offers, a)
	}
	if len(obstacles) == 1 && v.Best == "" || len(v.Offers) == 0 { // of all, or of those that have no providers for it
		v.Offers = []Asked{}
		v.Refused = strings.Join(slices.Sorted(maps.Keys(obstacles)), "; ")
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
}

// assuranceName is how an assurance is called in a table.
func assuranceName(form job.Form, c *job.Conditions) string {
	if c.Replicas > 0 {
		return fmt.Sprintf("replicas: %d", c.Replicas)
	}
	return string(form)
}

// guess tells how long the providers behind an offer would compute, if any of them has shown its speed.
func guess(ctx context.Context, env *role.Env, lead string, d *consume.Draft) (*Guess, error) {
	behind, err := providers(ctx, providerv1.NewQueryClient(env.Chain.Conn), lead)
	if err != nil {
		return nil, err
	}
	p := &d.Problem
	g := &Guess{Windows: float64(d.Terms.Windows(p.Rounds)) / 1000}
	for i := range behind {
		if p := wire.PaceFromProto(&behind[i].Pace); p.Seen() && p.Speed() > 0 {
			g.Speed += p.Speed()
			g.Measured++
		}
	}
	if g.Speed == 0 {
		return nil, nil
	}
	g.Compute = float64(p.UnitFLOPs()) * float64(p.Units()*d.Terms.Copies()) / float64(g.Speed)
	return g, nil
}
