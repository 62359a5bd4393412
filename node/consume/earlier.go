package consume

import (
	"bytes"
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/role"
)

// EarlierOrder is an order that the consumer posted before, for the same problem.
type EarlierOrder struct {
	Order     job.Order
	Progress  Progress
	Resumable bool // on the same terms, and it has its whole result or still can
	OwnPeer   bool // this home's peer posted it: only that peer hands over files and takes the result
}

// FindEarlier returns the newest earlier order that can be resumed, else the newest, else
// nil. The same order gives the same bits: whoever posts it again pays for them twice.
//
// nonce is that of the next order on the same terms: the first that none of them has had. Two postings of
// one home and address, of which neither saw the other, get the same one, and so are one order.
func FindEarlier(ctx context.Context, env *role.Env, o *job.Order) (e *EarlierOrder, nonce uint64, err error) {
	booked, all, err := ordersOf(ctx, env, o.Consumer)
	if err != nil {
		return nil, 0, err
	}
	candidates, nonce := earlier(all, o)
	known := map[canon.Hash]bool{}
	for i := range all {
		known[all[i].ID()] = true
	}
	nonce, err = unused(nonce, func(n uint64) (bool, error) {
		next := *o
		next.Nonce = n
		if known[next.ID()] {
			return true, nil
		}
		return settled(ctx, env, next.ID())
	})
	if err != nil {
		return nil, 0, fmt.Errorf("look for a nonce: %w", err)
	}
	for _, i := range candidates {
		_, terms := compareOrders(&all[i], o)
		x, err := lookEarlier(ctx, env, &booked[i], all[i], o)
		if err != nil {
			return nil, 0, err
		}
		if x.Resumable = terms && x.Progress.resumable(); x.Resumable {
			return x, nonce, nil
		}
		if e == nil {
			e = x
		}
	}
	return e, nonce, nil
}

// FindSimilar returns the orders of o's consumer that ask for the same as o, newest first, until one that can be resumed.
// Who may lead it, what it may cost and when it expires do not count: none of that changes what comes of it.
func FindSimilar(ctx context.Context, env *role.Env, o *job.Order) (out []*EarlierOrder, err error) {
	booked, all, err := ordersOf(ctx, env, o.Consumer)
	for i := len(all) - 1; i >= 0 && (len(out) == 0 || !out[len(out)-1].Resumable); i-- {
		other := all[i]
		c := &other.Conditions
		c.Validator, c.MaxPrice, c.Expires = o.Conditions.Validator, o.Conditions.MaxPrice, o.Conditions.Expires
		if _, similar := compareOrders(&other, o); !similar {
			continue
		}
		x, err := lookEarlier(ctx, env, &booked[i], all[i], o)
		if err != nil {
			return nil, err
		}
		x.Resumable = x.Progress.resumable()
		out = append(out, x)
	}
	return out, err
}

// ordersOf returns the orders of a consumer, oldest first, as they are booked and read.
func ordersOf(ctx context.Context, env *role.Env, consumer string) (booked []marketv1.BookedOrder, all []job.Order, err error) {
	booked, err = Orders(ctx, env.Chain.Conn, consumer, maxFound)
	all = make([]job.Order, len(booked))
	for i := range booked {
		if all[i], err = wire.OrderFromProto(&booked[i].Order); err != nil {
			return nil, nil, fmt.Errorf("order %s: %w", booked[i].Id, err)
		}
	}
	return booked, all, err
}

// lookEarlier asks how an order stands that was found in place of o.
func lookEarlier(ctx context.Context, env *role.Env, b *marketv1.BookedOrder, found job.Order, o *job.Order) (x *EarlierOrder, err error) {
	x = &EarlierOrder{Order: found, Progress: Progress{Status: b.Posting.Status, Absent: b.Posting.Absent}, OwnPeer: bytes.Equal(found.Contact.Key, o.Contact.Key)}
	if s := x.Progress.Status; s != marketv1.STATUS_EXPIRED && s != marketv1.STATUS_CANCELLED {
		x.Progress, err = Look(ctx, env, found.ID())
	}
	return x, err
}

// earlier returns which of a consumer's orders, oldest first, may be taken up in place of
// o, newest first: those on the same terms, and before them one for the same problem if
// that is newer. nonce is the number of those on the same terms.
func earlier(all []job.Order, o *job.Order) (candidates []int, nonce uint64) {
	for i := len(all) - 1; i >= 0; i-- {
		problem, terms := compareOrders(&all[i], o)
		if terms {
			nonce++
		}
		if terms || problem && len(candidates) == 0 {
			candidates = append(candidates, i)
		}
	}
	return candidates, nonce
}

// settled reports whether the chain has settled an order, if its lease is pruned or not.
func settled(ctx context.Context, env *role.Env, id canon.Hash) (bool, error) {
	_, err := workv1.NewQueryClient(env.Chain.Conn).Path(ctx, &workv1.QueryPathRequest{Order: id.String()})
	if status.Code(err) == codes.NotFound {
		return false, nil
	}
	return err == nil, err
}

// unused returns a nonce from first on that no order has had. Orders that the chain has pruned are in no
// list, but their nonces lie beside one another: so it looks ever farther, then ever nearer.
func unused(first uint64, used func(uint64) (bool, error)) (uint64, error) {
	for step, farther := uint64(1), true; step > 0; {
		is, err := used(first + step - 1)
		if err != nil {
			return 0, err
		}
		farther = farther && is
		if is {
			first += step
		}
		if farther {
			step *= 2
		} else {
			step /= 2
		}
	}
	return first, nil
}

// resumable reports whether an order has its whole result, or still can.
func (p *Progress) resumable() bool {
	if p.Lease == nil {
		return !p.Ended()
	}
	return p.Lease.Reason == "" || p.Lease.Round > 0 && p.Lease.Reason == job.StopReason
}

// compareOrders reports whether two orders are of one consumer for one problem, and
// whether also on the same terms. Who hands over the files, and the nonce, do not count.
func compareOrders(a, b *job.Order) (problem, terms bool) {
	other := *b
	other.Nonce, other.Contact = a.Nonce, a.Contact
	terms = a.ID() == other.ID()
	other.Conditions = a.Conditions
	return a.ID() == other.ID(), terms
}
