package hire

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/node/tabs"
)

// accused returns the first of checks that have found a reply wrong, which names who has.
func accused(found []*Check) *Check {
	v := found[0]
	for _, x := range found {
		v.accusers = append(v.accusers, x.By)
	}
	return v
}

// handOver brings a proof to a provider that has found the reply wrong, which disputes it.
func handOver(ctx context.Context, c *Consumer, l *wire.Listed, p *tabs.Proof) error {
	id, err := c.reach(l)
	if err != nil {
		return err
	}
	_, err = tabs.Proofs.Call(ctx, c.Host, id, *p)
	return err
}

// accuse has a wrong reply disputed on the chain: here if this machine can, else by who has found it wrong.
func (h *hired) accuse(ctx context.Context, r *Receipt) {
	c := h.c
	failed := errors.New("who has found it wrong cannot be reached")
	if r.Check.Here && c.Disputes != nil {
		if failed = c.Disputes.Open(ctx, &r.Proof); failed == nil {
			r.Check.Dispute = c.Account
			return
		}
	}
	all, err := c.Offers(ctx)
	if err != nil {
		failed = errors.Join(failed, err)
	}
	for i := range all {
		if l := &all[i]; l.Model == r.Terms.Model && slices.Contains(r.Check.accusers, l.Provider) {
			err := handOver(ctx, c, l, &r.Proof)
			if err == nil {
				r.Check.Dispute = l.Provider
				return
			}
			failed = errors.Join(failed, fmt.Errorf("%s: %w", l.Provider, err))
		}
	}
	r.Check.Dispute = "nobody: " + failed.Error()
	c.Log.Warn("a wrong reply is not disputed", "receipt", r.Receipt.ID(), "error", failed)
}
