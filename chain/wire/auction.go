package wire

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/auction"
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
	for _, r := range []auction.Rule{auction.Midpoint, auction.Critical} { // the others are for bids of one unit
		if r.String() == p.Rule {
			out := auction.Params{Rule: r, AgeStep: p.AgeStep, AgeMost: p.AgeMost}
			return out, out.Check()
		}
	}
	return auction.Params{}, fmt.Errorf("rule %q prices no capacity: use midpoint or critical", p.Rule)
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
	tasks := make([]auction.Task, len(c.Demands))
	for i := range c.Demands {
		d := &c.Demands[i]
		t := auction.Task{Budget: d.Budget, Fee: d.Fee, Age: d.Age}
		copy(t.ID[:], d.Order)
		t.Demand[KindOf(c, d.Tier)] = d.Units
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
