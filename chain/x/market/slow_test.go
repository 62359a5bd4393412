package market_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// slow is the market as docs/spec has it, kept in lists that are searched from one end to the other. It shares with
// the keeper the registry that both read, and the formula of a price.
type slow struct {
	now, height int64
	registry    *registry
	offers      []marketv1.Offer
	orders      []*slowOrder // in the order of posting
	led         map[string]int
	cursor      string // account from which the next block looks at offers; empty before the first that could not look at all
	trades      []marketv1.Trade
	balance     map[string]uint64 // of consumers, validators and what was burnt or taxed
	work        int               // of this block: more than the market counts
}

// slowOrder is an order and what became of it.
type slowOrder struct {
	job.Order
	id             canon.Hash
	number         uint64
	status         marketv1.Status
	escrow         uint64
	deposit        uint64
	price          uint64
	lead           string
	expires, ended int64
	tried          bool // when it is tried next, and what came before
	at, delay      int64
	from           string
}

// did is what a block does to the book, in order.
type did struct {
	what   string
	order  string
	who    string
	amount uint64 // utally
}

func (s *slow) open(o *slowOrder) bool { return o.status == marketv1.STATUS_OPEN }

func (s *slow) offer(validator string) int {
	return slices.IndexFunc(s.offers, func(o marketv1.Offer) bool { return o.Validator == validator })
}

// post enters an order.
func (s *slow) post(o job.Order, number, deposit uint64) {
	x := &slowOrder{Order: o, id: o.ID(), number: number, status: marketv1.STATUS_OPEN, escrow: o.Conditions.MaxPrice + deposit, deposit: deposit, expires: s.now + o.Conditions.Expires, at: s.now}
	s.balance[o.Consumer] -= x.escrow
	s.orders = append(s.orders, x)
}

// close ends an order, and gives back what is left of it.
func (s *slow) close(o *slowOrder, end marketv1.Status) did {
	d := did{"closed " + end.String(), o.id.String(), "", o.escrow}
	s.balance[o.Consumer] += o.escrow
	o.status, o.escrow, o.ended = end, 0, s.now
	return d
}

// put posts an offer, or replaces one: the time of its terms stays unless it is dearer, cheaper or larger, or was over.
func (s *slow) put(o marketv1.Offer) {
	o.Since, o.Height = s.now, s.height
	if i := s.offer(o.Validator); i >= 0 {
		was := s.offers[i]
		if over := was.Ends != 0 && was.Ends <= s.now; !over && was.FeeBps == o.FeeBps && o.MaxLeases <= was.MaxLeases {
			o.Since = was.Since
		}
		s.offers = slices.Delete(s.offers, i, i+1)
	}
	s.offers = append(s.offers, o)
}

// block does what the end of a block does.
func (s *slow) block() (all []did) {
	s.work = 0
	due := slices.DeleteFunc(slices.Clone(s.orders), func(o *slowOrder) bool { return !s.open(o) || o.expires > s.now })
	slices.SortFunc(due, func(a, b *slowOrder) int {
		return cmp.Or(cmp.Compare(a.expires, b.expires), cmp.Compare(a.number, b.number))
	})
	for _, o := range due[:min(len(due), 128)] {
		all = append(all, s.close(o, marketv1.STATUS_EXPIRED))
	}
	over := slices.DeleteFunc(slices.Clone(s.offers), func(o marketv1.Offer) bool { return o.Ends == 0 || o.Ends > s.now })
	slices.SortFunc(over, func(a, b marketv1.Offer) int {
		return cmp.Or(cmp.Compare(a.Ends, b.Ends), cmp.Compare(bytesOf(a.Validator), bytesOf(b.Validator)))
	})
	for _, o := range over[:min(len(over), 64)] {
		i := s.offer(o.Validator)
		s.offers = slices.Delete(s.offers, i, i+1)
		all = append(all, did{"ended", "", o.Validator, 0})
	}
	if turn := s.turn(); len(turn) > 0 {
		all = append(all, s.tryAll(turn)...)
	}
	if slices.ContainsFunc(s.orders, func(o *slowOrder) bool { return s.open(o) && o.tried }) {
		all = append(all, s.again()...)
	}
	s.forget()
	return all
}

// forget forgets orders that ended without a lease long ago.
func (s *slow) forget() {
	gone := slices.DeleteFunc(slices.Clone(s.orders), func(o *slowOrder) bool {
		return o.status != marketv1.STATUS_CANCELLED && o.status != marketv1.STATUS_EXPIRED || o.ended > s.now-retention.Milliseconds()
	})
	slices.SortFunc(gone, func(a, b *slowOrder) int {
		return cmp.Or(cmp.Compare(a.ended, b.ended), cmp.Compare(a.number, b.number))
	})
	gone = gone[:min(len(gone), 64)]
	if len(gone) > 0 {
		s.orders = slices.DeleteFunc(s.orders, func(o *slowOrder) bool { return slices.Contains(gone, o) })
	}
}

// turn returns whose turn it is: those that were never tried and those that were, alternately, the longest due first.
func (s *slow) turn() (out []*slowOrder) {
	var lists [2][]*slowOrder
	for i := range lists {
		l := slices.DeleteFunc(slices.Clone(s.orders), func(o *slowOrder) bool { return !s.open(o) || o.tried != (i == 1) || o.at > s.now })
		slices.SortFunc(l, func(a, b *slowOrder) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number)) })
		l = slices.DeleteFunc(l[:min(len(l), 256)], func(o *slowOrder) bool { return o.expires <= s.now })
		lists[i] = l[:min(len(l), 64)]
	}
	for i := s.height % 2; len(out) < 64 && len(lists[0])+len(lists[1]) > 0; i = 1 - i {
		if l := lists[i]; len(l) > 0 {
			out, lists[i] = append(out, l[0]), l[1:]
		}
	}
	return out
}

// look returns the offers that a block looks at: of the leads in their circle, from one on, at most 2,048, and 512
// with offers. until is where the next block goes on; empty if all were seen.
func (s *slow) look() (seen []marketv1.Offer, from, until string) {
	from = cmp.Or(s.cursor, s.registry.from)
	leads := s.registry.leads
	begin := slices.IndexFunc(leads, func(l string) bool { return l >= from })
	if begin < 0 {
		begin = len(leads)
	}
	offers := 0
	for n := range leads {
		lead := leads[(begin+n)%len(leads)]
		i := s.offer(bech32Of(lead))
		if n >= 2048 || i >= 0 && offers == 512 {
			s.cursor = lead
			return seen, from, lead
		}
		if i >= 0 {
			offers++
			seen = append(seen, s.offers[i])
		}
	}
	return seen, from, ""
}

// tryAll tries orders with the offers that the block looks at, and lets those that nobody met wait.
func (s *slow) tryAll(turn []*slowOrder) (all []did) {
	seen, from, until := s.look()
	within := func(account string) bool {
		if from < until {
			return from <= account && account < until
		}
		return from <= account || account < until
	}
	for _, o := range turn {
		got, met := s.meet(o, seen)
		all = append(all, got...)
		switch {
		case met:
		case until == "" || o.from != "" && within(o.from):
			o.delay = min(max(2*o.delay, 10_000), 600_000)
			o.tried, o.at, o.from = true, s.now+o.delay, ""
		case o.from == "":
			o.from = from
		}
	}
	return all
}

// again tries orders that wait with the clusters that have improved.
func (s *slow) again() (all []did) {
	var seen []marketv1.Offer
	for _, lead := range s.registry.taken() {
		if i := s.offer(bech32Of(lead)); i >= 0 {
			seen = append(seen, s.offers[i])
		}
	}
	if len(s.registry.taken()) == 0 {
		return nil
	}
	var open []*slowOrder
	for _, o := range s.orders {
		if s.open(o) {
			open = append(open, o)
		}
	}
	if len(open) == 0 {
		return nil
	}
	from := open[0].number
	if span := open[len(open)-1].number - from + 1; span > 64 {
		from += uint64(s.height) * 64 % span
	}
	at := slices.IndexFunc(open, func(o *slowOrder) bool { return o.number >= from })
	late := open[at:min(len(open), at+64)]
	for _, o := range append(slices.Clone(open[:min(at, 64-len(late))]), late...) {
		if o.tried && o.at-o.delay != s.now && o.expires > s.now {
			got, _ := s.meet(o, seen)
			all = append(all, got...)
		}
	}
	return all
}

// meet gives an order to the best of some offers; of four that refuse it stays.
func (s *slow) meet(o *slowOrder, offers []marketv1.Offer) (all []did, met bool) {
	type priced struct {
		marketv1.Offer
		price uint64
		team  int
	}
	var able []priced
	for _, x := range offers {
		if price, team, ok := s.price(o, &x); ok {
			able = append(able, priced{x, price, team})
		}
	}
	slices.SortFunc(able, func(a, b priced) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.Since, b.Since), cmp.Compare(a.Validator, b.Validator))
	})
	for _, x := range able[:min(len(able), 4)] {
		if refuses(x.Validator, o.Nonce) {
			continue
		}
		s.work += 4 * (2 + judges)
		s.led[x.Validator]++
		surplus := o.Conditions.MaxPrice - x.price
		s.balance[o.Consumer] += surplus
		o.status, o.escrow, o.price, o.lead = marketv1.STATUS_LEASED, x.price+o.deposit, x.price, x.Validator
		s.trades = append(s.trades, marketv1.Trade{Order: o.id.String(), At: s.now, Price: x.price, Validator: x.Validator, Providers: uint32(x.team)})
		return []did{{"matched", o.id.String(), x.Validator, x.price}}, true
	}
	return nil, false
}

// price returns what an order costs with an offer: with as many of the cheapest providers as it pays for.
func (s *slow) price(o *slowOrder, x *marketv1.Offer) (price uint64, team int, ok bool) {
	c := &o.Conditions
	lead := s.registry.lead(x.Validator)
	s.work++
	if x.Height >= s.height || x.Ends != 0 && x.Ends <= s.now || lead.JailedUntil > s.now || s.led[x.Validator] >= int(x.MaxLeases) || c.Validator != "" && c.Validator != x.Validator {
		return 0, 0, false
	}
	s.work += 10
	var fit []providerv1.Candidate
	for _, p := range s.registry.providers[x.Validator] {
		if p.JailedUntil <= s.now && (len(c.Needs.Regions) == 0 || slices.Contains(c.Needs.Regions, p.Declared.Region)) {
			fit = append(fit, p)
		}
	}
	slices.SortFunc(fit, func(a, b providerv1.Candidate) int { return cmp.Compare(a.UnitPrice, b.UnitPrice) })
	for n := len(fit); n >= c.MinProviders; n-- {
		q, err := job.NewQuote(&o.Problem, c, job.Rates{GFLOP: fit[n-1].UnitPrice}, uint64(x.FeeBps), job.DefaultParams.Tariff)
		if err == nil && q.Price <= c.MaxPrice {
			return q.Price, n, q.Price <= leadFactor*lead.Stake
		}
	}
	return 0, 0, false
}

// leadFactor is the rule of a new registry.
const leadFactor = 10

// retention is how long orders stay that ended without a lease.
const retention = 30 * time.Minute
