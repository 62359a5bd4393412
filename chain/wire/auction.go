package wire

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/canon"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

// MeasureToProto returns m as certificates carry it.
func MeasureToProto(m auction.Measure) *auctionv1.Measure {
	out := &auctionv1.Measure{Shape: uint32(m.Shape)}
	for _, w := range m.Weight {
		out.Weights = append(out.Weights, uint32(w))
	}
	return out
}

// measureFromProto is the inverse of MeasureToProto.
func measureFromProto(m *auctionv1.Measure) (out auction.Measure, err error) {
	if m.Shape > math.MaxUint8 || len(m.Weights) != auction.Kinds {
		return out, fmt.Errorf("a measure has a shape, and %d weights", auction.Kinds)
	}
	out.Shape = auction.Shape(m.Shape)
	for k, w := range m.Weights {
		if w > math.MaxUint16 {
			return out, fmt.Errorf("a weight of %d, at most %d", w, math.MaxUint16)
		}
		out.Weight[k] = uint16(w)
	}
	return out, nil
}

// ClaimOf returns what the best certificate of a clearing claims, without its orders; ok is false if there is none.
func ClaimOf(p *auctionv1.Progress) (c auction.Certificate, ok bool, err error) {
	if p.Measure == nil {
		return c, false, nil
	}
	c.Welfare, c.Trades = p.Welfare, p.Trades
	c.Measure, err = measureFromProto(p.Measure)
	return c, true, err
}

// CertificateToProto returns c as it is posted.
func CertificateToProto(c *auction.Certificate) auctionv1.Certificate {
	out := auctionv1.Certificate{Measure: *MeasureToProto(c.Measure), Demands: c.Tasks, Welfare: c.Welfare, Trades: c.Trades}
	for _, s := range c.Sellers {
		out.Sellers = append(out.Sellers, auctionv1.Places{At: s})
	}
	return out
}

// CertificateFromProto is the inverse of CertificateToProto. The certificate that it returns is unchecked.
func CertificateFromProto(m *auctionv1.Certificate) (*auction.Certificate, error) {
	if len(m.Sellers) != auction.Kinds {
		return nil, fmt.Errorf("it has %d lists of sellers, want %d: one for each kind, empty or not", len(m.Sellers), auction.Kinds)
	}
	measure, err := measureFromProto(&m.Measure)
	c := &auction.Certificate{Measure: measure, Tasks: m.Demands, Welfare: m.Welfare, Trades: m.Trades}
	for k := range m.Sellers {
		c.Sellers[k] = m.Sellers[k].At
	}
	return c, err
}

// ClearingRules returns rules of auctions as core/auction has them.
func ClearingRules(p *auctionv1.Params) (auction.Params, error) {
	for _, r := range []auction.Rule{auction.Midpoint, auction.Critical, auction.McAfee, auction.SBBA, auction.Exponential} {
		if r.String() == p.Rule {
			out := auction.Params{
				Rule: r, AgeStep: p.AgeStep, AgeMost: p.AgeMost,
				Epsilon: p.Epsilon, Grid: auction.Grid{Least: p.GridLeast, Step: p.GridStep, Count: int(p.GridCount)},
			}
			return out, out.Check()
		}
	}
	return auction.Params{}, fmt.Errorf("rule %q prices no capacity: use midpoint or critical, or of sealed bids mcafee, sbba or exponential", p.Rule)
}

// SealedBids reports whether the rules of auctions take sealed bids.
func SealedBids(p *auctionv1.Params) bool {
	r, err := ClearingRules(p)
	return err == nil && r.Rule.Single()
}

// LeastWait returns for how long, in ms, an order waits at least that takes part, so that it is there when a clearing ends and its
// sellers are asked.
func LeastWait(p *auctionv1.Params) int64 {
	lasts := p.WindowMs
	if SealedBids(p) {
		lasts += p.RevealMs
	}
	return 2 * (lasts + WaitAfter(p))
}

// WaitAfter returns for how long, in ms, an order waits after a clearing in which it takes part: so that its sellers have time to come.
func WaitAfter(p *auctionv1.Params) int64 { return max(p.PeriodMs, p.AnswerMs) }

// Bid is what a sealed bid says once it is revealed, and the salt that hides it until then.
type Bid struct {
	Chain    string
	Clearing uint64
	Bidder   []byte     // account
	Order    canon.Hash // zero: it is an ask for a lot
	Price    uint64     // utally for a unit
	Salt     canon.Hash
}

// Commitment returns what is said of a bid while it is sealed. It is of no use to anybody else, nor in another clearing.
func (b *Bid) Commitment() canon.Hash {
	return canon.Sum(canon.DomainSeal, canon.Encode(func(e *canon.Encoder) {
		e.String(b.Chain)
		e.Uint(b.Clearing)
		e.Blob(b.Bidder)
		e.Hash(b.Order)
		e.Uint(b.Price)
		e.Hash(b.Salt)
	}))
}

// KindOf returns the place of a tier in a clearing; an empty one is the slowest.
func KindOf(c *auctionv1.Clearing, tier string) int {
	if i := slices.Index(c.Tiers, tier); i >= 0 {
		return i
	}
	return len(c.Tiers) - 1
}

// BookOf returns what is bid in a clearing, and its rules. Demands and sellers have the same places there and here.
func BookOf(c *auctionv1.Clearing) (*auction.Book, auction.Params, error) {
	rules, err := ClearingRules(&c.Params)
	if err != nil {
		return nil, rules, err
	}
	if len(c.Tiers) < 1 || len(c.Tiers) > auction.Kinds {
		return nil, rules, fmt.Errorf("clearing %d is of %d tiers, want 1 to %d", c.Number, len(c.Tiers), auction.Kinds)
	}
	sealed := rules.Rule.Single()
	copy(rules.Seed[:], c.Seed)
	tasks := make([]auction.Task, len(c.Demands))
	for i := range c.Demands {
		d := &c.Demands[i]
		t, units := auction.Task{Budget: d.Budget, Fee: d.Fee, Age: d.Age}, d.Units
		if sealed { // the price of a unit is bid for, by who wants some and by who has enough for anybody
			t, units = auction.Task{Budget: d.Bid}, 1
		}
		copy(t.ID[:], d.Order)
		t.Demand[KindOf(c, d.Tier)] = units
		tasks[i] = t
	}
	sellers := make([]auction.Provider, len(c.Sellers))
	for j := range c.Sellers {
		s := &c.Sellers[j]
		p := auction.Provider{Handicap: s.Handicap}
		copy(p.ID[:], s.Account)
		for _, l := range s.Lots {
			if int(l.Kind) >= len(c.Tiers) {
				return nil, rules, fmt.Errorf("clearing %d sells tier %d of %d", c.Number, l.Kind, len(c.Tiers))
			}
			p.Capacity[l.Kind], p.Ask[l.Kind] = l.Units, l.Ask
			if sealed {
				p.Capacity[l.Kind], p.Handicap = 1, 0
			}
		}
		sellers[j] = p
	}
	inOrder := slices.IsSortedFunc(tasks, func(x, y auction.Task) int { return bytes.Compare(x.ID[:], y.ID[:]) }) &&
		slices.IsSortedFunc(sellers, func(x, y auction.Provider) int { return bytes.Compare(x.ID[:], y.ID[:]) })
	if !inOrder { // the book would give them other places
		return nil, rules, fmt.Errorf("clearing %d has its demands or its sellers in another order than that of their bytes", c.Number)
	}
	b, err := auction.NewBook(tasks, sellers)
	return b, rules, err
}

// OutcomeOf clears a clearing by a measure.
func OutcomeOf(c *auctionv1.Clearing, m auction.Measure) (*auction.Outcome, error) {
	b, rules, err := BookOf(c)
	if err != nil {
		return nil, err
	}
	out, _, err := auction.Clear(b, rules, m)
	if err == nil && rules.Rule.Single() {
		out.Scale(b, func(task uint32) uint64 { return c.Demands[task].Units })
	}
	return out, err
}
