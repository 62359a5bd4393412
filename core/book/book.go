// Package book matches orders to offers.
//
// The rule is the plainest that is fair to state: of the offers that meet every
// condition of an order, the cheapest wins; of equals, the one whose validator
// comes first in byte order. [Best] is all of it.
//
// Invariant: the result depends on the book alone, and not on its order.
//
// Source: order and offer of DKLabs.AI, §7.
package book

import "fmt"

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
	Providers int
	Referees  int // independent validators beside it
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
	for _, o := range offers {
		if b.Meets(o) != nil {
			continue
		}
		if !ok || o.Price < best.Price || o.Price == best.Price && o.Validator < best.Validator {
			best, ok = o, true
		}
	}
	return best, ok
}
