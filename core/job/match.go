package job

import (
	"cmp"
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
	Providers  []Party    // who work under the lead, in account order
	Validators []Party    // all others that are independent of the lead, in account order
	Seed       canon.Hash // of the block, which is later than that of the order
	Params     Params
	Deposit    uint64                      // utally, locked beside the price
	Free       func(account string) uint64 // utally that it could put up as a bond
}

// Dearest returns the highest rates among parties, which a quote assumes.
func Dearest(parties []Party) (r Rates) {
	for _, p := range parties {
		r = r.Dearest(p.Rates)
	}
	return r
}

// NewLease begins a lease at protocol time now. The pool of auditors, the custodians of the
// order's files and the succession of the lead are drawn here. The seed was not known when the
// order was posted. The lead is never among auditors and custodians.
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
	if len(m.Providers) > MaxParties {
		return Lease{}, nil, fmt.Errorf("%d providers, a lease has at most %d", len(m.Providers), MaxParties)
	}
	l := Lease{
		Order: m.Order, Params: m.Params, FeeBps: m.FeeBps, Quote: q, Seed: m.Seed, MatchedAt: now,
		Providers: m.Providers, LeadOwner: m.Owner, Phase: Active,
		Deposit: m.Deposit,
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
	if l.Auditors, err = weighted(l.lots(m.Seed, beacon.Pool, 0, 0), m.Validators, MaxParties); err != nil {
		return Lease{}, nil, err
	}
	bond, err := l.leadBond()
	if err != nil {
		return Lease{}, nil, err
	}
	effects, err := l.Reserve.hold(m.Lead, ForLead, bond)
	if err != nil {
		return Lease{}, nil, err
	}
	l.Leads = []Leader{{Account: m.Lead}}
	successors, err := weighted(l.lots(m.Seed, beacon.Succession, 0, 0), m.Validators, MaxParties)
	if err != nil {
		return Lease{}, nil, err
	}
	for _, v := range successors {
		l.Leads = append(l.Leads, Leader{Account: v.Account})
	}
	files, err := l.drawFiles(m.Seed, &means{free: m.Free}, now)
	return l, append(effects, files...), err
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
