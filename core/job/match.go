package job

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// Match is an order that met an offer.
type Match struct {
	Order      Order
	Lead       string
	Owner      string // of the lead, as declared; empty for itself
	FeeBps     uint64
	Providers  []Party // behind the offer, or for replicas behind all offers; in account order
	Validators []Party // of those that are independent of the lead the ones with the most stake, in account order
	Params     Params
	Deposit    uint64                                 // utally, locked beside the price
	Sold       []Share                                // utally of stake behind what providers have sold to the order
	Affords    func(account string, bond uint64) bool // whether it can put up so many utally
}

// Dearest returns the highest rates among parties, which a quote assumes.
func Dearest(parties []Party) (r Rates) {
	for _, p := range parties {
		r = r.Dearest(p.Rates)
	}
	return r
}

// NewLease begins a lease at protocol time now. Who takes part is fixed here, and nobody is drawn: the
// first tick after now draws the succession of the lead and the custodians of the order's files. So
// whoever proposes this block chooses its parties without knowing the draws.
func NewLease(m Match, now int64) (Lease, []Effect, error) {
	p, c := &m.Order.Problem, &m.Order.Conditions
	if err := m.Order.Check(); err != nil {
		return Lease{}, nil, err
	}
	if err := m.Params.Timely(&m.Order); err != nil {
		return Lease{}, nil, err
	}
	q, err := NewQuote(p, c, Dearest(m.Providers), m.FeeBps, m.Params.Tariff)
	if err != nil {
		return Lease{}, nil, err
	}
	if q.Price > c.MaxPrice {
		return Lease{}, nil, fmt.Errorf("the offer costs %d utally, the order pays at most %d", q.Price, c.MaxPrice)
	}
	if n := max(c.Auditors, c.Custodians); m.referees() < n || find(m.Validators, m.Lead) != nil {
		return Lease{}, nil, fmt.Errorf("%d independent validators beside the lead, the order wants %d", m.referees(), n)
	}
	if n := Owners(m.Providers); n < c.Replicas {
		return Lease{}, nil, fmt.Errorf("providers of %d owners, the order has each unit computed by %d", n, c.Replicas)
	}
	if max(len(m.Providers), len(m.Validators)) > MaxParties {
		return Lease{}, nil, fmt.Errorf("%d providers and %d validators, a lease has at most %d of each", len(m.Providers), len(m.Validators), MaxParties)
	}
	if err := errors.Join(Pool(m.Providers).check(), Pool(m.Validators).check()); err != nil {
		return Lease{}, nil, err
	}
	l := Lease{
		Order: m.Order, Params: m.Params, FeeBps: m.FeeBps, Quote: q, MatchedAt: now,
		Line: Line{Leads: []Leader{{Account: m.Lead}}}, LeadOwner: m.Owner, Providers: m.Providers, Auditors: m.Validators,
		Deposit: m.Deposit, Files: Files{Due: now}, Phase: Active,
	}
	if err := l.checkBonds(); err != nil {
		return Lease{}, nil, err
	}
	if l.Ledger.Escrow, err = money.Sum(q.Price, m.Deposit); err != nil {
		return Lease{}, nil, err
	}
	l.MakeSkeleton()
	l.enter(0)
	l.sight = nil
	trial := l // by no value: are there enough that could put up a bond for the files?
	if _, err := trial.drawFiles(canon.Hash{}, &means{affords: m.Affords}, now); err != nil {
		return Lease{}, nil, err
	}
	bond, err := l.leadBond()
	if err != nil {
		return Lease{}, nil, err
	}
	effects, err := l.Reserve.hold(m.Lead, ForLead, bond)
	for _, s := range m.Sold {
		held, bad := l.Reserve.hold(s.Account, ForSale, s.Amount)
		effects, err = append(effects, held...), cmp.Or(err, bad)
	}
	return l, effects, err
}

// drawSuccession draws who may take over from the lead, and in which order.
func (l *Lease) drawSuccession(seed canon.Hash) error {
	line, err := weighted(l.lots(seed, beacon.Succession, 0, 0), l.Auditors, MaxLine)
	for _, v := range line {
		l.Leads = append(l.Leads, Leader{Account: v.Account})
	}
	return err
}

// referees returns how many owners at least could judge a unit, whoever computes it.
func (m *Match) referees() int {
	lead := cmp.Or(m.Owner, m.Lead)
	owners := ownersOf(without(m.Validators, []string{lead}))
	var both int // that have a provider, too, and judge no unit of its
	for _, o := range ownersOf(m.Providers) {
		if _, judges := slices.BinarySearch(owners, o); judges {
			both++
		}
	}
	return len(owners) - min(both, m.Order.Conditions.Copies())
}

// leadBond returns what a lead reserves.
func (l *Lease) leadBond() (uint64, error) {
	b, err := l.Quote.Bond(&l.Order.Problem, &l.Order.Conditions, &l.Params, 0, l.Order.Conditions.AuditSegments)
	return b.Amount, err
}
