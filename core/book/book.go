// Package book is the rule by which one order meets the offers of a book.
//
// It is best execution by price–time priority. Of the offers that meet every condition of an
// order, the cheapest wins. Of equals, the one that has stood longest at its terms wins; of
// these, the one whose validator comes first in byte order. Call [Best] for the winner, [Offer.Before] for the
// order in which offers stand, and [Place.Replaced] for what an offer that is replaced
// keeps of its time. [Wait] says when an order that nobody met is tried again.
//
// Invariant: the result depends on the offers alone, and not on their order.
//
// Source: order and offer of DKLabs.AI, §7; price–time priority as exchanges have it.
package book

import (
	"cmp"
	"fmt"
	"slices"
)

// Bid is what an order asks of an offer.
type Bid struct {
	MaxPrice  uint64 // utally for the whole order
	Providers int    // at least so many
	Referees  int    // drawn auditors and custodians that the validator must leave: others it is not affiliated with
	Validator string // this one only, if not empty
}

// Offer is a validator's standing offer, priced for one order.
type Offer struct {
	Validator string
	Price     uint64 // utally for the whole order
	Since     int64  // protocol time in ms: its Place's
	Providers int
	Referees  int // independent validators beside it
}

// Before reports whether o stands before x in the book.
func (o Offer) Before(x Offer) bool { return compare(o, x) < 0 }

func compare(o, x Offer) int {
	return cmp.Or(cmp.Compare(o.Price, x.Price), cmp.Compare(o.Since, x.Since), cmp.Compare(o.Validator, x.Validator))
}

// Meets returns nil, or in words the first condition of b that o does not meet.
func (b Bid) Meets(o Offer) error {
	switch {
	case b.Validator != "" && o.Validator != b.Validator:
		return fmt.Errorf("the order names validator %s", b.Validator)
	case o.Providers < b.Providers:
		return fmt.Errorf("%d providers, the order wants %d", o.Providers, b.Providers)
	case o.Referees < b.Referees:
		return fmt.Errorf("%d independent validators to audit and keep, the order wants %d", o.Referees, b.Referees)
	case o.Price > b.MaxPrice:
		return fmt.Errorf("costs %d utally, the order pays at most %d", o.Price, b.MaxPrice)
	}
	return nil
}

// Best returns the offer that wins b; ok is false if none meets it.
func Best(b Bid, offers []Offer) (best Offer, ok bool) {
	eligible := slices.DeleteFunc(slices.Clone(offers), func(o Offer) bool { return b.Meets(o) != nil })
	if len(eligible) == 0 {
		return Offer{}, false
	}
	return slices.MinFunc(eligible, compare), true
}

// Place is what gives an offer its time: the terms that it competes by, and since when it has had them.
type Place struct {
	FeeBps    uint32 // on the providers' pay, in 1/10000: its price
	MaxLeases uint32 // its size
	Since     int64  // protocol time in ms
}

// Replaced returns the place of an offer that p's is replaced with at a time. Another fee is
// another price, and more leases are more than has waited: both go to the back. The same fee for as many leases
// or fewer keeps its time. When an offer ends does not count, for it may be withdrawn at any time.
func (p Place) Replaced(feeBps, maxLeases uint32, now int64) Place {
	since := now
	if feeBps == p.FeeBps && maxLeases <= p.MaxLeases {
		since = p.Since
	}
	return Place{FeeBps: feeBps, MaxLeases: maxLeases, Since: since}
}

// What a block looks at, at most. Where there is more, blocks take it part by part.
const (
	MaxTries  = 64   // open orders that it tries with all offers that it looks at
	MaxOffers = 512  // offers
	MaxPeers  = 2048 // providers behind them
)

// An order that nobody has met is tried again after a delay in ms, which doubles each time between
// these bounds.
const (
	firstDelay = 10_000
	lastDelay  = 600_000
)

// Wait returns after how many ms an order is tried again that waited so long before it was tried the last time.
func Wait(last int64) int64 { return min(max(2*last, firstDelay), lastDelay) }
