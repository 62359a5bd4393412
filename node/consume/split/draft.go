package split

import (
	"context"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/parts"
)

// Drafted is an order file that was read and tried: as a whole, and in parts if it is split.
type Drafted struct {
	Whole *consume.Draft
	Split *Batch // nil of an order that is not split
}

// Batch is an order's parts, in the order of their records.
type Batch struct {
	Wish   parts.Wish
	Ranges []parts.Range
	Drafts []*consume.Draft
}

// Splits reports whether an order file is posted in parts.
func Splits(s consume.OrderFile) bool {
	b, ok := s.(consume.BatchSpec)
	return ok && b.Conditions.Split.Parts() > 0
}

// Read reads what an order file names, and tries it.
func Read(ctx context.Context, s consume.OrderFile, exec engine.Executor) (*Drafted, error) {
	if !Splits(s) {
		d, err := s.Draft(ctx, exec)
		return &Drafted{Whole: d}, err
	}
	spec := s.(consume.BatchSpec)
	of, err := spec.Dataset(exec)
	if err != nil {
		return nil, err
	}
	out := &Drafted{Split: &Batch{Wish: spec.Conditions.Split}}
	records := of.Records.Slots[0].Shape[0]
	if out.Split.Ranges, err = parts.Cut(records, of.Batch, spec.Conditions.Split.Parts()); err != nil {
		return nil, err
	}
	prices, err := parts.Prices(uint64(spec.Conditions.MaxPrice), out.Split.Ranges)
	if err != nil {
		return nil, err
	}
	if out.Whole, err = consume.FromDataset(ctx, spec, of, exec); err != nil {
		return nil, err
	}
	for i, r := range out.Split.Ranges {
		part, cut := spec, of
		part.Conditions.MaxPrice = consume.Amount(prices[i])
		if cut.Records, err = r.Of(of.Records); err != nil {
			return nil, err
		}
		d, err := consume.FromDataset(ctx, part, cut, exec)
		if err != nil {
			return nil, fmt.Errorf("part %d of %d: %w", i+1, len(prices), err)
		}
		out.Split.Drafts = append(out.Split.Drafts, d)
	}
	return out, nil
}

// Records returns how many records the parts have together.
func (b *Batch) Records() (n int) {
	for _, r := range b.Ranges {
		n += r.Records
	}
	return n
}

// order returns what a part's order is but for its validator and nonce.
func (b *Batch) order(part int, by consume.Buyer) (job.Order, error) {
	o, err := b.Drafts[part].Order(by)
	o.Nonce = 0
	return o, err
}

// key names what is computed and on which conditions, but not who leads it, what it may cost and when it expires: these may
// change while parts are under way. So may the addresses of the home's peer.
func (b *Batch) key(by consume.Buyer) (canon.Hash, error) {
	var ids []canon.Hash
	for i := range b.Drafts {
		o, err := b.order(i, by)
		if err != nil {
			return canon.Hash{}, err
		}
		o.Contact.Addrs, o.Conditions.MaxPrice, o.Conditions.Expires = nil, 0, 0
		ids = append(ids, o.ID())
	}
	return canon.Root(ids), nil
}
