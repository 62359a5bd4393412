package consume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/role"
)

// Progress is how far an order has come.
type Progress struct {
	Status     marketv1.Status // in the book
	Auction    bool            // it waits for a clearing, and for no offer
	Absent     uint32          // sales of capacity to it for which sellers did not come
	Consumer   string
	Kind       string     // of work
	Lease      *job.Lease // once matched
	HandedOver bool       // a quorum of custodians holds the order's files
}

// Ended reports whether nothing more will come of the order.
func (p *Progress) Ended() bool {
	if p.Lease != nil {
		return p.Lease.Phase == job.Settled
	}
	return p.Status == marketv1.STATUS_EXPIRED || p.Status == marketv1.STATUS_CANCELLED
}

// String says in one line how far the order has come.
func (p *Progress) String() string {
	l := p.Lease
	if l == nil && p.Status == marketv1.STATUS_EXPIRED && p.Absent > 0 {
		return fmt.Sprintf("expired and refunded: who had sold it capacity did not come (%d times), and nobody else sold enough before the order ended", p.Absent)
	}
	if l == nil && p.Status == marketv1.STATUS_EXPIRED && p.Auction {
		return "expired and refunded: no clearing sold it capacity in time; tally market shows what others bid and ask"
	}
	if l == nil && p.Status == marketv1.STATUS_OPEN && p.Auction {
		return "in the book: waits for a clearing that sells it capacity; tally market shows what is bid"
	}
	if l == nil {
		return map[marketv1.Status]string{
			marketv1.STATUS_OPEN:      "in the book: waits for an offer that meets it",
			marketv1.STATUS_LEASED:    "matched",
			marketv1.STATUS_CANCELLED: "cancelled and refunded",
			marketv1.STATUS_EXPIRED:   "expired and refunded: no offer met it in time",
		}[p.Status]
	}
	text := fmt.Sprintf("%v: %d of %d rounds merged", l.Phase, l.Round, len(l.Merges))
	if l.Phase == job.Active && l.Files.Said != job.Had {
		return text + "; its custodians fetch the order's files"
	}
	if units := l.RoundUnits(); l.Phase == job.Active && len(units) > 0 {
		var counts [job.Accepted + 1]int
		for _, u := range units {
			counts[u.Status]++
		}
		text += "; units"
		for s, n := range counts {
			if n > 0 {
				text += fmt.Sprintf(" %d %v", n, job.Status(s))
			}
		}
	}
	if a := l.Audits; a.Drawn > 0 {
		text += fmt.Sprintf("; audits %d passed, %d failed", a.Passed, a.Failed)
		if a.Failed > 0 && l.Forces() {
			text += " (those of forced attempts are to fail)"
		}
	}
	if n := len(l.Disputes); n > 0 {
		text += fmt.Sprintf("; %d in dispute", n)
	}
	if l.Reason != "" {
		text += "; stopped early: " + l.Reason
	}
	return text
}

// Left says how long the order will go on after now, in protocol time in ms, as
// "about 3m0s left", or "" while nobody can tell. since is when the round began, 0 if the
// caller did not see that. Rounds take as long as those before; the first one at least
// its window.
func (p *Progress) Left(now, since int64) string {
	l := p.Lease
	if l == nil || l.Files.Said != job.Had {
		return ""
	}
	c, how, left := &l.Order.Conditions, "about", int64(0)
	switch all, done := int64(len(l.Merges)), int64(l.Round); {
	case l.Phase == job.Closing:
		left = l.Windows.End - now
	case l.Phase != job.Active:
		return ""
	case done == 0:
		how, left = "at least", c.Windows(int(all))
		if since > 0 && c.Speculate == 0 {
			left -= min(now-since, c.UnitWindow)
		}
	default:
		if since == 0 { // in the middle of it, as far as anybody knows
			since = l.MatchedAt + (now-l.MatchedAt)*2*done/(2*done+1)
		}
		round := (since - l.MatchedAt) / done
		left = max(round*(all-done)-(now-since), 0) + c.Window
	}
	if left <= 0 {
		return ""
	}
	return fmt.Sprintf("%s %v left", how, (time.Duration(left) * time.Millisecond).Round(time.Second))
}

// Look asks the chain how an order stands.
func Look(ctx context.Context, env *role.Env, order canon.Hash) (Progress, error) {
	r, err := marketv1.NewQueryClient(env.Chain.Conn).Order(ctx, &marketv1.QueryOrderRequest{Order: order.String()})
	if err != nil {
		return Progress{}, fmt.Errorf("order %s: %w", order.Short(), err)
	}
	p := Progress{Status: r.Order.Posting.Status, Auction: r.Order.Posting.Auction, Absent: r.Order.Posting.Absent, Consumer: r.Order.Order.Consumer, Kind: r.Order.Order.Problem.Kind}
	l, err := env.Leases.Get(ctx, order)
	switch {
	case err == nil:
		p.Lease = l
		p.HandedOver = l.Files.Said == job.Had
	case p.Status == marketv1.STATUS_LEASED || p.Status == marketv1.STATUS_SETTLED:
		return p, err
	}
	return p, nil
}

// ErrUnmet is returned for an order that ended without a lease.
var ErrUnmet = errors.New("the order ended without a lease")

// ErrCancelled is the ErrUnmet of an order that its consumer took back.
var ErrCancelled = fmt.Errorf("%w: its consumer has cancelled it, and was refunded", ErrUnmet)

// Follow looks after an order on every block until done is satisfied or it has ended. While the order waits for a lease, done is
// told as well, and its answer does not count. Serve hands over the order's files.
func Follow(ctx context.Context, env *role.Env, order canon.Hash, done func(Progress) bool) (Progress, error) {
	var last Progress
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	err := env.EachBlock(ctx, func(ctx context.Context, _ client.Block) error {
		p, err := Look(ctx, env, order)
		if err != nil {
			return err
		}
		last = p
		switch {
		case p.Lease != nil:
			if done(p) || p.Lease.Phase == job.Settled {
				stop()
			}
		case p.Ended():
			failed = fmt.Errorf("%w: %v", ErrUnmet, &p)
			if p.Status == marketv1.STATUS_CANCELLED {
				failed = ErrCancelled
			}
			stop()
		default:
			done(p) // it may be told that the order waits, which is no end
		}
		return nil
	})
	if failed != nil {
		return last, failed
	}
	if ctx.Err() != nil && last.Lease != nil && (done(last) || last.Lease.Phase == job.Settled) {
		return last, nil
	}
	return last, err
}
