package evidence

import (
	"context"
	"fmt"
	"io"

	"github.com/cosmos/gogoproto/proto"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/format/bundle"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/role"
)

// Collect gathers the bundle of a settled lease from the chain and the lease's
// parties, and writes it to a file. It returns the hash of the validator set
// that signed for it. progress, if not nil, sees how many of all entries are
// there.
func Collect(ctx context.Context, env *role.Env, l *job.Lease, name string, progress func(done, all int)) (Trust, error) {
	if l.Phase != job.Settled {
		return Trust{}, fmt.Errorf("order %s is %v: a bundle can be made when it is settled", l.Order.ID().Short(), l.Phase)
	}
	l, err := env.Leases.Fill(ctx, l, l.Everything())
	if err != nil {
		return Trust{}, err
	}
	c := &collection{env: env, lease: l, progress: progress, all: len(fixed(l)) + len(states(l))}
	a, err := newAnchorage(ctx, env.Chain, l.Order.ID(), nil)
	if err != nil {
		return Trust{}, err
	}
	for _, e := range a.entries() {
		c.add(e)
	}
	c.add(bundle.Bytes(entryRecord, l.Record()))
	if err := c.order(ctx); err != nil {
		return Trust{}, err
	}
	for _, f := range l.Order.Problem.Files {
		ref, err := env.Blobs.Fetch(ctx, l, f, blobs.Holders(l)...)
		if err != nil {
			return Trust{}, err
		}
		c.add(bundle.Content{Name: fileEntry(f.Role), Open: func() (io.Reader, error) { return env.Store.Get(ref) }})
	}
	for _, root := range states(l) {
		s, err := env.States.Get(ctx, l, root)
		if err != nil {
			return Trust{}, err
		}
		_, ref, err := env.States.Put(l.Order.ID(), s)
		if err != nil {
			return Trust{}, err
		}
		c.add(bundle.Content{Name: stateEntry(root), Open: func() (io.Reader, error) { return env.Store.Get(ref) }})
	}
	held, err := checkAnchor(a.read, Anybody) // what cannot be verified is not handed over
	if err != nil {
		return Trust{}, fmt.Errorf("what the node gives: %w", err)
	}
	return held.signers, write(name, c.entries)
}

// orderEvent is the type of the event that a posted order leaves.
var orderEvent = proto.MessageName(&marketv1.EventPosted{})

type collection struct {
	env      *role.Env
	lease    *job.Lease
	entries  []bundle.Content
	progress func(done, all int)
	all      int
}

func (c *collection) add(e bundle.Content) {
	c.entries = append(c.entries, e)
	if c.progress != nil {
		c.progress(len(c.entries), c.all)
	}
}

// order adds the transaction that posted the order.
func (c *collection) order(ctx context.Context) error {
	id := c.lease.Order.ID().String()
	r, err := c.env.Chain.RPC.TxSearch(ctx, fmt.Sprintf(`%s.order='"%s"'`, orderEvent, id), false, nil, nil, "asc")
	if err != nil {
		return fmt.Errorf("transaction of order %s: %w", id, err)
	}
	if len(r.Txs) == 0 {
		return fmt.Errorf("the node does not know the transaction that posted order %s", id)
	}
	number, err := c.env.Chain.AccountNumber(ctx, c.lease.Order.Consumer)
	if err != nil {
		return err
	}
	c.add(bundle.Bytes(entryOrder, r.Txs[0].Tx))
	c.add(bundle.Bytes(entryNumber, fmt.Append(nil, number)))
	return nil
}
