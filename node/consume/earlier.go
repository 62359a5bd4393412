package consume

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/role"
)

// Precedent is an order of the same consumer for the same problem.
type Precedent struct {
	ID       canon.Hash
	Progress Progress
	Same     bool // its terms are the same too, and it has or may still have its whole result
	Here     bool // it was posted by this home's peer, which alone hands over files and takes the result
}

// Earlier returns the newest precedent of an order that is the same, or else the newest,
// or nil. The same order gives the same bits: whoever posts it again pays for them twice.
// nonce is the number of orders on the same terms. As that of the next one it makes two
// postings, of which neither saw the other, one order.
func Earlier(ctx context.Context, k *role.Kit, o *job.Order) (p *Precedent, nonce uint64, err error) {
	all, err := Orders(ctx, k, o.Consumer, maxFound)
	if err != nil {
		return nil, 0, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		booked, err := market.OrderFromProto(&all[i].Order)
		if err != nil {
			return nil, 0, fmt.Errorf("order %s: %w", all[i].Id, err)
		}
		problem, terms := sameWish(&booked, o)
		if terms {
			nonce++
		}
		if !problem || p != nil && (p.Same || !terms) {
			continue
		}
		x := &Precedent{ID: booked.ID(), Progress: Progress{Status: all[i].Posting.Status}, Here: bytes.Equal(booked.Contact.Key, o.Contact.Key)}
		if s := x.Progress.Status; s != marketv1.STATUS_EXPIRED && s != marketv1.STATUS_CANCELLED {
			if x.Progress, err = Look(ctx, k, x.ID); err != nil {
				return nil, 0, err
			}
		}
		l := x.Progress.Lease
		x.Same = terms && (l != nil || !x.Progress.Ended()) && (l == nil || l.Reason == "")
		if p == nil || x.Same {
			p = x
		}
	}
	return p, nonce, nil
}

// sameWish reports whether two orders are of one consumer for one problem, and whether
// also on the same terms.
func sameWish(a, b *job.Order) (problem, terms bool) {
	other := *b
	other.Nonce, other.Contact = a.Nonce, a.Contact
	terms = a.ID() == other.ID()
	other.Conditions = a.Conditions
	return a.ID() == other.ID(), terms
}
